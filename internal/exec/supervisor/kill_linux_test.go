package supervisor_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"pawl/internal/exec/sandbox"
	"pawl/internal/exec/supervisor"
)

func TestNothingOutlivesTheCommand(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name     string
		script   string // PIDFILE stands for a file into which the survivor writes its process ID
		leftover int
	}{
		{"a daemon that keeps the output open", quoted(part("daemon", "PIDFILE", "open")), 1},
		{"a daemon that does not", quoted(part("daemon", "PIDFILE", "closed")), 1},
		{"a daemon without its environment", "env -i " + quoted(part("daemon", "PIDFILE", "closed")), 1},
		{"a background job that ignores signals", quoted(part("stubborn", "PIDFILE")) + " & while [ ! -e PIDFILE ]; do :; done", 1},
		{"a job that is stopped", "setsid sh -c 'echo $$ > PIDFILE; kill -STOP $$' & while [ ! -s PIDFILE ]; do :; done", 1},
		{"several of them", quoted(part("daemon", "PIDFILE-2", "closed")) + "; sleep 1000 & " + quoted(part("daemon", "PIDFILE", "open")), 3},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := start(t)
			result := s.sh(strings.ReplaceAll(test.script, "PIDFILE", s.path("pid")) + "\nexit 5")
			require.Equal(t, 5, result.ExitCode)
			require.False(t, lives(pid(t, s.path("pid"))))
			require.Equal(t, test.leftover, result.Leftover)
			require.Zero(t, s.sh("true").Leftover, "counted once")
		})
	}
}

func TestNothingOutlivesACommandThatMultiplies(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"in its process group":       `grow() { [ $1 = 0 ] && exec sleep 1000; grow $(($1-1)) & grow $(($1-1)) & wait; }; grow 7 & exit 5`,
		"in sessions of their own":   `cat > grow <<'E'` + "\n" + `[ $1 = 0 ] && exec sleep 1000; setsid sh ./grow $(($1-1)) & setsid sh ./grow $(($1-1)) & wait` + "\nE\nsh ./grow 5 & exit 5",
		"by moving on all the time":  `hop() { hop & }; hop; exit 5`,
		"by moving on, in ten ways":  `hop() { hop & }; for i in 1 2 3 4 5 6 7 8 9 10; do hop; done; exit 5`,
		"by moving between sessions": `cat > hop <<'E'` + "\n" + `setsid sh ./hop &` + "\nE\nsh ./hop; exit 5",
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t)
			require.Equal(t, 5, s.sh(script).ExitCode)
			// The supervisor would have adopted every process that the search missed.
			children, err := os.ReadFile(strings.ReplaceAll("/proc/PID/task/PID/children", "PID", strconv.Itoa(s.Pid())))
			require.NoError(t, err)
			require.Empty(t, string(children))
		})
	}
}

func TestOrphansAreCollectedWhileTheCommandRuns(t *testing.T) {
	t.Parallel()
	s := start(t)
	// Otherwise a program that waits for a daemon by its process ID would wait for ever.
	result := s.sh(`pid=$(sh -c 'true & echo $!'); while kill -0 $pid 2>/dev/null; do :; done; exit 5`)
	require.Equal(t, 5, result.ExitCode)
	require.Zero(t, result.Leftover)
}

func TestCloseEndsWhatRuns(t *testing.T) {
	t.Parallel()
	s := start(t)
	failed := make(chan error, 1)
	go func() {
		_, err := s.Run(context.Background(), s.command("sh", "-c", quoted(part("daemon", s.path("daemon"), "open"))+"; "+quoted(part("stubborn", s.path("main")))))
		failed <- err
	}()
	daemon, main := pid(t, s.path("daemon")), pid(t, s.path("main"))
	require.NoError(t, s.Close())
	require.False(t, lives(daemon))
	require.False(t, lives(main))
	require.ErrorIs(t, <-failed, supervisor.ErrSupervisorDied)
	_, err := s.Run(context.Background(), s.command("true"))
	require.ErrorIs(t, err, supervisor.ErrSupervisorDied)
}

