package engine_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/engine"
	"pawl/internal/lib/fsutil/dirfd"
)

// Before the engine starts, and again before it restarts, the folder above pawl's is renamed and replaced by a forged
// copy.
func TestE6_TheEngineIsInTheHomeThatItWas(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("descriptors of folders have no names here")
	}
	above := filepath.Join(t.TempDir(), "above")
	home := filepath.Join(above, "home")
	require.NoError(t, os.MkdirAll(home, 0o700))
	require.NoError(t, dirfd.Keep(home))
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
		aside, err := filepath.Glob(filepath.Join(away, "home", "engine", "temporal.db.*"))
		require.NoError(t, err)
		require.Empty(t, aside, "the version is that of the true one, which is not moved aside")
	}
}

// One database replaces the other while it is opened.
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

// One database replaces the other after the server has opened it. The replacement may come after the engine's look: then it
// is tried again.
func TestE6_AnEngineThatHasOpenedAnotherDatabaseDoesNotStart(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the system does not say which files are open")
	}
	var path string
	var err error
	for try := 0; try < 5 && err == nil; try++ {
		path, err = startSwapped(t)
	}
	require.ErrorContains(t, err, "has opened another database than "+path)
}

// startSwapped starts an engine whose database is replaced when the server has opened it, and returns the error.
func startSwapped(t *testing.T) (path string, err error) {
	t.Helper()
	o := options(t)
	path = filepath.Join(o.Dir, "temporal.db")
	swaps := &onRecord{do: func() bool {
		if engine.Opened(path) != nil { // the server has not opened it yet
			return false
		}
		text, err := os.ReadFile(path)
		return err == nil && os.Rename(path, path+".away") == nil && os.WriteFile(path, text, 0o600) == nil
	}}
	o.Logger = slog.New(swaps)
	ctx, cancel := context.WithTimeout(t.Context(), answerTime)
	defer cancel()
	e, err := engine.Share(ctx, o)
	if err == nil {
		e.Close()
	}
	require.True(t, swaps.done.Load())
	return path, err
}

// onRecord is a log handler that calls a function for each record until the function is done.
type onRecord struct {
	do   func() bool
	mu   sync.Mutex
	done atomic.Bool
}

func (*onRecord) Enabled(context.Context, slog.Level) bool { return true }

func (r *onRecord) Handle(context.Context, slog.Record) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.done.Load() && r.do() {
		r.done.Store(true)
	}
	return nil
}

func (r *onRecord) WithAttrs([]slog.Attr) slog.Handler { return r }
func (r *onRecord) WithGroup(string) slog.Handler      { return r }
