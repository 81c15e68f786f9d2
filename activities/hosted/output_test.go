package hosted_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/activities/hosted"
)

func TestTheEndOfAnOutputIsPlainText(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"stdout": strings.Repeat("\x1b[0;32mPASSED\x1b[0;0m\n\n \n", 100) + "\x1b[1mlast\x1b[0m\n",
		"stderr": "\x1b[31mmake: *** [test] Error 1\x1b[0m\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	tail := hosted.TailOf(dir)
	require.True(t, strings.HasSuffix(tail, "PASSED\nPASSED\nlast\nmake: *** [test] Error 1"), "%q", tail)
	require.NotContains(t, tail, "[0")
	require.LessOrEqual(t, len(tail), hosted.TailLength+len("…\n"))
	require.Equal(t, "", hosted.TailOf(t.TempDir()))
}
