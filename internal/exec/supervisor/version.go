package supervisor

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// versionTime is how long a program may take to print its version.
const versionTime = 15 * time.Second

// Version returns the first line that a program prints when it is started with --version, in this environment (nil:
// this process's). If that fails, it returns the last line and an error. No process that the program started is left in
// any case.
func Version(ctx context.Context, path string, env []string) (string, error) {
	limited, cancel := context.WithTimeout(ctx, versionTime)
	defer cancel()
	cmd := exec.CommandContext(limited, path, "--version")
	cmd.Env, cmd.SysProcAttr = env, &syscall.SysProcAttr{Setpgid: true}
	end := func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.Cancel, cmd.WaitDelay = end, time.Second
	out, err := cmd.CombinedOutput()
	if cmd.Process != nil {
		_ = end()
	}
	if limited.Err() != nil && ctx.Err() == nil {
		err = fmt.Errorf("it did not end within %v", versionTime)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if err != nil {
		return lines[len(lines)-1], err
	}
	return lines[0], nil
}
