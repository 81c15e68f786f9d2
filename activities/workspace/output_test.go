package workspace_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/activities/workspace"
)

func TestTheEndOfAnOutputIsPlainText(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"stdout": strings.Repeat("\x1b[0;32mPASSED\x1b[0;0m\n\n \n", 100) + "\x1b[1mlast\x1b[0m\n",
		"stderr": "\x1b[31mmake: *** [test] Error 1\x1b[0m\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	tail := workspace.TailOf(dir)
	require.True(t, strings.HasSuffix(tail, "PASSED\nPASSED\nlast\nmake: *** [test] Error 1"), "%q", tail)
	require.NotContains(t, tail, "[0")
	require.LessOrEqual(t, len(tail), workspace.TailLength+len("…\n"))
	require.Equal(t, "", workspace.TailOf(t.TempDir()))
}

// A runtime such as Ruby's says first what is wrong, and then where. A test runner says it last.
func TestAnExcerptHasTheStartAndTheEndOfAnOutput(t *testing.T) {
	dir := t.TempDir()
	write := func(stdout, stderr string) {
		for name, text := range map[string]string{"stdout": stdout, "stderr": stderr} {
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
		}
	}
	long := "\x1b[31muninitialized constant Helper (NameError)\x1b[0m\n" + strings.Repeat("\tfrom somewhere\n\n", 100_000) + "\tfrom <main>\n"
	write("", long)
	said := workspace.Excerpt(dir, 600)
	require.True(t, strings.HasPrefix(said, "uninitialized constant Helper (NameError)\n\tfrom somewhere\n"), "%q", said)
	require.True(t, strings.HasSuffix(said, "\n\tfrom somewhere\n\tfrom <main>"), "%q", said)
	require.Contains(t, said, "\n[…]\n")
	require.LessOrEqual(t, len(said), 600)
	write("1 of 3 failed\n", long)
	said = workspace.Excerpt(dir, 600)
	require.True(t, strings.HasPrefix(said, "1 of 3 failed\nuninitialized constant Helper (NameError)\n"), "%q", said)
	require.LessOrEqual(t, len(said), 601)
	write("all of it\n\n", "and this\n")
	require.Equal(t, "all of it\nand this", workspace.Excerpt(dir, 600))
	write(strings.Repeat("x", 5000), "")
	require.LessOrEqual(t, len(workspace.Excerpt(dir, 600)), 600, "a line without an end")
	require.Empty(t, workspace.Excerpt(t.TempDir(), 600))
}
