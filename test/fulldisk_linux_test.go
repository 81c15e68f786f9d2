package test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// disk gives the world a $PAWL_HOME on a disk of its own, of that many KiB.
func (w *world) disk(size int) {
	w.t.Helper()
	require.NoError(w.t, os.MkdirAll(w.home, 0o700))
	err := syscall.Mount("tmpfs", w.home, "tmpfs", 0, fmt.Sprintf("size=%dk", size))
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EACCES) {
		w.t.Skip("only root can mount a small disk: ", err)
	}
	require.NoError(w.t, err)
	w.t.Cleanup(func() { require.NoError(w.t, syscall.Unmount(w.home, syscall.MNT_DETACH)) })
}

// fill takes all that is left of the disk, and returns what gives it back.
func (w *world) fill() (free func()) {
	w.t.Helper()
	path := filepath.Join(w.home, "filler")
	f, err := os.Create(path)
	require.NoError(w.t, err)
	defer f.Close()
	_, err = io.Copy(f, zeros{})
	require.ErrorIs(w.t, err, syscall.ENOSPC)
	return func() { require.NoError(w.t, os.Remove(path)) }
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

// The disk under $PAWL_HOME fills up while an agent works. The loop says so, tries again and goes
// on once there is room, from where it was.
func TestDiskThatFillsUp(t *testing.T) {
	t.Run("under store, trees and engine", func(t *testing.T) {
		w := newWorldOfItsOwn(t, waitsFor("go-$PAWL_ITERATION")).set(doc{"limits": doc{"iterations": 2}})
		t.Parallel()
		w.disk(32 << 10)
		c := w.start("run", "--yes", w.specFile())
		w.at(1)
		free := w.fill()
		w.write("go-1", "")
		w.until("the agent has ended", func() bool { return !strings.Contains(strings.Join(survivors(w.dir), "\n"), "agent.sh") })
		require.Equal(t, "a hill to climb", w.git("log", "-1", "--format=%s", "main"))
		w.until("it is told", func() bool { return strings.Contains(readFile(c.err), "the disk is full: ") })
		free()
		w.write("go-2", "")
		s := c.wait()
		require.Equal(t, 0, s.code, s.err)
		plain(t, s.err)
		require.Equal(t, "12", w.kept("work/n"))
		require.Len(t, w.results(w.loop), 3)
	})
	t.Run("under store and trees", func(t *testing.T) {
		needCLI(t)
		t.Parallel()
		w := newWorldOfItsOwn(t, waitsFor("go-$PAWL_ITERATION")).set(doc{"limits": doc{"iterations": 2}})
		w.disk(32 << 10)
		c := &cluster{dir: w.dir, home: w.home, address: freeAddress(t), ui: freeAddress(t)}
		require.NoError(t, c.startServer())
		t.Cleanup(func() { require.NoError(t, c.server.stop(syscall.SIGKILL)) })
		w.env = []string{"TEMPORAL_ADDRESS=" + c.address}
		run := w.start("run", "--yes", w.specFile())
		w.at(1)
		free := w.fill()
		w.write("go-1", "")
		w.until("it is told", func() bool {
			return strings.Contains(readFile(run.err), "No space left on device") || strings.Contains(readFile(run.err), "no space left on device")
		})
		require.Contains(t, readFile(run.err), "is tried again")
		free()
		w.write("go-2", "")
		s := run.wait()
		require.Equal(t, 0, s.code, s.err)
		plain(t, s.err)
		require.Equal(t, "12", w.kept("work/n"))
		require.Len(t, w.results(w.loop), 3)
	})
	t.Run("before anything is begun", func(t *testing.T) {
		w := newWorldOfItsOwn(t, raises)
		t.Parallel()
		w.disk(64)
		w.fill()
		s := w.pawl("run", "--yes", w.specFile())
		require.Equal(t, 1, s.code, s.err)
		require.Contains(t, s.err, "no space left on device")
		plain(t, s.err)
		require.Empty(t, w.pawlRefs())
	})
}
