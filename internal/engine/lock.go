package engine

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"pawl/internal/held"
)

// Whoever has the lock on `$PAWL_HOME/engine/lock` owns the engine and its database. The file also
// holds the owner's process ID, so that an engine.json that a dead owner left behind is not believed.

func lockPath(dir string) string { return filepath.Join(dir, "lock") }

// own writes this process into the lock file, which it has locked.
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

// owner is the process that wrote itself into the lock file last, 0 if none did.
func owner(dir string) int {
	b, _ := os.ReadFile(held.At(lockPath(dir)))
	pid, _ := strconv.Atoi(strings.TrimSpace(string(b)))
	return pid
}
