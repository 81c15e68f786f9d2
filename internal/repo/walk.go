package repo

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// folder is an open directory that is known to be one: opened without following a symlink at
// any component below it. Whatever is done to a tree is done relative to one, so that nothing
// the agent put there leads outside.
type folder struct {
	f   *os.File
	abs string // for messages, and to resolve entries whose type the file system does not tell
}

func openFolder(path string) (*folder, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return &folder{f: os.NewFile(uintptr(fd), path), abs: path}, nil
}

func (d *folder) fd() int      { return int(d.f.Fd()) }
func (d *folder) Close() error { return d.f.Close() }

// open opens a folder in this one.
func (d *folder) open(name string) (*folder, error) {
	path := filepath.Join(d.abs, name)
	fd, err := unix.Openat(d.fd(), name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return &folder{f: os.NewFile(uintptr(fd), path), abs: path}, nil
}

// openForced is open for a folder whose mode may have been taken away.
func (d *folder) openForced(name string) (*folder, error) {
	sub, err := d.open(name)
	if errors.Is(err, fs.ErrPermission) {
		// Not through a symlink: open has just found a directory, and nothing else runs in the tree.
		if chmodErr := unix.Fchmodat(d.fd(), name, 0o700, 0); chmodErr != nil {
			return nil, errors.Join(err, chmodErr)
		}
		sub, err = d.open(name)
	}
	return sub, err
}

func (d *folder) stat() (unix.Stat_t, error) {
	var st unix.Stat_t
	err := unix.Fstat(d.fd(), &st)
	return st, err
}

// openFile opens a regular file below for reading, through real folders only.
func (d *folder) openFile(path string) (*os.File, error) {
	dir, name, err := d.at(path)
	if err != nil {
		return nil, err
	}
	if dir != d {
		defer dir.Close()
	}
	// O_NONBLOCK: whatever it has become, opening it must not wait.
	fd, err := unix.Openat(dir.fd(), name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: filepath.Join(d.abs, path), Err: err}
	}
	return os.NewFile(uintptr(fd), filepath.Join(d.abs, path)), nil
}

// kind of what a walk finds.
type kind byte

const (
	isFile  kind = 'f'
	isLink  kind = 'l'
	isDir   kind = 'd'
	isOther kind = 'o' // FIFO, socket, device
)

func kindOf(m fs.FileMode) kind {
	switch {
	case m.IsRegular():
		return isFile
	case m&fs.ModeSymlink != 0:
		return isLink
	case m.IsDir():
		return isDir
	}
	return isOther
}

// found is one entry of a tree. A folder comes before what is in it.
type found struct {
	path string // relative, with '/'
	kind kind
	shut string // a folder that was not looked into: why
	is   *stamp // what stat says, where the walk was asked for it
}

// Limits of what a walk looks into: git itself works with paths and gives up at PATH_MAX, and an
// agent can nest folders until every open file is used up.
const (
	maxPath  = 3500
	maxDepth = 400
)

// walk lists a tree, without its own .git and without following symlinks. With mend it gives
// folders that pawl may not look into their mode back; else they are reported shut. Only what
// stat is true for costs a system call.
func walk(root *folder, mend bool, stat func(path string) bool) ([]found, error) {
	st, err := root.stat()
	if err != nil {
		return nil, err
	}
	w := walker{mend: mend, stat: stat, dev: uint64(st.Dev)}
	if mend {
		mendMode(root, st)
	}
	err = w.list(root, "", 0)
	return w.found, err
}

type walker struct {
	mend  bool
	stat  func(path string) bool
	dev   uint64
	found []found
}

func mendMode(d *folder, st unix.Stat_t) {
	if st.Mode&0o700 != 0o700 {
		_ = unix.Fchmod(d.fd(), uint32(st.Mode&0o777)|0o755)
	}
}

func (w *walker) list(d *folder, prefix string, depth int) error {
	entries, err := d.f.ReadDir(-1)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := e.Name()
		if prefix == "" && name == ".git" {
			continue
		}
		f := found{path: prefix + name, kind: kindOf(e.Type())}
		if w.stat(f.path) {
			var st unix.Stat_t
			switch err := unix.Fstatat(d.fd(), name, &st, unix.AT_SYMLINK_NOFOLLOW); {
			case errors.Is(err, fs.ErrNotExist):
				continue // gone since it was listed
			case err != nil:
				return &os.PathError{Op: "lstat", Path: filepath.Join(d.abs, name), Err: err}
			}
			is := stampOf(st)
			f.is = &is
		}
		at := len(w.found)
		w.found = append(w.found, f)
		if f.kind != isDir {
			continue
		}
		if depth >= maxDepth || len(f.path) > maxPath {
			w.found[at].shut = "nested too deep"
			continue
		}
		open := d.open
		if w.mend {
			open = d.openForced
		}
		sub, err := open(name)
		switch {
		case errors.Is(err, fs.ErrPermission) && !w.mend:
			w.found[at].shut = "a folder that cannot be read"
			continue
		case errors.Is(err, fs.ErrNotExist):
			w.found = w.found[:at] // gone since it was listed
			continue
		case err != nil:
			return err
		}
		err = w.enter(sub, at, depth)
		if err = errors.Join(err, sub.Close()); err != nil {
			return err
		}
	}
	return nil
}

