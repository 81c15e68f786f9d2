package world

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Done runs a command that must succeed.
func (w *World) Done(args ...string) Said {
	w.T.Helper()
	s := w.Pawl(args...)
	require.Equal(w.T, 0, s.Code, "%s%s", s.Out, s.Err)
	return s
}

// Plain asserts that a message for people contains neither a stack nor a Go type.
func Plain(t testing.TB, text string) {
	t.Helper()
	for _, bad := range []string{"goroutine ", "/proc/self/", ".go:", "*fault", "*repo.", "%!", "<nil>", "context canceled", "type:", "panic", "strconv"} {
		assert.NotContains(t, text, bad)
	}
}

// Output runs a program in the world's environment.
func (w *World) Output(cmd *exec.Cmd) Said {
	w.T.Helper()
	var out, stderr strings.Builder
	cmd.Dir = cmp.Or(cmd.Dir, w.Dir)
	cmd.Env, cmd.Stdout, cmd.Stderr = w.Environ(), &out, &stderr
	TieToParent(cmd)
	require.NoError(w.T, cmd.Start())
	_ = cmd.Wait()
	if testing.Verbose() && !slices.Contains(cmd.Args, "query") {
		w.T.Logf("$ %s %s\n%s%s[exit %d]", filepath.Base(cmd.Path), strings.Join(cmd.Args[1:], " "), clip(out.String()), clip(stderr.String()), cmd.ProcessState.ExitCode())
	}
	return Said{cmd.ProcessState.ExitCode(), out.String(), stderr.String()}
}

// Refused sends a message that must be refused with a code.
func (w *World) Refused(code string, args ...string) Said {
	w.T.Helper()
	s := w.Pawl(args...)
	require.Equal(w.T, 2, s.Code, "%v: %s%s", args, s.Out, s.Err)
	require.Contains(w.T, s.Err, "("+code+")", "%v", args)
	require.Empty(w.T, s.Out)
	Plain(w.T, s.Err)
	return s
}

// Shell runs a command that pawl told a person to type.
func (w *World) Shell(command string) {
	w.T.Helper()
	cmd := exec.Command("sh", "-c", command)
	cmd.Env = Environ(w.Home, w.Dir)
	out, err := cmd.CombinedOutput()
	require.NoError(w.T, err, "%s: %s", command, out)
}

// Said is the exit code and output of a command.
type Said struct {
	Code     int
	Out, Err string
}

// Command is a running pawl.
type Command struct {
	w        *World
	Cmd      *exec.Cmd
	args     []string
	Out, Err string // the paths of files
	Gone     chan struct{}
}

// Start starts a command.
func (w *World) Start(args ...string) *Command {
	w.T.Helper()
	return w.Prepare(args...).Begin()
}

// Prepare returns a command that has not started, so that a test can change it.
func (w *World) Prepare(args ...string) *Command {
	w.T.Helper()
	c := &Command{w: w, args: args, Cmd: exec.Command(Program(w.T), args...), Gone: make(chan struct{})}
	c.Cmd.Dir, c.Cmd.Env = w.Dir, w.Environ()
	TieToParent(c.Cmd)
	c.Cmd.SysProcAttr.Credential = w.User
	return c
}

// Environ returns the environment of the world's programs. $HOME is not a folder around the world, because a sandbox
// hides it.
func (w *World) Environ() []string {
	return append(append(Environ(w.Home, w.Dir), "HOME="+filepath.Join(w.Dir, "user")), w.Env...)
}

// Begin starts the command.
func (c *Command) Begin() *Command {
	c.w.T.Helper()
	stdout, err := os.CreateTemp(c.w.Dir, "stdout")
	require.NoError(c.w.T, err)
	defer stdout.Close()
	stderr, err := os.CreateTemp(c.w.Dir, "stderr")
	require.NoError(c.w.T, err)
	defer stderr.Close()
	c.Cmd.Stdout, c.Cmd.Stderr, c.Out, c.Err = stdout, stderr, stdout.Name(), stderr.Name()
	require.NoError(c.w.T, c.Cmd.Start())
	go func() {
		c.Cmd.Wait()
		close(c.Gone)
	}()
	return c
}

// Wait waits for the command's end.
func (c *Command) Wait() Said {
	c.w.T.Helper()
	select {
	case <-c.Gone:
	case <-time.After(Patience):
		c.Cmd.Process.Kill()
		<-c.Gone
		c.w.T.Fatalf("pawl %s does not end\n%s", strings.Join(c.args, " "), ReadFile(c.Err))
	}
	s := Said{c.Cmd.ProcessState.ExitCode(), ReadFile(c.Out), ReadFile(c.Err)}
	if testing.Verbose() && c.args[0] != "show" {
		c.w.T.Logf("$ pawl %s\n%s%s[exit %d]", strings.Join(c.args, " "), clip(s.Out), clip(s.Err), s.Code)
	}
	return s
}

func clip(text string) string {
	const most = 4000
	if len(text) > most {
		return text[:most] + "…\n"
	}
	return text
}

// Interrupt is Ctrl-C.
func (c *Command) Interrupt() {
	c.w.T.Helper()
	require.NoError(c.w.T, c.Cmd.Process.Signal(syscall.SIGINT))
}

// Pawl runs a command to its end.
func (w *World) Pawl(args ...string) Said {
	w.T.Helper()
	return w.Start(args...).Wait()
}
