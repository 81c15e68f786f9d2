package durable

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"

	"pawl/internal/held"
)

// ErrLocked is what TryLock returns where another process has the lock.
var ErrLocked = errors.New("another process has the lock")

// A lock that is held for a moment is asked for again at once, one that is held for days now and then.
const (
	soonest = time.Millisecond
	latest  = 50 * time.Millisecond
)

// Lock takes the lock on the file path, which it makes where it is missing, and waits for it until ctx
// ends. The lock is held until the returned file is closed, by this process and by each that
// inherited it; the kernel closes it for a process that dies.
func Lock(ctx context.Context, path string) (*os.File, error) {
	f, err := os.OpenFile(held.At(path), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, held.Named(err, path)
	}
	for wait := soonest; ; wait = min(2*wait, latest) {
		err := flock(f, syscall.LOCK_EX)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, ErrLocked) {
			f.Close()
			return nil, err
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, fmt.Errorf("waiting for the lock %s: %w", path, ctx.Err())
		case <-time.After(wait):
		}
	}
}

// TryLock is Lock without waiting: it fails with ErrLocked where another process has the lock.
func TryLock(path string) (*os.File, error) {
	f, err := os.OpenFile(held.At(path), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, held.Named(err, path)
	}
	if err := flock(f, syscall.LOCK_EX); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Locked reports whether a process has the lock on path. It leaves no trace: a file that is not there
// is not made, and the lock is taken shared and for a moment only, so that two who ask don't meet.
func Locked(path string) (bool, error) {
	f, err := os.Open(held.At(path))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	err = flock(f, syscall.LOCK_SH)
	if errors.Is(err, ErrLocked) {
		return true, nil
	}
	return false, err
}

// flock asks once, without waiting.
func flock(f *os.File, how int) error {
	for {
		switch err := syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB); {
		case err == nil:
			return nil
		case errors.Is(err, syscall.EWOULDBLOCK):
			return ErrLocked
		case !errors.Is(err, syscall.EINTR):
			return &fs.PathError{Op: "lock", Path: f.Name(), Err: err}
		}
	}
}
