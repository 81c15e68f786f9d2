package worktree

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// found is one entry of a tree. A folder comes before what is in it.
type found struct {
	path string      // relative, with '/'
	mode fs.FileMode // type bits only
	shut string      // why a folder was not looked into
	// From stat, if the walk asked for it: what it is, and whether it is a regular file that has other names.
	is     *stamp
	linked bool
}

// isOdd reports whether git can't store it: a FIFO, a socket, a device.
func (f found) isOdd() bool { return f.mode&^(fs.ModeDir|fs.ModeSymlink) != 0 }

// isOpen reports whether it is a folder that was looked into.
func (f found) isOpen() bool { return f.mode.IsDir() && f.shut == "" }

// The limits of a walk. git works with paths and gives up at PATH_MAX, and an agent could nest folders until all file
// descriptors are used.
const (
	maxPath  = 3500
	maxDepth = 400
)

// walk lists a tree, without its own .git and without following symlinks. With mend, it restores the mode of folders
// that pawl may not read; otherwise those are reported as shut. A system call is made only for paths for which stat is
// true.
func walk(root *folder, mend bool, stat func(path string) bool) ([]found, error) {
	w := walker{mend: mend, stat: stat}
	_, err := w.list(root, "", 0)
	return w.found, err
}

type walker struct {
	mend  bool
	stat  func(path string) bool
	dev   uint64
	found []found
}

// mendMode gives a folder back what an agent may have taken away: its mode, and that files made in it get their own mode
// and not an inherited list of permissions.
func mendMode(d *folder, st unix.Stat_t) {
	_ = unix.Fremovexattr(d.fd(), "system.posix_acl_default") // most folders have none
	if st.Mode&0o700 != 0o700 {
		_ = unix.Fchmod(d.fd(), uint32(st.Mode&0o777)|0o755)
	}
}

// list adds what is in a folder, and says why the folder was not looked into, "" if it was.
func (w *walker) list(d *folder, prefix string, depth int) (shut string, err error) {
	st, err := d.stat()
	switch {
	case err != nil:
		return "", err
	case prefix == "":
		w.dev = uint64(st.Dev)
	case uint64(st.Dev) != w.dev:
		return "another file system is mounted there", nil
	}
	if w.mend {
		mendMode(d, st)
	}
	entries, err := d.f.ReadDir(-1)
	if err != nil {
		return "", err
	}
	for _, e := range entries {
		name := e.Name()
		if prefix == "" && name == ".git" {
			continue
		}
		f := found{path: prefix + name, mode: e.Type()}
		if w.stat(f.path) {
			var st unix.Stat_t
			switch err := unix.Fstatat(d.fd(), name, &st, unix.AT_SYMLINK_NOFOLLOW); {
			case errors.Is(err, fs.ErrNotExist):
				continue // gone since it was listed
			case err != nil:
				return "", &os.PathError{Op: "lstat", Path: filepath.Join(d.abs, name), Err: err}
			}
			f.is, f.linked = new(stampOf(st)), st.Nlink > 1 && st.Mode&unix.S_IFMT == unix.S_IFREG
		}
		start := len(w.found)
		w.found = append(w.found, f)
		if !f.mode.IsDir() {
			continue
		}
		if depth >= maxDepth || len(f.path) > maxPath {
			w.found[start].shut = "nested too deep"
			continue
		}
		open := d.open
		if w.mend {
			open = d.openForced
		}
		sub, err := open(name)
		switch {
		case errors.Is(err, fs.ErrPermission) && !w.mend:
			w.found[start].shut = "a folder that cannot be read"
			continue
		case errors.Is(err, fs.ErrNotExist):
			w.found = w.found[:start] // gone since it was listed
			continue
		case err != nil:
			return "", err
		}
		shut, err := w.list(sub, f.path+"/", depth+1)
		if err = errors.Join(err, sub.Close()); err != nil {
			return "", err
		}
		w.found[start].shut = shut
	}
	return "", nil
}
