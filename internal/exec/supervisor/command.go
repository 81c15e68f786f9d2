package supervisor

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"pawl/internal/exec/sandbox"
	"pawl/internal/lib/fsutil/dirfd"
	"pawl/internal/lib/fsutil/durable"
	"pawl/internal/lib/list"
)

// TokenVariable is the environment variable that marks what runs under a supervisor.
const TokenVariable = "SUPERVISED_BY"

// drainWithin is how long to wait for output after the end of a command. Only a process out of reach that was handed
// the descriptor can still write then; all others are dead.
const drainWithin = 2 * time.Second

// job is the command that is running.
type job struct {
	pid     int
	started time.Time
	exited  bool
	status  syscall.WaitStatus
	elapsed time.Duration
	outputs []*capture
	begun   chan error // reports whether the command has begun in its sandbox, if a program makes the sandbox; else nil
}

// unbegun returns why the command never began, or nil if it did. An exit of bubblewrap is no verdict about the command.
func (j *job) unbegun(c Command) error {
	if j.begun == nil {
		return nil
	}
	select {
	case err := <-j.begun:
		if errors.Is(err, io.EOF) {
			said, _ := os.ReadFile(dirfd.At(c.Stderr))
			err = errors.New(strings.TrimSpace(string(said[max(0, len(said)-300):])))
		}
		if err != nil {
			return fmt.Errorf("the sandbox could not be made: %w", err)
		}
	case <-time.After(drainWithin): // something can't be killed; the error of end says so
	}
	return nil
}

// run runs one command to its end and leaves nothing of it behind.
func (s *server) run(id uint64, c Command) (Result, error) {
	result := Result{ExitCode: -1}
	var bounds *sandbox.Bounds
	var reached sandbox.Reached
	if c.Sandbox != nil && c.Sandbox.Limits != (sandbox.Limits{}) {
		bounds = s.bound(c.Sandbox.Limits)
		reached = bounds.Reached()
	}
	if err := s.metering.begin(&c); err != nil {
		return result, err
	}
	j, err := s.start(c)
	if err != nil {
		err = errors.Join(err, s.metering.end())
	}
	if refused := (*startError)(nil); errors.As(err, &refused) {
		result.StartError = refused.Error()
		return result, nil
	} else if err != nil {
		return result, err
	}

	s.attend(j, id, c, &result)
	var failures []error
	result.Leftover, err = s.endAll(j)
	if bounds != nil {
		result.Reached = bounds.Reached().Since(reached)
	}
	if result.Reached.Killed > 0 {
		s.clear(c.Sandbox)
	}
	failures = append(failures, err, s.metering.end())
	failures = append(failures, list.Map(j.outputs, func(o *capture) error { return o.finish(drainWithin) })...)
	if !result.Interrupted && !result.TimedOut {
		failures = append(failures, j.unbegun(c))
	}
	result.StdoutBytes = j.outputs[0].total
	if len(j.outputs) > 1 {
		result.StderrBytes = j.outputs[1].total
	}
	if !j.exited { // it can't be killed; the error says so
		j.elapsed = time.Since(j.started)
	} else if j.status.Exited() {
		result.ExitCode = j.status.ExitStatus()
	} else {
		result.Signal = unix.SignalName(j.status.Signal())
	}
	result.Elapsed = j.elapsed
	if c.Progress != "" {
		writeProgress(c.Progress, c.Spent+j.elapsed)
	}
	return result, errors.Join(failures...)
}

