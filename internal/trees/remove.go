package trees

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"pawl/internal/git"
)

// remove takes away whatever is at path, with everything in it. What is not there is no error.
func (d *folder) remove(path string) error {
	dir, name, err := d.at(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP) {
		return nil // not reachable through real folders: not there
	}
	if err != nil {
		return err
	}
	if dir != d {
		defer dir.Close()
	}
	st, err := dir.stat()
	if err != nil {
		return err
	}
	r := remover{top: dir, dev: uint64(st.Dev)}
	err = r.remove(dir, name, 0)
	for i := 0; err == nil && i < len(r.moved); i++ {
		err = r.remove(dir, r.moved[i], 0)
	}
	if err != nil {
		return fmt.Errorf("removing %s: %w", git.Quote(filepath.Join(d.abs, path)), err)
	}
	return nil
}

// RemoveAll takes away what is at path with everything in it, however hostile. What is not there is
// no error.
func RemoveAll(path string) error {
	parent, err := openFolder(filepath.Dir(path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer parent.Close()
	return parent.remove(filepath.Base(path))
}

// remover removes hostile trees: it follows no symlink, gives folders back the modes it needs,
// clears the immutable flag where it may, and does not run out of open files however deep they
// are nested.
type remover struct {
	top   *folder
	moved []string // folders from too deep, now in top
	dev   uint64
}

const deepPrefix = ".pawl-deep-"

func (r *remover) remove(dir *folder, name string, depth int) error {
	err := unlink(dir, name, 0)
	if err == nil {
		return nil
	}
	if depth >= maxDepth {
		return r.lift(dir, name)
	}
	sub, openErr := dir.openForced(name)
	if openErr != nil { // no folder, or one that pawl may not open
		return errors.Join(err, openErr)
	}
	defer sub.Close()
	st, err := sub.stat()
	if err != nil {
		return err
	}
	if uint64(st.Dev) != r.dev {
		return fmt.Errorf("another file system is mounted at %s; unmount it", git.Quote(sub.abs))
	}
	entries, err := sub.f.ReadDir(-1)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := r.remove(sub, e.Name(), depth+1); err != nil {
			return err
		}
	}
	return unlink(dir, name, unix.AT_REMOVEDIR)
}

// unlink removes an entry that is no folder with content, making the folder that it is in writable
// and clearing flags if that is what it takes.
func unlink(dir *folder, name string, flags int) error {
	err := unix.Unlinkat(dir.fd(), name, flags)
	if errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.EPERM) {
		if fixErr := unlock(dir, name); fixErr != nil {
			return errors.Join(err, fixErr)
		}
		err = unix.Unlinkat(dir.fd(), name, flags)
	}
	if errors.Is(err, syscall.ENOENT) {
		return nil
	}
	return err
}

// lift moves a folder from the depths up to the top, to be removed later.
func (r *remover) lift(dir *folder, name string) error {
	to := fmt.Sprintf("%s%d-%d", deepPrefix, os.Getpid(), len(r.moved))
	if err := unix.Renameat(dir.fd(), name, r.top.fd(), to); err != nil {
		return err
	}
	r.moved = append(r.moved, to)
	return nil
}

// unlock makes it possible to remove name from dir.
func unlock(dir *folder, name string) error {
	st, err := dir.stat()
	if err != nil {
		return err
	}
	clearFlags(dir.fd())
	if st.Mode&0o300 != 0o300 {
		if err := unix.Fchmod(dir.fd(), uint32(st.Mode&0o777)|0o700); err != nil {
			return err
		}
	}
	// O_NONBLOCK: the entry may be a FIFO.
	if fd, err := unix.Openat(dir.fd(), name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0); err == nil {
		clearFlags(fd)
		_ = unix.Close(fd)
	}
	return nil
}
