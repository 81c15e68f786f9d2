package testbin_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/test/harness/testbin"
)

// A program is built from its current sources, even if they change right after the last build.
func TestAProgramIsBuiltAgainWhereItsSourcesChange(t *testing.T) {
	cache, err := exec.Command("go", "env", "GOCACHE").Output()
	require.NoError(t, err)
	t.Setenv("GOCACHE", strings.TrimSpace(string(cache)))
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	root := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o600))
	}
	built := func() (said string, file os.FileInfo) {
		t.Helper()
		to := filepath.Join(t.TempDir(), "program")
		path, err := testbin.Building(root, ".", func() string { return to })()
		require.NoError(t, err)
		out, err := exec.Command(path).CombinedOutput()
		require.NoError(t, err)
		file, err = os.Stat(path)
		require.NoError(t, err)
		return string(out), file
	}
	write("go.mod", "module example.com/program\n\ngo 1.24\n")
	write("main.go", "package main\n\nfunc main() { print(text) }\n")
	write("text.go", "package main\n\nconst text = \"one\"\n")
	said, first := built()
	require.Equal(t, "one", said)
	write("text_test.go", "package main\n")
	said, same := built()
	require.Equal(t, "one", said)
	require.True(t, os.SameFile(first, same), "nothing that it is made of has changed")
	write("text.go", "package main\n\nconst text = \"two\"\n")
	said, _ = built()
	require.Equal(t, "two", said)
	write("more.go", "package main\n\nfunc init() { print(\"more, \") }\n")
	said, _ = built()
	require.Equal(t, "more, two", said)
}
