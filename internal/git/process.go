package git

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// detach gives git a session of its own: Ctrl-C at the terminal must not reach a transaction
// half way, and without a terminal neither git nor ssh can stop to ask for a password.
func detach(cmd *exec.Cmd, user bool) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if user {
		// Only this may hang on a network. Work on the store ends by itself within milliseconds
		// and had better be finished than cut.
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
