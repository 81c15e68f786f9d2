package engine

import (
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"pawl/internal/lib/fsutil/durable"
)

// A stopped process has the lock, and its engine answers nobody.
func TestAStoppedOwnerIsNamedWithWhatToDo(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	pid := cmd.Process.Pid
	require.False(t, isStopped(pid))
	require.ErrorContains(t, unanswered(pid), "it does not answer")

	require.NoError(t, cmd.Process.Signal(syscall.SIGSTOP))
	var status unix.WaitStatus
	_, err := unix.Wait4(pid, &status, unix.WUNTRACED, nil) // until it has stopped
	require.NoError(t, err)
	require.True(t, status.Stopped())
	require.True(t, isStopped(pid))
	require.ErrorContains(t, unanswered(pid), "is stopped (SIGSTOP or Ctrl-Z)")
	require.ErrorContains(t, unanswered(pid), "kill -CONT")
}

// An engine that has served, and whose owner holds the lock, runs, though it does not answer.
func TestUnansweredKnowsAnEngineThatRuns(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, Unanswered(dir), "no engine ever ran here")
	lock, err := durable.TryLock(lockPath(dir))
	require.NoError(t, err)
	require.NoError(t, own(lock))
	require.NoError(t, Unanswered(dir), "it starts and has not served yet")
	require.NoError(t, Endpoint{PID: os.Getpid()}.write(dir))
	require.ErrorContains(t, Unanswered(dir), "it does not answer")
	require.NoError(t, lock.Close())
	require.NoError(t, Unanswered(dir), "its owner has ended")
}
