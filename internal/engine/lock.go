package engine

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// lock is the flock on `$PAWL_HOME/engine/lock`; whoever holds it owns the engine and its
// database. The kernel drops it when the owner dies, however it dies. The file also holds the
// owner's process ID, so that an engine.json that a dead owner left behind is not believed.
type lock struct{ file *os.File }

func openLock(path string) (*lock, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open engine lock: %w", err)
	}
	return &lock{f}, nil
}

// try takes the lock if nobody has it.
func (l *lock) try() (bool, error) {
	return l.flock(unix.LOCK_EX | unix.LOCK_NB)
}

// free reports whether nobody has the lock. It takes it shared and only for a moment, so that
// readers do not get in each other's way.
func (l *lock) free() (bool, error) {
	ok, err := l.flock(unix.LOCK_SH | unix.LOCK_NB)
	if ok {
		_, err = l.flock(unix.LOCK_UN)
	}
	return ok, err
}

// wait blocks, also in the kernel, until the lock is ours; it cannot be interrupted.
func (l *lock) wait() error {
	_, err := l.flock(unix.LOCK_EX)
	return err
}

// own writes this process into the lock file.
func (l *lock) own() error {
	pid := []byte(strconv.Itoa(os.Getpid()) + "\n")
	if err := l.file.Truncate(0); err != nil {
		return fmt.Errorf("write engine lock: %w", err)
	}
	if _, err := l.file.WriteAt(pid, 0); err != nil {
		return fmt.Errorf("write engine lock: %w", err)
	}
	return nil
}

// owner is the process that wrote itself into the lock file last, 0 if none did.
func (l *lock) owner() int {
	buf := make([]byte, 32)
	n, _ := l.file.ReadAt(buf, 0)
	pid, _ := strconv.Atoi(strings.TrimSpace(string(buf[:n])))
	return pid
}

// release gives the lock up and keeps the file for another wait.
func (l *lock) release() error {
	_, err := l.flock(unix.LOCK_UN)
	return err
}

// close gives the lock up, if it is held.
func (l *lock) close() error { return l.file.Close() }

func (l *lock) flock(how int) (bool, error) {
	conn, err := l.file.SyscallConn()
	if err != nil {
		return false, err
	}
	// Control, and not Fd, keeps the number from being given to another file while this waits.
	var flockErr error
	err = conn.Control(func(fd uintptr) {
		for {
			if flockErr = unix.Flock(int(fd), how); !errors.Is(flockErr, unix.EINTR) {
				return
			}
		}
	})
	switch {
	case errors.Is(flockErr, unix.EWOULDBLOCK):
		return false, nil
	case err != nil || flockErr != nil:
		return false, fmt.Errorf("lock %s: %w", l.file.Name(), errors.Join(err, flockErr))
	}
	return true, nil
}
