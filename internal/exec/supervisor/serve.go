package supervisor

import (
	"encoding/gob"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"pawl/internal/exec/sandbox"
	"pawl/internal/lib/fsutil/dirfd"
)

// supervisorName is argv[0] of a supervisor. Main, Reap and people with ps recognise it by that.
const supervisorName = "pawl-supervisor"

const controlFD = 3

// request goes from the worker to the supervisor, reply comes back. They are gobs and not JSON, because arguments,
// environments and paths are bytes that need not be UTF-8. Both ends are the same binary, so versions always agree.
type request struct {
	ID        uint64
	Folders   []string // only in the first request: the folders that the worker holds and has handed over
	Strangers uintptr  // only in the first request: sandbox.HandStrangers
	Run       *Command
	Check     *Check
	Prepare   *sandbox.Policy
	Interrupt bool // interrupts command ID; no effect if that has ended
}

// reply answers Run and Check. The first one says that the supervisor is ready, or why it is not.
type reply struct {
	Result   Result
	Findings []sandbox.Finding
	Error    string
}

// outcome returns the reply with its error. alive says whether there was one, or the supervisor has died.
func (r reply) outcome(alive bool) (reply, error) {
	switch {
	case !alive:
		return reply{Result: Result{ExitCode: -1}}, ErrSupervisorDied
	case r.Error != "":
		return r, errors.New(r.Error)
	}
	return r, nil
}

// Main runs the supervisor if this process was executed as one, and then never returns.
// Otherwise it does nothing. Call it first in every main and TestMain.
func Main() {
	sandbox.Main()
	if len(os.Args) != 3 || os.Args[0] != supervisorName {
		return
	}
	os.Exit(serve(os.Args[1]))
}

// server is the supervisor's side. Everything but reading pipes happens on the main goroutine. It alone forks and
// waits, so there are no locks and no stale process IDs.
type server struct {
	token    string
	requests chan request   // closed when the worker is gone
	children chan os.Signal // something ended
	encode   *gob.Encoder
	buffers  [2][]byte       // for copying stdout and stderr, kept between commands
	rooms    []*room         // the newest last
	running  *sandbox.Policy // of the running command; nil if none runs or it has none
	bounds   *sandbox.Bounds // nil if there are no limits
	refusals refusals
	handed   atomic.Pointer[net.Listener] // the listener that the running command has handed out
	metering metering
}

func serve(token string) (code int) {
	// The parent-death signal of a command comes when the thread that forked it ends. This one
	// stays until the process does.
	runtime.LockOSThread()
	closeOnExec()
	_ = unix.SetNonblock(controlFD, true)
	control := os.NewFile(controlFD, "worker")

	s := &server{
		token:    token,
		requests: make(chan request),
		children: make(chan os.Signal, 1),
		encode:   gob.NewEncoder(control),
		buffers:  [2][]byte{make([]byte, copyBuffer), make([]byte, copyBuffer)},
	}
	signal.Notify(s.children, unix.SIGCHLD)
	// The worker decides when the supervisor ends. A service manager may send SIGTERM to everything, or a command may
	// signal one of the supervisor's threads. Signals are caught and dropped, not ignored, because commands would
	// inherit ignored signals.
	signal.Notify(make(chan os.Signal, 1))

	var ready reply
	if err := becomeReaper(); err != nil {
		ready.Error = fmt.Sprintf("become a subreaper: %v", err)
	} else if err := sandbox.Settle(); err != nil {
		ready.Error = fmt.Sprintf("settle: %v", err)
	}
	var first request
	requests := gob.NewDecoder(control)
	if err := requests.Decode(&first); err != nil {
		return 1
	}
	dirfd.Take(controlFD+1, first.Folders)
	sandbox.TakeStrangers(first.Strangers)
	if err := s.encode.Encode(ready); err != nil || ready.Error != "" {
		return 1
	}
	go s.receive(requests)

	defer func() {
		// Also after a panic: nothing may outlive the supervisor.
		if _, err := s.endAll(&job{}); err != nil || recover() != nil {
			code = 1
		}
		for _, room := range s.rooms {
			room.leave()
		}
		if s.bounds != nil { // the worker may be gone, and nobody may come to recover its loop
			s.bounds.Close()
			_ = sandbox.RemoveBounds(s.token)
		}
	}()
	for req := range s.requests {
		var answer reply
		var err error
		switch {
		case req.Prepare != nil:
			s.prepare(*req.Prepare)
			continue
		case req.Run != nil:
			s.running = req.Run.Sandbox
			answer.Result, err = s.run(req.ID, *req.Run)
			s.running = nil
			s.hold(nil)
			answer.Result.Refused = s.refusals.take()
		case req.Check != nil:
			answer.Findings, err = s.check(*req.Check)
			s.refusals.take() // connections tried for the contract belong to no command
		default:
			continue
		}
		if err != nil {
			answer.Error = err.Error()
		}
		_ = s.encode.Encode(answer) // if the worker is gone, requests end too
	}
	return 0
}

func (s *server) receive(decode *gob.Decoder) {
	defer close(s.requests)
	for {
		var req request
		if err := decode.Decode(&req); err != nil {
			return
		}
		s.requests <- req
	}
}

// reap collects the children that have ended, including adopted ones, and reports whether others are left. Where
// orphans are adopted, descendants always have a child among them.
func (s *server) reap(j *job) (othersLeft bool) {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG|waitAll, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return false
		case pid == 0:
			return true
		case pid == j.pid:
			j.exited, j.status, j.elapsed = true, status, time.Since(j.started)
		}
	}
}

// endAll kills every descendant and returns how many there were besides the main process.
func (s *server) endAll(j *job) (int, error) {
	if s.reap(j) && j.pid != 0 {
		// One call stops a whole group, however fast it forks. Searching the process table for members while they run
		// could be a race that can't be won.
		_ = unix.Kill(-j.pid, unix.SIGSTOP)
	}
	killed, err := end(target{
		find: func() ([]process, error) { return supervised(s.token) },
		gone: func() (bool, error) {
			if s.reap(j) {
				return false, nil
			}
			if adopting {
				return true, nil
			}
			left, err := supervised(s.token)
			return len(left) == 0, err
		},
		wait: func(pause time.Duration) {
			select {
			case <-s.children:
			case <-time.After(pause):
			}
		},
		groups: true,
	})
	delete(killed, j.pid)
	return len(killed), err
}
