package supervisor_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"pawl/internal/exec/supervisor"
)

// worker is another process that runs one command: a shell, two daemons (one of them without
// the token in its environment) and a program that ignores signals.
type worker struct {
	token, dir                         string
	cmd                                *exec.Cmd
	supervisor, main, daemon, scrubbed int
}

func startWorker(t *testing.T, env ...string) worker {
	w := worker{token: newToken(), dir: t.TempDir()}
	in := func(name string) string { return filepath.Join(w.dir, name) }
	binary := self()
	if len(env) > 0 { // the directory will be removed
		binary = in("binary")
		data, err := os.ReadFile(self())
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(binary, data, 0o700))
	}
	script := quoted(part("daemon", in("daemon"), "open")) + "; env -i " + quoted(part("daemon", in("scrubbed"), "closed")) +
		"; " + quoted(part("stubborn", in("main")))
	w.cmd = exec.Command(binary, "play", "worker", w.dir, w.token, "sh", "-c", script)
	unsupervised(t, w.cmd, env...)
	w.daemon, w.scrubbed = pid(t, in("daemon")), pid(t, in("scrubbed"))
	w.main, w.supervisor = pid(t, in("main")), pid(t, in("supervisor"))
	return w
}

func TestNothingOutlivesTheWorker(t *testing.T) {
	t.Parallel()
	w := startWorker(t)
	require.NoError(t, w.cmd.Process.Kill())
	gone(t, w.main, w.daemon, w.scrubbed, w.supervisor)
	require.Empty(t, living(w.token))
}

func TestAWorkerWhoseBinaryWasReplacedStillStartsSupervisors(t *testing.T) {
	t.Parallel()
	w := startWorker(t, "REMOVE_BINARY=1")
	require.NoFileExists(t, w.cmd.Path)
	require.NoError(t, w.cmd.Process.Kill())
	gone(t, w.main, w.daemon, w.scrubbed, w.supervisor)
}

func TestReapWaitsForTheSupervisorOfADeadWorker(t *testing.T) {
	t.Parallel()
	w := startWorker(t)
	// The supervisor is delayed as on a busy host: when the next worker recovers, it has not even begun.
	require.NoError(t, syscall.Kill(w.supervisor, syscall.SIGSTOP))
	require.NoError(t, w.cmd.Process.Kill())
	gone(t, w.cmd.Process.Pid)
	require.True(t, lives(w.scrubbed))

	_, err := supervisor.Reap(w.token)
	require.NoError(t, err)
	for _, pid := range []int{w.main, w.daemon, w.scrubbed, w.supervisor} {
		require.False(t, lives(pid), "when Reap returns, not later")
	}
}

func TestReapLeavesALiveWorkersSupervisorAlone(t *testing.T) {
	t.Parallel()
	s := start(t)
	n, err := supervisor.Reap(s.token)
	require.NoError(t, err)
	require.Zero(t, n)
	require.Zero(t, s.sh("true").ExitCode)
}

func TestDeathOfTheSupervisorIsAnErrorAndReapCleansUp(t *testing.T) {
	t.Parallel()
	s := start(t)
	failed := make(chan error, 1)
	go func() {
		script := quoted(part("daemon", s.path("daemon"), "open")) + "; exec " + quoted(part("stubborn", s.path("main")))
		_, err := s.Run(context.Background(), s.command("sh", "-c", script))
		failed <- err
	}()
	daemon, main := pid(t, s.path("daemon")), pid(t, s.path("main"))
	require.NoError(t, syscall.Kill(s.Pid(), syscall.SIGKILL))
	require.ErrorIs(t, <-failed, supervisor.ErrSupervisorDied)
	gone(t, main) // by the parent-death signal
	require.True(t, lives(daemon), "or else there is nothing to reap")

	n, err := supervisor.Reap(s.token)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.False(t, lives(daemon))
}

func TestCloseReapsAfterASupervisorThatDied(t *testing.T) {
	t.Parallel()
	s := start(t)
	go func() {
		script := quoted(part("daemon", s.path("daemon"), "open")) + "; exec sleep 1000"
		_, _ = s.Run(context.Background(), s.command("sh", "-c", script))
	}()
	daemon := pid(t, s.path("daemon"))
	require.NoError(t, syscall.Kill(s.Pid(), syscall.SIGKILL))
	require.NoError(t, s.Close())
	require.False(t, lives(daemon))
}

func TestASupervisorThatHangsDoesNotHoldUpTheWorker(t *testing.T) {
	supervisor.SetCloseWithin(t, 50*time.Millisecond) // for all supervisors, so no other test may run beside this one
	for _, test := range []struct {
		name string
		stop func(s testSupervisor, cancel context.CancelFunc)
	}{
		{"when interrupted", func(_ testSupervisor, cancel context.CancelFunc) { cancel() }},
		{"when closed", func(s testSupervisor, _ context.CancelFunc) { require.NoError(s.t, s.Close()) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := start(t)
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			failed := make(chan error, 1)
			go func() {
				c := s.command(part("stubborn", s.path("main"))...)
				c.Grace = time.Millisecond
				_, err := s.Run(ctx, c)
				failed <- err
			}()
			main := pid(t, s.path("main"))
			require.NoError(t, syscall.Kill(s.Pid(), syscall.SIGSTOP))
			test.stop(s, cancel)
			require.ErrorIs(t, <-failed, supervisor.ErrSupervisorDied)
			gone(t, main)
		})
	}
}

func TestInterruptFromTheTerminalReachesTheWorkerAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, unix.Mkfifo(filepath.Join(dir, "go"), 0o600))
	cmd := exec.Command(self(), "play", "worker", dir, newToken(), "sh", "-c", "echo $$ > main; read line < go; exit 7")
	keyboard := atTerminal(t, cmd)
	pid(t, filepath.Join(dir, "main"))

	_, err := keyboard.WriteString("\x03") // Ctrl-C
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		_, err := os.Stat(filepath.Join(dir, "interrupted"))
		return err == nil
	}, patience, often, "the worker heard nothing")

	require.NoError(t, os.WriteFile(filepath.Join(dir, "go"), []byte("\n"), 0))
	require.Eventually(t, func() bool {
		_, err := os.Stat(filepath.Join(dir, "result.json"))
		return err == nil
	}, patience, often)
	var result supervisor.Result
	require.NoError(t, json.Unmarshal([]byte(read(t, filepath.Join(dir, "result.json"))), &result))
	require.Equal(t, 7, result.ExitCode)
	require.False(t, result.Interrupted)
}