func (w *walker) enter(d *folder, at, depth int) error {
	st, err := d.stat()
	if err != nil {
		return err
	}
	if uint64(st.Dev) != w.dev {
		w.found[at].shut = "another file system is mounted there"
		return nil
	}
	if w.mend {
		mendMode(d, st)
	}
	return w.list(d, w.found[at].path+"/", depth+1)
}

// at opens the folder that holds path and returns it with path's last component.
func (d *folder) at(path string) (*folder, string, error) {
	dir, name := filepath.Split(path)
	cur := d
	for dir != "" {
		var first string
		first, dir = cutPath(dir)
		next, err := cur.open(first)
		if cur != d {
			_ = cur.Close()
		}
		if err != nil {
			return nil, "", err
		}
		cur = next
	}
	return cur, name, nil
}

func cutPath(p string) (first, rest string) {
	for i := 0; i < len(p); i++ {
		if p[i] == '/' {
			return p[:i], p[i+1:]
		}
	}
	return p, ""
}

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
	r := remover{top: dir}
	if err := r.remove(dir, name, 0); err != nil {
		return fmt.Errorf("removing %s: %w", Quote(filepath.Join(d.abs, path)), err)
	}
	return r.rest()
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
	err := unix.Unlinkat(dir.fd(), name, 0)
	switch {
	case err == nil || errors.Is(err, syscall.ENOENT):
		return nil
	case errors.Is(err, syscall.EISDIR), errors.Is(err, syscall.EPERM), errors.Is(err, syscall.EACCES):
	default:
		return err
	}
	var st unix.Stat_t
	if err := unix.Fstatat(dir.fd(), name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		if errors.Is(err, syscall.ENOENT) {
			return nil
		}
		if !errors.Is(err, syscall.EACCES) {
			return err
		}
		if err := unlock(dir, ""); err != nil {
			return err
		}
		return r.remove(dir, name, depth)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return r.unlink(dir, name, 0, err)
	}
	if depth >= maxDepth {
		return r.lift(dir, name)
	}
	if err := r.empty(dir, name, depth); err != nil {
		return err
	}
	return r.unlink(dir, name, unix.AT_REMOVEDIR, nil)
}

func (r *remover) empty(dir *folder, name string, depth int) error {
	sub, err := dir.openForced(name)
	if err != nil {
		return err
	}
	defer sub.Close()
	st, err := sub.stat()
	if err != nil {
		return err
	}
	if r.dev == 0 {
		if top, err := r.top.stat(); err == nil {
			r.dev = uint64(top.Dev)
		}
	}
	if uint64(st.Dev) != r.dev {
		return fmt.Errorf("another file system is mounted at %s; unmount it", Quote(sub.abs))
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
	return nil
}

// unlink removes an entry, making the folder writable and clearing flags if that is what it
// takes. err is what a first attempt gave, nil if there was none.
func (r *remover) unlink(dir *folder, name string, flags int, err error) error {
	if err == nil {
		err = unix.Unlinkat(dir.fd(), name, flags)
	}
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

func (r *remover) rest() error {
	for i := 0; i < len(r.moved); i++ {
		if err := r.remove(r.top, r.moved[i], 0); err != nil {
			return err
		}
	}
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
	if name == "" {
		return nil
	}
	// O_NONBLOCK: the entry may be a FIFO.
	if fd, err := unix.Openat(dir.fd(), name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0); err == nil {
		clearFlags(fd)
		_ = unix.Close(fd)
	}
	return nil
}

func rmdir(dir *folder, name string) error { return unix.Unlinkat(dir.fd(), name, unix.AT_REMOVEDIR) }

func (d *folder) lstat(name string) (stamp, error) {
	var st unix.Stat_t
	err := unix.Fstatat(d.fd(), name, &st, unix.AT_SYMLINK_NOFOLLOW)
	return stampOf(st), err
}
