package engine

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"pawl/internal/fault"
	"pawl/internal/lib/fsutil/dirfd"
	"pawl/internal/lib/fsutil/durable"
)

// The process with the lock on `$PAWL_HOME/engine/lock` owns the engine and its database. The file also contains the
// owner's process ID, so nobody believes an engine.json that a dead owner left.

func lockPath(dir string) string { return filepath.Join(dir, "lock") }

// own writes this process's ID into the lock file, which this process has locked.
func own(lock *os.File) error {
	err := lock.Truncate(0)
	if err == nil {
		_, err = lock.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	if err != nil {
		return fmt.Errorf("write the engine's lock: %w", err)
	}
	return nil
}

// owner returns the process ID in the lock file, which the last owner wrote, 0 for none.
func owner(dir string) int {
	b, _ := os.ReadFile(dirfd.At(lockPath(dir)))
	pid, _ := strconv.Atoi(strings.TrimSpace(string(b)))
	return pid
}

// hasServed reports whether the engine of the owner with that process ID has served before.
func hasServed(dir string, pid int) bool {
	e, err := readEndpoint(dir)
	return err == nil && pid != 0 && e.PID == pid
}

// isStopped reports whether somebody has stopped a process, by SIGSTOP or Ctrl-Z. Where /proc does not say it, the answer
// is no.
func isStopped(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, fields, found := bytes.Cut(stat, []byte(") ")) // behind the program's name
	return found && bytes.HasPrefix(fields, []byte("T"))
}

// unanswered is the fault for an engine whose owner lives and does not answer.
func unanswered(pid int) error {
	text, first := "does not answer", "Look at that process"
	if isStopped(pid) {
		text, first = "is stopped (SIGSTOP or Ctrl-Z)", fmt.Sprintf("Let it continue (kill -CONT %d)", pid)
	}
	return fault.New(fault.EngineUnreachable, "process %d runs the engine of this host, and it %s", pid, text).
		Advise(fmt.Sprintf("%s, or end it (kill -9 %d); then repeat the command. Its loops stay.", first, pid))
}

// Unanswered returns why the engine of a directory, which Find does not find, does not answer although its process lives.
// It returns nil if no engine runs.
func Unanswered(dir string) error {
	locked, err := durable.Locked(lockPath(dir))
	if pid := owner(dir); err == nil && locked && hasServed(dir, pid) {
		return unanswered(pid)
	}
	return nil
}
