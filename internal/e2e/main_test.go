package e2e_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/proc"
	"pawl/internal/testbin"
)

// scratch is the folder of this test run.
var scratch string

func TestMain(m *testing.M) {
	proc.Main()
	testbin.Parallel(4)
	var err error
	if scratch, err = os.MkdirTemp("", "pawl-e2e-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(scratch)
	os.Exit(code)
}

// program builds the program in node once per test run and returns its path.
func program(t testing.TB) string {
	t.Helper()
	path, err := build()
	require.NoError(t, err)
	return path
}

var build = testbin.Building(filepath.Join("..", ".."), "./internal/e2e/node", func() string { return filepath.Join(scratch, "node") }, "-tags", "crashtest")

// lines splits what a program said.
func lines(out []byte) []string {
	text := strings.TrimSpace(string(bytes.ToValidUTF8(out, []byte("?"))))
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}
