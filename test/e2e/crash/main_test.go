package crash_test

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/exec/supervisor"
	"pawl/test/harness/world"
)

func TestMain(m *testing.M) {
	supervisor.Main()
	os.Exit(world.OnDisk(m))
}

// program is the program in node.
func program(t testing.TB) string {
	t.Helper()
	path, err := build()
	require.NoError(t, err)
	return path
}

var build = world.Building("node", "./test/e2e/crash/node", "-tags", "crashtest")

// lines splits a program's output into lines.
func lines(out []byte) []string {
	text := strings.TrimSpace(string(bytes.ToValidUTF8(out, []byte("?"))))
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}
