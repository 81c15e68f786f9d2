package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// tieToParent ends a process when this one dies, however that happens.
func tieToParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// survivors are the processes that carry a string in their environment or arguments, as what
// runs for a loop of a world does.
func survivors(mark string) (found []string) {
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range all {
		environ, _ := os.ReadFile(filepath.Join(dir, "environ"))
		cmdline, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		if strings.Contains(string(environ), mark) || strings.Contains(string(cmdline), mark) {
			found = append(found, filepath.Base(dir)+": "+strings.ReplaceAll(strings.TrimRight(string(cmdline), "\x00"), "\x00", " "))
		}
	}
	return found
}
