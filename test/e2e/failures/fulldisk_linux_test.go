package failures_test

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

	"pawl/test/harness/world"
)

// disk gives the world a $PAWL_HOME on its own disk with that many KiB.
func disk(w *world.World, size int) {
	w.T.Helper()
	require.NoError(w.T, os.MkdirAll(w.Home, 0o700))
	err := syscall.Mount("tmpfs", w.Home, "tmpfs", 0, fmt.Sprintf("size=%dk", size))
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EACCES) {
		w.T.Skip("only root can mount a small disk: ", err)
	}
	require.NoError(w.T, err)
	w.T.Cleanup(func() { require.NoError(w.T, syscall.Unmount(w.Home, syscall.MNT_DETACH)) })
}

// fill uses up the rest of the disk, and returns a function that frees it again.
func fill(w *world.World) (free func()) {
	w.T.Helper()
	path := filepath.Join(w.Home, "filler")
	f, err := os.Create(path)
	require.NoError(w.T, err)
	defer f.Close()
	_, err = io.Copy(f, zeros{})
	require.ErrorIs(w.T, err, syscall.ENOSPC)
	return func() { require.NoError(w.T, os.Remove(path)) }
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

// The disk under $PAWL_HOME fills up while an agent works. The loop says so, tries again, and continues from where it
// was once there is room.
func TestDiskThatFillsUp(t *testing.T) {
	t.Run("under store, trees and engine", func(t *testing.T) {
		w := world.Alone(t, world.WaitsFor("go-$PAWL_ITERATION")).Set(doc{"limits": doc{"iterations": 2}})
		t.Parallel()
		disk(w, 32<<10)
		c := w.Start("run", "--yes", w.SpecFile())
		w.At(1)
		free := fill(w)
		w.Write("go-1", "")
		w.Until("the agent has ended", func() bool { return !strings.Contains(strings.Join(world.Survivors(w.Dir), "\n"), "agent.sh") })
		require.Equal(t, "a hill to climb", w.Git("log", "-1", "--format=%s", "main"))
		w.Until("it is told", func() bool { return strings.Contains(world.ReadFile(c.Err), "the disk is full: ") })
		free()
		w.Write("go-2", "")
		s := c.Wait()
		require.Equal(t, 0, s.Code, s.Err)
		world.Plain(t, s.Err)
		require.Equal(t, "12", w.Kept("work/n"))
		require.Len(t, w.Results(w.Loop), 3)
	})
	t.Run("with room, but for no further files", func(t *testing.T) {
		world.Slow(t, "the disk under store, trees and engine is full")
		w := world.Alone(t, world.WaitsFor("go-$PAWL_ITERATION")).Set(doc{"limits": doc{"iterations": 2}})
		t.Parallel()
		disk(w, 32<<10)
		c := w.Start("run", "--yes", w.SpecFile())
		w.At(1)
		files := func(more uint64) {
			var st syscall.Statfs_t
			require.NoError(t, syscall.Statfs(w.Home, &st))
			require.NoError(t, syscall.Mount("tmpfs", w.Home, "tmpfs", syscall.MS_REMOUNT, fmt.Sprintf("nr_inodes=%d", st.Files-st.Ffree+more)))
		}
		files(2) // a commit needs more
		w.Write("go-1", "")
		w.Until("it is told", func() bool { return strings.Contains(world.ReadFile(c.Err), "the disk is full: ") })
		files(10000)
		w.Write("go-2", "")
		s := c.Wait()
		require.Equal(t, 0, s.Code, s.Err)
		world.Plain(t, s.Err)
		require.Equal(t, "12", w.Kept("work/n"))
		require.Len(t, w.Results(w.Loop), 3)
	})
	t.Run("under store and trees", func(t *testing.T) {
		world.Slow(t, "the engine is on the same disk")
		world.NeedCLI(t)
		t.Parallel()
		w := world.Alone(t, world.WaitsFor("go-$PAWL_ITERATION")).Set(doc{"limits": doc{"iterations": 2}})
		disk(w, 32<<10)
		c := &world.Cluster{Dir: w.Dir, Home: w.Home, Address: world.FreeAddress(t), UI: world.FreeAddress(t)}
		require.NoError(t, c.StartServer())
		t.Cleanup(func() { require.NoError(t, c.Server.Stop(syscall.SIGKILL)) })
		w.Env = []string{"TEMPORAL_ADDRESS=" + c.Address}
		run := w.Start("run", "--yes", w.SpecFile())
		w.At(1)
		free := fill(w)
		w.Write("go-1", "")
		w.Until("it is told", func() bool {
			return strings.Contains(world.ReadFile(run.Err), "No space left on device") || strings.Contains(world.ReadFile(run.Err), "no space left on device")
		})
		require.Contains(t, world.ReadFile(run.Err), "is tried again")
		free()
		w.Write("go-2", "")
		s := run.Wait()
		require.Equal(t, 0, s.Code, s.Err)
		world.Plain(t, s.Err)
		require.Equal(t, "12", w.Kept("work/n"))
		require.Len(t, w.Results(w.Loop), 3)
	})
	t.Run("before anything is begun", func(t *testing.T) {
		w := world.Alone(t, world.Raises)
		t.Parallel()
		disk(w, 64)
		fill(w)
		s := w.Pawl("run", "--yes", w.SpecFile())
		require.Equal(t, 1, s.Code, s.Err)
		require.Contains(t, s.Err, "no space left on device")
		world.Plain(t, s.Err)
		require.Empty(t, w.PawlRefs())
	})
}

// An agent that fills the disk ends its own call, by the limit of its spec, without any quota. The host's other loop
// does not notice, and the room is free again. The agent fills the desk, the folder of its result, a file without a
// name, and the table of files.
func TestE6_AnAgentThatFillsTheDiskStopsItself(t *testing.T) {
	world.Slow(t, "it writes slowly, to be seen in the middle")
	w := world.New(t, `grows() { for i in $(seq 600); do head -c 1000000 /dev/zero; sleep 0.05; done; exit 0; }
		case "$PAWL_LOOP $PAWL_ITERATION" in
		*-b*) ;;
		*" 1") grows >work/big ;;
		*" 2") grows >"${PAWL_RESULT%/*}/big" ;;
		*" 4") exec 9>work/gone; rm work/gone; grows >&9 ;;
		*" 5") cd work; for i in $(seq 600); do seq ${i}000 ${i}999 | xargs touch; sleep 0.05; done; exit 0 ;;
		*" 7") head -c 60000000 /dev/zero >work/big ;;
		esac; `+world.Raises)
	w.Set(doc{"limits": doc{"iterations": 7, "deskBytes": "20MiB"}})
	require.Equal(t, 0, w.Pawl("start", "--yes", w.SpecFile()).Code)
	require.Equal(t, 0, w.Pawl("start", "--yes", w.SpecFile(), "--id", w.Loop+"-b").Code)
	st := w.Waits("completed")
	rows := w.Results(w.Loop)
	for _, n := range []int{1, 2, 4, 5, 7} { // three in a row would end the loop; the 7th is faster than pawl looks
		require.Contains(t, rows[n].Description(), "error:agent")
		require.Contains(t, rows[n].Description(), "limits.deskBytes (20MiB) was used up")
	}
	require.Equal(t, row{"3", "11", "+1.00", "yes", "raise the number"}, rows[3])
	require.Equal(t, row{"6", "12", "+1.00", "yes", "raise the number"}, rows[6])
	require.NoFileExists(t, filepath.Join(st.Desk, "work", "big"))
	other := w.Loop + "-b"
	w.Until("the other loop has ended", func() bool { return strings.Contains(w.Pawl("show", "--json", other).Out, `"status": "completed"`) })
	require.Equal(t, "17", w.Git("show", "refs/heads/pawl/"+other+":work/n"))
}