// attend returns when the main process has ended by itself, or when what is left of the command must be killed.
func (s *server) attend(j *job, id uint64, c Command, result *Result) {
	var limit, second, grace <-chan time.Time
	if c.Limit > 0 {
		timer := time.NewTimer(c.Limit - c.Spent)
		defer timer.Stop()
		limit = timer.C
	}
	if c.Progress != "" {
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		second = ticker.C
	}
	var silent chan struct{} // closed when nobody can write output any more
	interrupt := func(flag *bool) {
		s.reap(j)
		if j.exited || grace != nil {
			return
		}
		*flag = true
		s.interrupt(j)
		grace = time.After(c.Grace)
		silent = make(chan struct{})
		go func() {
			for _, o := range j.outputs {
				<-o.done
			}
			close(silent)
		}()
	}
	for {
		select {
		case <-s.children:
			s.reap(j)
		case req, ok := <-s.requests:
			if !ok {
				return
			}
			if req.Prepare != nil {
				s.prepare(*req.Prepare)
			}
			if req.Interrupt && req.ID == id {
				interrupt(&result.Interrupted)
			}
		case <-limit:
			interrupt(&result.TimedOut)
		case <-second:
			writeProgress(c.Progress, c.Spent+time.Since(j.started))
		case <-silent:
			silent = nil
		case <-grace:
			return
		}
		// After an interrupt, whatever still holds the output gets the rest of the grace, even if the main process is
		// gone: a shell dies of SIGINT at once, while the agent that it started may be about to write its final usage
		// event.
		if j.exited && (grace == nil || silent == nil) {
			return
		}
	}
}

// interrupt sends SIGINT once to every process of the command: agents run their tools in
// sessions of their own, so the group is not enough.
func (s *server) interrupt(j *job) {
	_ = unix.Kill(-j.pid, unix.SIGINT)
	procs, _ := supervised(s.token)
	for _, p := range procs {
		if p.pgid != j.pid {
			_ = p.signal(unix.SIGINT)
		}
	}
}

// startError is a fault of the command. Any other error of start is a fault of the infrastructure.
type startError struct{ reason string }

func (e *startError) Error() string { return e.reason }

func refuse(format string, args ...any) error {
	return &startError{fmt.Sprintf(format, args...)}
}

// start opens the files and executes the command, in a session and process group of its own.
func (s *server) start(c Command) (j *job, err error) {
	dir := c.Dir
	if !c.Sandbox.Rooted() {
		dir = dirfd.At(dir)
	}
	var path string
	if sandboxErr := s.within(c.Sandbox, func() { path, err = c.find(dir) }); sandboxErr != nil {
		return nil, sandboxErr
	}
	if err != nil {
		return nil, err
	}
	if c.Sandbox != nil {
		path, c.Argv = c.Sandbox.Wrap(path, c.Argv, c.Dir)
	}
	c.Stdin = cmp.Or(c.Stdin, os.DevNull)
	stdin, err := openInput(c.Stdin)
	if err != nil {
		return nil, fmt.Errorf("open stdin: %w", err)
	}
	defer stdin.Close()

	j = &job{}
	files := []uintptr{stdin.Fd()}
	var ends []*os.File // the command's ends of the pipes
	defer func() {
		for _, f := range ends {
			f.Close() // the command alone may keep a pipe open
		}
		for _, o := range j.outputs {
			if err != nil {
				_ = o.finish(drainWithin)
			}
		}
	}()
	for i, name := range []string{c.Stdout, c.Stderr} {
		if i == 1 && name != "" && name == c.Stdout {
			files = append(files, files[1])
			break
		}
		var find *finder
		if i == 0 {
			if find, err = newFinder(c.Find); err != nil {
				return j, err
			}
		}
		o, end, err := newCapture(name, c.OutputLimit, s.buffers[i], find)
		if err != nil {
			return j, err
		}
		j.outputs, ends, files = append(j.outputs, o), append(ends, end), append(files, end.Fd())
	}
	var hands *os.File // our end of the socket over which the command says that it begins
	if c.Sandbox != nil && c.Sandbox.Hands() {
		ours, theirs, err := socketpair()
		if err != nil {
			return j, fmt.Errorf("a socket for the sandbox: %w", err)
		}
		defer theirs.Close()
		hands, files = ours, append(files, theirs.Fd())
	}
	env := slices.DeleteFunc(c.Env, func(v string) bool { return strings.HasPrefix(v, TokenVariable+"=") })
	env = append(env, TokenVariable+"="+s.token)

	sandboxErr := s.within(c.Sandbox, func() {
		attributes := commandAttributes()
		if c.Sandbox != nil && c.Sandbox.Limits != (sandbox.Limits{}) {
			s.bound(c.Sandbox.Limits).Begin(attributes)
		}
		j.started = time.Now()
		j.pid, err = syscall.ForkExec(path, c.Argv, &syscall.ProcAttr{
			Dir: dir, Env: env, Files: files, Sys: attributes,
		})
	})
	switch {
	case sandboxErr != nil:
		return j, sandboxErr
	case err == nil:
		if hands != nil {
			j.begun = make(chan error, 1)
			go s.serveHanded(hands, c.Sandbox.Egress, j.begun)
		}
		if c.Sandbox != nil {
			firstToGo(j.pid)
		}
		return j, nil
	case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.ENOMEM), errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return j, fmt.Errorf("start %q: %w", path, err)
	case errors.Is(err, syscall.ENOENT):
		return j, refuse("%q cannot be started: the interpreter that it names does not exist", path)
	case errors.Is(err, syscall.ENOEXEC):
		return j, refuse("%q can't be started: it is neither a program for this machine nor a script with a #! line", path)
	default:
		return j, refuse("%q cannot be started in %q: %v", path, c.Dir, err)
	}
}

