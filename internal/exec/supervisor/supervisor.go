// Package supervisor runs commands so that nothing of them survives: not when the command ends, not
// when it is interrupted or out of time, and not when the worker that asked for it dies.
//
// One supervisor process per active loop does the work. It is this binary, executed once more,
// in a session of its own: Ctrl-C in the worker's terminal reaches neither it nor its commands.
// It adopts whatever a command daemonises (it is a child subreaper, so a process that calls
// setsid twice and drops its parent becomes the supervisor's child), and it knows that the
// worker is gone by the end of its control socket. There is deliberately no parent-death signal
// on the supervisor itself: that would kill the one process that can still end the others.
//
// The package never decides what a command's outcome means, never retries, never adds to an
// environment except SUPERVISED_BY, and never reads or keeps anything of a command besides its
// two output files and its progress file. What a command may reach is decided elsewhere
// (Command.Sandbox). Without that, one that asks somebody else to run things (a container engine,
// cron, systemd) is out of its reach, except for what Reap finds by working directory.
//
// Start reading at [Supervisor.Run], then server.run in command.go, which is the same command
// seen from the supervisor. end in kill.go is how things are made to end. On macOS, which has
// no subreaper, daemons are found by their environment instead.
package supervisor

import (
	"cmp"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"pawl/internal/exec/egress"
	"pawl/internal/exec/llmproxy"
	"pawl/internal/exec/sandbox"
	"pawl/internal/lib/fsutil/dirfd"
)

// ErrSupervisorDied is what Run wraps if the supervisor was killed or closed. The result of the command is unknown, and
// Reap ends whatever is left of it.
var ErrSupervisorDied = errors.New("the supervisor died")

const (
	// DefaultOutputLimit is the OutputLimit of a command that has none.
	DefaultOutputLimit = 8 << 20
	// DefaultGrace is the Grace of a command that has none.
	DefaultGrace = 5 * time.Second

	readyWithin = 30 * time.Second // for starting the supervisor on a busy host
)

// closeWithin is the time to end everything and the supervisor itself; a variable for the tests.
var closeWithin = 2 * killWithin

// Command is one thing to run. Its paths are absolute, except Argv[0], which is looked up as a shell would: in Dir if it
// contains a slash, else in the absolute directories of Env's PATH.
type Command struct {
	Argv []string
	Dir  string
	// Env is the complete environment; SUPERVISED_BY=<token> is added to it.
	Env []string
	// Stdin is the file to read from; "" is /dev/null.
	Stdin string
	// Stdout and Stderr are files, created or truncated with mode 0600; "" throws the stream
	// away. The same path twice is one stream, in the order in which it was written, counted as
	// stdout.
	Stdout, Stderr string
	// OutputLimit is the maximum size of each stream's file in bytes. Of a longer stream, the first quarter and the
	// last three quarters of the limit are kept, with a line between them that says how much is missing ([Omission]).
	// The file can be followed as it grows up to the limit; after that, it is in order only once Run has returned. A
	// command never blocks, and is never killed, for writing a lot.
	OutputLimit int64
	// Find are patterns that are looked for in each line of stdout while it passes, also in what the file loses. The lines
	// that match are in the file Stdout with [FoundSuffix], the last MiB of them.
	Find []string
	// Limit is the active time that the command may take, measured by the supervisor on a clock
	// that stands still while the host sleeps; 0 is no limit.
	Limit time.Duration
	// Spent is how much of Limit earlier attempts have used.
	Spent time.Duration
	// Grace is the time between SIGINT and SIGKILL.
	Grace time.Duration
	// Sandbox says what the command may reach; nil means whatever the worker may reach.
	Sandbox *sandbox.Policy
	// Meter, if given, is the meter through which an agent's program reaches its model. Its address replaces
	// llmproxy.Address in Argv and Env.
	Meter *llmproxy.Config
	// Progress, if given, is a file with Spent plus the time used so far, in milliseconds. It is replaced atomically
	// about every second and at the end. If this attempt is lost, the next one gets its Spent from there, with
	// ReadProgress.
	Progress string
}

