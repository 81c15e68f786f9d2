package trees

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"pawl/internal/git"
	"pawl/internal/store"
)

// Put writes one of pawl's own files (loop-results.tsv) into the tree's root, for the agent to
// read. Whatever the agent has put under that name gives way: nothing is written through a
// symlink or into a file that has another name elsewhere.
func (t *Tree) Put(name string, content []byte) error {
	root, err := t.rootFor(name)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := root.remove(name); err != nil {
		return err
	}
	fd, err := unix.Openat(root.fd(), name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return &os.PathError{Op: "create", Path: filepath.Join(t.Dir, name), Err: err}
	}
	f := os.NewFile(uintptr(fd), filepath.Join(t.Dir, name))
	_, err = f.Write(content)
	return errors.Join(err, f.Close())
}

// Has reports whether one of pawl's own names (loop-stop) is there.
func (t *Tree) Has(name string) (bool, error) {
	root, err := t.rootFor(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer root.Close()
	_, err = root.lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

func (t *Tree) rootFor(name string) (*folder, error) {
	if !store.IsRootFile(name) {
		return nil, fmt.Errorf("%s is not one of pawl's own files", git.Quote(name))
	}
	root, err := t.open(t.loadState())
	if err == nil && root == nil {
		err = fmt.Errorf("%s is not a tree that pawl made: %w", git.Quote(t.Dir), fs.ErrNotExist)
	}
	return root, err
}
