// Package remove removes files and folders that agents and their commands have made: folders without permissions, files
// that are marked immutable, trees that are nested deeper than the limit of open files. It follows no symlink and
// leaves mounted file systems alone. It never decides what to remove. Start at All.
package remove

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"pawl/internal/lib/fsutil/dirfd"
)

// All removes the file or folder at a path, with everything in it. A missing path is no error.
func All(path string) error {
	dir := filepath.Dir(path)
	at := dirfd.At(dir)
	if filepath.Dir(at) == "/proc/self/fd" { // the name of an open folder is a link
		at += "/."
	}
	parent, err := open(unix.AT_FDCWD, at)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return &os.PathError{Op: "open", Path: dir, Err: err}
	}
	defer parent.Close()
	return At(parent, filepath.Base(path), path)
}

// At removes an entry of an open folder, with everything in it. A missing entry is no error. Errors name the entry by
// the path shown.
func At(dir *os.File, name, shown string) error {
	st, err := stat(dir)
	r := remover{top: dir, dev: uint64(st.Dev), left: []string{name}}
	for i := 0; err == nil && i < len(r.left); i++ {
		err = r.remove(dir, r.left[i], shown, 0)
	}
	if err != nil {
		return fmt.Errorf("removing %q: %w", shown, err)
	}
	return nil
}

type remover struct {
	top  *os.File
	left []string // what is to be removed from top: the entry, and folders that were too deep and are there now
	dev  uint64
}

// maxDepth is how many folders are open at the same time.
const maxDepth = 400

const deepPrefix = ".pawl-deep-"

func (r *remover) remove(dir *os.File, name, shown string, depth int) error {
	err := unlink(dir, name, 0)
	if err == nil {
		return nil
	}
	if depth >= maxDepth {
		return r.lift(dir, name)
	}
	sub, openErr := Open(dir, name)
	if openErr != nil { // no folder, or one that pawl may not open
		return errors.Join(err, openErr)
	}
	defer sub.Close()
	st, err := stat(sub)
	if err != nil {
		return err
	}
	if uint64(st.Dev) != r.dev {
		return fmt.Errorf("another file system is mounted at %q; unmount it", shown)
	}
	entries, err := sub.ReadDir(-1)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := r.remove(sub, e.Name(), filepath.Join(shown, e.Name()), depth+1); err != nil {
			return err
		}
	}
	return unlink(dir, name, unix.AT_REMOVEDIR)
}

// lift moves a folder that is too deep to the top, to be removed later.
func (r *remover) lift(dir *os.File, name string) error {
	to := fmt.Sprintf("%s%d-%d", deepPrefix, os.Getpid(), len(r.left))
	if err := unix.Renameat(int(dir.Fd()), name, int(r.top.Fd()), to); err != nil {
		return err
	}
	r.left = append(r.left, to)
	return nil
}

// Open opens a folder in an open folder and follows no symlink. A folder that its owner may not open gets mode 0700
// first. So use Open only if nothing else runs in the folder.
func Open(dir *os.File, name string) (*os.File, error) {
	sub, err := open(int(dir.Fd()), name)
	if errors.Is(err, fs.ErrPermission) {
		// This follows no symlink: open has just found a directory.
		if err = unix.Fchmodat(int(dir.Fd()), name, 0o700, 0); err == nil {
			sub, err = open(int(dir.Fd()), name)
		}
	}
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: err}
	}
	return sub, nil
}

func open(dir int, name string) (*os.File, error) {
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

func stat(dir *os.File) (unix.Stat_t, error) {
	var st unix.Stat_t
	err := unix.Fstat(int(dir.Fd()), &st)
	return st, err
}

// unlink removes a file or an empty folder. If necessary, it makes the folder around it writable and clears flags.
func unlink(dir *os.File, name string, flags int) error {
	err := unix.Unlinkat(int(dir.Fd()), name, flags)
	if errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.EPERM) {
		if fixErr := unlock(dir, name); fixErr != nil {
			return errors.Join(err, fixErr)
		}
		err = unix.Unlinkat(int(dir.Fd()), name, flags)
	}
	if errors.Is(err, syscall.ENOENT) {
		return nil
	}
	return err
}

// unlock makes it possible to remove name from dir.
func unlock(dir *os.File, name string) error {
	st, err := stat(dir)
	if err != nil {
		return err
	}
	clearFlags(int(dir.Fd()))
	if st.Mode&0o300 != 0o300 {
		if err := unix.Fchmod(int(dir.Fd()), uint32(st.Mode&0o777)|0o700); err != nil {
			return err
		}
	}
	// O_NONBLOCK: the entry may be a FIFO.
	if fd, err := unix.Openat(int(dir.Fd()), name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0); err == nil {
		clearFlags(fd)
		_ = unix.Close(fd)
	}
	return nil
}

// Inherited removes the lists of permissions that a command gave a folder: everything made in it later inherits them.
// Most folders have none, and not every file system knows them, so it reports nothing.
func Inherited(dir string) {
	for _, list := range []string{"system.posix_acl_default", "system.posix_acl_access"} {
		_ = unix.Removexattr(dirfd.At(dir), list)
	}
}
