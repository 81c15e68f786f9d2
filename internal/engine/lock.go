package engine

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"pawl/internal/held"
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
	b, _ := os.ReadFile(held.At(lockPath(dir)))
	pid, _ := strconv.Atoi(strings.TrimSpace(string(b)))
	return pid
}