// Result is the result of a command. All of it is a verdict about the command.
type Result struct {
	ExitCode int    // of the main process; -1 when a signal ended it or it never ran
	Signal   string // what ended the main process ("SIGKILL"), else ""
	// TimedOut and Interrupted say what ended the command first: the Limit or the context.
	TimedOut, Interrupted bool
	// Elapsed is the time from the start of the main process to its end, without the supervisor's cleaning up.
	Elapsed time.Duration
	// Leftover counts the processes, besides the main one, that had to be killed.
	Leftover int
	// StdoutBytes and StderrBytes count what was written, kept or not.
	StdoutBytes, StderrBytes int64
	// StartError says why the command could not be started (not found, no permission, directory
	// missing), in words for the person who wrote it; "" when it ran.
	StartError string
	// Refused lists the connections that the sandbox's proxy refused, each once.
	Refused []egress.Refusal
	// Reached says how often the command ran into the sandbox's limits.
	Reached sandbox.Reached
}

// Effort is what processes have used: CPU time, and the bytes that they have read and written.
type Effort struct {
	CPU   time.Duration
	Bytes int64
}

// Supervisor is the worker's handle on a supervisor process.
type Supervisor struct {
	token   string
	cmd     *exec.Cmd
	control *os.File
	sending sync.Mutex
	encode  *gob.Encoder
	replies chan reply    // closed when the control socket has ended
	exited  chan struct{} // closed when the process has been waited for
	turn    chan struct{} // held by the Run that is under way
	lastID  uint64
	close   func() error
}

// Start starts a supervisor. Token marks everything that runs under it, so that Reap can find it even after the
// supervisor was killed. Other users of the host can see it (ps). By says how the sandboxes of commands, if there are
// any, protect files; one of these means needs the supervisor in a user namespace.
func Start(token string, means sandbox.Means) (*Supervisor, error) {
	if os.Args[0] == supervisorName {
		// Without this check, a program that forgets Main would start itself endlessly.
		return nil, errors.New("start supervisor: this program does not call supervisor.Main first in main or TestMain")
	}
	if token == "" || strings.ContainsAny(token, "\x00\n") {
		return nil, fmt.Errorf("start supervisor: %q is no token", token)
	}
	ours, theirs, err := socketpair()
	if err != nil {
		return nil, fmt.Errorf("start supervisor: control socket: %w", err)
	}
	s := &Supervisor{
		token: token, control: ours, encode: gob.NewEncoder(ours),
		replies: make(chan reply, 1),
		exited:  make(chan struct{}), turn: make(chan struct{}, 1),
	}
	s.close = sync.OnceValue(s.end)
	s.cmd = exec.Command(executable())
	s.cmd.Args = []string{supervisorName, token, strconv.Itoa(os.Getpid())}
	// The supervisor gets nothing of the worker's environment, which contains secrets, and only a few threads.
	s.cmd.Env = []string{"GOMAXPROCS=1", "GOTRACEBACK=none", "GORACE=" + os.Getenv("GORACE")}
	s.cmd.Dir = "/"
	s.cmd.ExtraFiles = []*os.File{theirs}
	folders := dirfd.Hand(s.cmd)
	strangers := sandbox.HandStrangers(s.cmd, means)
	s.cmd.SysProcAttr = sandbox.Supervisor(means)
	s.cmd.SysProcAttr.Setsid = true
	err = s.cmd.Start()
	theirs.Close()
	if err != nil {
		ours.Close()
		return nil, fmt.Errorf("start supervisor: %w", err)
	}
	s.send(request{Folders: folders, Strangers: strangers})
	go s.listen()

	timeout := time.NewTimer(readyWithin)
	defer timeout.Stop()
	select {
	case r, alive := <-s.replies:
		if _, err = r.outcome(alive); err == nil {
			return s, nil
		}
	case <-timeout.C:
		err = fmt.Errorf("no answer within %s; does the program call supervisor.Main first in main or TestMain?", readyWithin)
	}
	s.cmd.Process.Kill()
	ours.Close()
	<-s.exited
	return nil, fmt.Errorf("start supervisor: %w", err)
}

