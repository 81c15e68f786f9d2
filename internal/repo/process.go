package repo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// detach gives git a session of its own: Ctrl-C at the terminal must not reach a transaction
// half way, and without a terminal neither git nor ssh can stop to ask for a password.
func detach(cmd *exec.Cmd, remote bool) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if remote {
		// Only what may hang on a network: work on the store ends by itself within milliseconds
		// and is better finished than cut.
		dieWithParent(cmd.SysProcAttr)
	}
}

func terminate(cmd *exec.Cmd) error { return signal(cmd, syscall.SIGTERM) }

// killGroup ends what a cancelled git left behind (an ssh, a helper).
func killGroup(cmd *exec.Cmd) { _ = signal(cmd, syscall.SIGKILL) }

func signal(cmd *exec.Cmd, s syscall.Signal) error {
	if cmd.Process == nil {
		return os.ErrProcessDone
	}
	err := syscall.Kill(-cmd.Process.Pid, s)
	if errors.Is(err, syscall.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}

// lockFile takes the advisory lock on path and waits for it until ctx ends. The lock goes with
// the open file, also into children: see call.lock.
func lockFile(ctx context.Context, path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, syscall.EINTR) && !errors.Is(err, syscall.EWOULDBLOCK) {
			_ = f.Close()
			return nil, &os.PathError{Op: "flock", Path: path, Err: err}
		}
		select {
		case <-ctx.Done():
			_ = f.Close()
			return nil, fmt.Errorf("waiting for the lock %s: %w", path, ctx.Err())
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// What a path below a file gives, a folder where a file was asked for, a process that is gone.
var (
	errBrokenPipe error = syscall.EPIPE
	errNotDir     error = syscall.ENOTDIR
	errIsDir      error = syscall.EISDIR
)
