package home_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/home"
)

func TestASecretIsReadAndItsFileJudged(t *testing.T) {
	outside := t.TempDir()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	h := home.Home{Dir: dir}
	write := func(path, text string, mode os.FileMode) string {
		require.NoError(t, os.WriteFile(path, []byte(text), mode))
		require.NoError(t, os.Chmod(path, mode))
		return path
	}
	write(filepath.Join(h.Dir, "ci"), "  s3cret\n", 0o600)
	s, err := h.Secret("ci")
	require.NoError(t, err)
	require.Equal(t, "s3cret", string(s.Value))
	require.Empty(t, s.Warnings)

	s, err = h.Secret(write(filepath.Join(outside, "open"), "x", 0o644))
	require.NoError(t, err)
	require.Len(t, s.Warnings, 2)
	require.Contains(t, s.Warnings[0], "mode 0644")
	require.Contains(t, s.Warnings[1], "outside of "+h.Dir)

	require.NoError(t, os.Symlink(filepath.Join(outside, "open"), filepath.Join(h.Dir, "link")))
	s, err = h.Secret("link")
	require.NoError(t, err)
	require.Len(t, s.Warnings, 2, "a link is judged by what it points to")

	require.NoError(t, syscall.Mkfifo(filepath.Join(h.Dir, "fifo"), 0o600))
	for path, says := range map[string]string{
		"none": "no such file", "fifo": "not a regular file", ".": "not a regular file",
		write(filepath.Join(h.Dir, "empty"), " \n", 0o600):                        "is empty",
		write(filepath.Join(h.Dir, "large"), strings.Repeat("x", 100<<10), 0o600): "more than",
	} {
		_, err := h.Secret(path)
		require.ErrorContains(t, err, says)
	}
}
