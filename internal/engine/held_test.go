package engine_test

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/engine"
	"pawl/internal/held"
)

// TestE6_TheEngineIsInTheHomeThatItWas has the folder above pawl's renamed, and a forged copy in its place, before the
// engine starts, and once more before it starts again.
func TestE6_TheEngineIsInTheHomeThatItWas(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("descriptors of folders have no names here")
	}
	above := filepath.Join(t.TempDir(), "above")
	home := filepath.Join(above, "home")
	require.NoError(t, os.MkdirAll(home, 0o700))
	require.NoError(t, held.Keep(home))
	o := options(t)
	o.Dir = filepath.Join(home, "engine")
	for _, away := range []string{above + ".away", above + ".further"} {
		if moved := above + ".away"; away != moved {
			require.NoError(t, os.RemoveAll(above))
			require.NoError(t, os.Rename(moved, away))
		} else {
			require.NoError(t, os.Rename(above, away))
		}
		forged := filepath.Join(o.Dir, "temporal.db")
		require.NoError(t, os.MkdirAll(o.Dir, 0o700))
		require.NoError(t, os.WriteFile(forged, []byte("forged"), 0o600))
		e := share(t, o)
		require.NoError(t, engine.Opened(forged), "in the folder that is held")
		require.NoError(t, e.Close())

		real, err := os.Stat(filepath.Join(away, "home", "engine", "temporal.db"))
		require.NoError(t, err)
		require.Greater(t, real.Size(), int64(4096))
		b, err := os.ReadFile(forged)
		require.NoError(t, err)
		require.Equal(t, "forged", string(b))
		entries, err := os.ReadDir(o.Dir)
		require.NoError(t, err)
		require.Len(t, entries, 1, "nothing is written there")
	}
}

// TestE6_AnotherDatabaseThanTheOneInItsFolderIsTold has one put in the place of the other while it is opened.
func TestE6_AnotherDatabaseThanTheOneInItsFolderIsTold(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the system does not say which files are open")
	}
	path := filepath.Join(t.TempDir(), "temporal.db")
	require.ErrorContains(t, engine.Opened(path), "is not where it was")
	f, err := os.Create(path)
	require.NoError(t, err)
	defer f.Close()
	require.NoError(t, engine.Opened(path))
	require.NoError(t, os.Rename(path, path+".away"))
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	require.ErrorContains(t, engine.Opened(path), "has opened another database than "+path)
}