// find returns the path of the file to execute, relative to dir, which the command knows as its Dir. The supervisor's
// own PATH and directory are not used.
func (c Command) find(dir string) (string, error) {
	if len(c.Argv) == 0 || c.Argv[0] == "" {
		return "", refuse("there is no command to run")
	}
	if info, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		return "", refuse("directory %q does not exist", c.Dir)
	} else if err == nil && !info.IsDir() {
		return "", refuse("%q is not a directory", c.Dir)
	}
	name := c.Argv[0]
	if strings.Contains(name, "/") {
		if filepath.IsAbs(name) {
			return name, runnable(name)
		}
		if err := runnable(filepath.Join(dir, name)); err != nil {
			return name, err
		}
		if dir != c.Dir && c.Sandbox == nil {
			return name, nil // it is started from there
		}
		return filepath.Join(c.Dir, name), nil
	}
	path, set := sandbox.Values(c.Env)["PATH"]
	if !set {
		path = "/usr/local/bin:/usr/bin:/bin"
	}
	var denied error
	for _, dir := range filepath.SplitList(path) {
		// With "." in PATH this would run what the agent has put there.
		if !filepath.IsAbs(dir) {
			continue
		}
		candidate := filepath.Join(dir, name)
		err := runnable(candidate)
		if err == nil {
			return candidate, nil
		}
		if _, statErr := os.Stat(candidate); statErr == nil && denied == nil {
			denied = err
		}
	}
	if denied != nil {
		return "", denied
	}
	return "", refuse("%q was not found in PATH (%s); install it or give its full path", name, path)
}

func runnable(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return refuse("%q does not exist", path)
	case err != nil:
		return refuse("%q cannot be started: %v", path, err)
	case info.IsDir():
		return refuse("%q is a directory", path)
	case info.Mode()&0o111 == 0:
		return refuse("%q is not executable; chmod +x it", path)
	}
	return nil
}

// openInput opens the command's input. Opening a FIFO that nobody writes to does not block the supervisor; it may block
// the command.
func openInput(path string) (*os.File, error) {
	fd, err := unix.Open(dirfd.At(path), unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), unix.SetNonblock(fd, false)
}

// writeProgress is best effort: a full disk must not end a command. The worst result is that the next attempt does not
// know the time used.
func writeProgress(path string, spent time.Duration) {
	_ = durable.WriteCache(path, []byte(strconv.FormatInt(spent.Milliseconds(), 10)+"\n"))
}

// ReadProgress returns the time in a Progress file. It returns 0 if there is no file, or if a power cut emptied it.
func ReadProgress(path string) (time.Duration, error) {
	data, err := os.ReadFile(dirfd.At(path))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return 0, fmt.Errorf("read progress: %w", dirfd.Named(err, path))
	}
	ms, _ := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
	return time.Duration(ms) * time.Millisecond, nil
}
