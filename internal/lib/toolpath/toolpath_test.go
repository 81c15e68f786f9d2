package toolpath_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/lib/toolpath"
)

func plant(t *testing.T, dir, name string) string {
	t.Helper()
	at := filepath.Join(dir, name)
	require.NoError(t, os.WriteFile(at, []byte("#!/bin/sh\n"), 0o755))
	return at
}

func TestAProgramIsLookedForOnce(t *testing.T) {
	open, early, late, here := t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir()
	require.NoError(t, os.Chmod(open, 0o777))
	t.Chdir(here)
	t.Setenv("PATH", ".:"+open+":"+early+":"+late)
	for _, dir := range []string{here, open} {
		plant(t, dir, "pawl-has")
		plant(t, dir, "pawl-lacks")
	}
	require.NoError(t, os.WriteFile(filepath.Join(early, "pawl-has"), nil, 0o644))
	was := plant(t, late, "pawl-has")

	at, err := toolpath.Path("pawl-has")
	require.NoError(t, err)
	require.Equal(t, was, at, "not in a folder that everybody can write, and not where pawl is")
	_, err = toolpath.Path("pawl-lacks")
	require.ErrorIs(t, err, exec.ErrNotFound)

	toolpath.Down("pawl-has", "pawl-lacks")
	require.NoError(t, os.Remove(filepath.Join(early, "pawl-has")))
	planted := plant(t, early, "pawl-has")
	plant(t, early, "pawl-lacks")
	for range 2 { // a second Down changes nothing
		at, err = toolpath.Path("pawl-has")
		require.NoError(t, err)
		require.Equal(t, was, at)
		require.NotEqual(t, planted, at)
		_, err = toolpath.Path("pawl-lacks")
		require.ErrorIs(t, err, exec.ErrNotFound, "what was not there stays absent")
		toolpath.Down("pawl-has", "pawl-lacks")
	}
}