// Run runs one command and returns its result when nothing of the command is left. When ctx ends, the command's process
// group and every descendant get SIGINT, then the grace, then SIGKILL, and the result says Interrupted. If ctx has
// ended before, nothing starts and no file is touched. Calls wait for each other: a supervisor runs one command at a
// time.
//
// An error is about the infrastructure (ErrSupervisorDied, an output file that could not be written, a process that
// SIGKILL does not end), never a verdict about the command. The result beside an error contains what is known.
func (s *Supervisor) Run(ctx context.Context, c Command) (Result, error) {
	notRun := Result{ExitCode: -1, Interrupted: true}
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return notRun, nil
	}
	if ctx.Err() != nil {
		return notRun, nil
	}
	if c.Limit > 0 && c.Spent >= c.Limit {
		return Result{ExitCode: -1, TimedOut: true}, nil
	}
	c.OutputLimit, c.Grace = cmp.Or(c.OutputLimit, DefaultOutputLimit), cmp.Or(c.Grace, DefaultGrace)
	answer, err := s.ask(request{Run: &c}, ctx.Done(), c.Grace)
	if err != nil {
		err = fmt.Errorf("run %q: %w", c.Argv, err)
	}
	return answer.Result, err
}

// ask sends a request and returns its reply. If interrupt ends before, it interrupts the command, which has the grace.
func (s *Supervisor) ask(r request, interrupt <-chan struct{}, grace time.Duration) (reply, error) {
	s.lastID++
	r.ID = s.lastID
	s.send(r)
	var overdue <-chan time.Time
	for {
		select {
		case answer, alive := <-s.replies:
			return answer.outcome(alive)
		case <-interrupt:
			interrupt = nil
			s.send(request{ID: r.ID, Interrupt: true})
			// A supervisor that somebody stopped (SIGSTOP) must not delay a halt for ever.
			overdue = time.After(grace + closeWithin)
		case <-overdue:
			s.cmd.Process.Kill()
		}
	}
}

// Prepare starts to build the sandbox for a command of the policy that runs next, so that the command need not wait for
// it. Prepare itself does not wait. If the sandbox can't be built, the command gets the error.
func (s *Supervisor) Prepare(p sandbox.Policy) { s.send(request{Prepare: &p}) }

func (s *Supervisor) send(r request) {
	s.sending.Lock()
	defer s.sending.Unlock()
	_ = s.encode.Encode(r) // a failed write is followed by the end of the socket, which listen notices
}

// Check tries the questions in the sandbox in which commands of the policy run, and returns the findings. It waits for
// its turn, as Run does. An error says nothing about the sandbox.
func (s *Supervisor) Check(ctx context.Context, c Check) ([]sandbox.Finding, error) {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	answer, err := s.ask(request{Check: &c}, nil, 0)
	if err != nil {
		err = fmt.Errorf("checking the sandbox: %w", err)
	}
	return answer.Findings, err
}

// Close ends what is running, without grace, and waits for the supervisor process.
func (s *Supervisor) Close() error { return s.close() }

func (s *Supervisor) end() error {
	s.control.Close()
	timeout := time.NewTimer(closeWithin)
	defer timeout.Stop()
	select {
	case <-s.exited:
	case <-timeout.C:
		s.cmd.Process.Kill()
		<-s.exited
	}
	if s.cmd.ProcessState.Success() {
		return nil
	}
	// It was killed, or could not end everything.
	if _, err := Reap(s.token); err != nil {
		return fmt.Errorf("close supervisor: %w", err)
	}
	return nil
}

// listen passes on replies until the socket ends, and then waits for the process.
func (s *Supervisor) listen() {
	decode := gob.NewDecoder(s.control)
	for {
		var r reply
		if err := decode.Decode(&r); err != nil {
			break
		}
		s.replies <- r
	}
	close(s.replies)
	if s.cmd.Wait() != nil { // one that was killed could not remove its own cgroups
		_ = sandbox.RemoveBounds(s.token) // the next supervisor takes over what stays, or Reap removes it
	}
	close(s.exited)
}

// socketpair returns the two ends of the control socket. No other child inherits them, so the socket ends exactly when
// the worker dies.
func socketpair() (ours, theirs *os.File, err error) {
	syscall.ForkLock.RLock()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err == nil {
		unix.CloseOnExec(fds[0])
		unix.CloseOnExec(fds[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, nil, err
	}
	_ = unix.SetNonblock(fds[0], true) // so that Close ends a read that waits
	return os.NewFile(uintptr(fds[0]), "supervisor"), os.NewFile(uintptr(fds[1]), "worker"), nil
}
