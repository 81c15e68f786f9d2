package world

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// TieToParent ends a process when this one dies, for whatever reason.
func TieToParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// Survivors returns the processes that have a string in their environment or arguments, as all processes of a world's
// loop have.
func Survivors(mark string) (found []string) {
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