func TestReapByToken(t *testing.T) {
	t.Parallel()
	token := newToken()
	mine := unsupervised(t, exec.Command("sleep", "1000"), "SUPERVISED_BY="+token)
	child := exec.Command("sh", "-c", "env -i sleep 1000 & echo $! > pid; wait")
	child.Dir = t.TempDir()
	parent := unsupervised(t, child, "SUPERVISED_BY="+token)
	scrubbed := pid(t, filepath.Join(child.Dir, "pid"))
	longer := unsupervised(t, exec.Command("sleep", "1000"), "SUPERVISED_BY="+token+"1")
	prefixed := unsupervised(t, exec.Command("sleep", "1000"), "NOT_SUPERVISED_BY="+token)

	n, err := supervisor.Reap(token)
	require.NoError(t, err)
	require.Equal(t, 3, n)
	gone(t, mine, parent, scrubbed)
	require.True(t, lives(longer), "another token")
	require.True(t, lives(prefixed), "another variable")

	n, err = supervisor.Reap(token)
	require.NoError(t, err)
	require.Zero(t, n)
}

func TestReapByDirectory(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	sleeper := func(dir string) int {
		require.NoError(t, os.MkdirAll(filepath.Join(root, dir), 0o700))
		cmd := exec.Command("sleep", "1000")
		cmd.Dir = filepath.Join(root, dir)
		return unsupervised(t, cmd)
	}
	in, below, removed := sleeper("desk"), sleeper("desk/a/b"), sleeper("desk/removed")
	require.NoError(t, os.Remove(filepath.Join(root, "desk/removed")))
	away := sleeper("away")
	require.NoError(t, os.Remove(filepath.Join(root, "away")))
	beside, above := sleeper("desk-2"), sleeper(".")
	require.NoError(t, os.Symlink(filepath.Join(root, "desk"), filepath.Join(root, "link")))

	person := exec.Command("sleep", "1000")
	person.Dir = filepath.Join(root, "desk")
	atTerminal(t, person)

	n, err := supervisor.Reap("", filepath.Join(root, "link"), filepath.Join(root, "away"))
	require.NoError(t, err)
	require.Equal(t, 4, n)
	gone(t, in, below, removed, away)
	require.True(t, lives(beside))
	require.True(t, lives(above))
	require.True(t, lives(person.Process.Pid), "a person's shell")
}

func TestReapSparesItselfAndItsAncestors(t *testing.T) {
	t.Parallel()
	token := newToken()
	cmd := exec.Command("sh", "-c", "sleep 1000 & "+quoted(part("reaper", token))+"; exit 5")
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "SUPERVISED_BY="+token)
	out, err := cmd.Output()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, 5, exit.ExitCode())
	require.Equal(t, "1 <nil>\n", string(out), "its sibling, not its parent")
}

func TestReapRefusesWhatWouldBeEverything(t *testing.T) {
	t.Parallel()
	_, err := supervisor.Reap("")
	require.Error(t, err)
	for _, dir := range []string{"", "/", "//", "/usr/.."} {
		_, err := supervisor.Clearable([]string{t.TempDir(), dir})
		require.Error(t, err, "%q", dir)
	}
}

func TestStartRefusesTokensThatReapCouldNotFind(t *testing.T) {
	t.Parallel()
	for _, token := range []string{"", "a\x00b", "a\nb"} {
		_, err := supervisor.Start(token, sandbox.ByNothing)
		require.Error(t, err, "%q", token)
	}
}

// unsupervised starts a process without a supervisor, in its own session.
func unsupervised(t *testing.T, cmd *exec.Cmd, env ...string) int {
	t.Helper()
	cmd.Env = append(os.Environ(), env...)
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	}
	require.NoError(t, cmd.Start())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		select {
		case <-ended:
		case <-time.After(patience):
		}
	})
	return cmd.Process.Pid
}

// atTerminal starts a process with its own terminal, and returns the terminal's keyboard.
func atTerminal(t *testing.T, cmd *exec.Cmd) *os.File {
	t.Helper()
	keyboard, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { keyboard.Close() })
	require.NoError(t, unix.IoctlSetPointerInt(int(keyboard.Fd()), unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(int(keyboard.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	screen, err := os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err)
	defer screen.Close()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = screen, screen, screen
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	unsupervised(t, cmd)
	return keyboard
}
