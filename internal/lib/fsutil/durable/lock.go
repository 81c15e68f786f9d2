package durable

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"

	"pawl/internal/lib/fsutil/dirfd"
)

// ErrLocked is the error of TryLock if another process has the lock.
var ErrLocked = errors.New("another process has the lock")

// How long Lock waits between two tries: soonest at first, latest at most.
const (
	soonest = time.Millisecond
	latest  = 50 * time.Millisecond
)

// Lock locks the file at path, which it creates if it is missing. It waits for the lock until ctx ends. The lock
// lasts until this process and each process that inherited the returned file have closed it; the kernel closes the
// files of a process that dies.
func Lock(ctx context.Context, path string) (*os.File, error) {
	f, err := os.OpenFile(dirfd.At(path), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, dirfd.Named(err, path)
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

// TryLock is Lock without waiting: it returns ErrLocked if another process has the lock.
func TryLock(path string) (*os.File, error) {
	f, err := os.OpenFile(dirfd.At(path), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, dirfd.Named(err, path)
	}
	if err := flock(f, syscall.LOCK_EX); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Locked reports whether a process has the lock on path. It changes nothing: it does not create a missing file, and
// takes a shared lock for a moment, so two callers do not disturb each other.
func Locked(path string) (bool, error) {
	f, err := os.Open(dirfd.At(path))
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

// flock tries once, without waiting.
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
