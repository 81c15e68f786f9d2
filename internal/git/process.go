package git

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// detach gives git its own session. So Ctrl-C at the terminal does not interrupt a transaction, and git and ssh,
// which have no terminal, can't stop to ask for a password.
func detach(cmd *exec.Cmd, user bool) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if user {
		// Only such a git may hang on a network. Work on the store ends by itself within milliseconds, and finishing
		// it is better than ending it.
		dieWithParent(cmd.SysProcAttr)
	}
}

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
