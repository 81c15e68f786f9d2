package userrepo

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"syscall"

	"pawl/internal/git"
)

// remembered is how the index and the files that a landing changes were before it. git itself can't always put them back:
// while a filter fails, it writes no file that the filter is for.
type remembered struct {
	tree   *os.Root // the user's working tree
	copies string   // a folder with the old files, by their number
	files  []oldFile
	index  string
}

// oldFile is a path as it was.
type oldFile struct {
	path   string
	info   fs.FileInfo // nil if there was nothing
	target string      // of a link
}

// remember copies what a change is about to write. forget removes the copies.
func (insp *inspector) remember(files []git.FileChange) (r *remembered, err error) {
	r = &remembered{}
	if r.tree, err = os.OpenRoot(insp.repo.here()); err != nil {
		return nil, fmt.Errorf("opening the working tree: %w", err)
	}
	defer func() {
		if err != nil {
			r.forget()
		}
	}()
	if r.copies, err = os.MkdirTemp("", "pawl-apply-"); err != nil {
		return nil, fmt.Errorf("making room for copies of your files: %w", err)
	}
	if r.index, err = insp.git("rev-parse", "--path-format=absolute", "--git-path", "index"); err != nil {
		return nil, err
	}
	if err := copyFile(r.index, filepath.Join(r.copies, "index")); err != nil {
		return nil, fmt.Errorf("copying the index: %w", err)
	}
	for _, f := range files {
		for _, name := range []string{f.Path, f.OldPath} {
			if name == "" {
				continue
			}
			if err := r.add(name); err != nil {
				return nil, fmt.Errorf("copying %s: %w", git.Quote(name), err)
			}
		}
	}
	return r, nil
}

func (r *remembered) forget() {
	r.tree.Close()
	if r.copies != "" {
		_ = os.RemoveAll(r.copies) // it is in the folder for temporary files
	}
}

func (r *remembered) copyOf(i int) string { return filepath.Join(r.copies, strconv.Itoa(i)) }

// add copies what is at a path. Folders stay where they are: a submodule's is no file of the change.
func (r *remembered) add(name string) (err error) {
	old := oldFile{path: name}
	if old.info, err = r.tree.Lstat(name); err != nil {
		old.info = nil
		if !errors.Is(err, fs.ErrNotExist) && !notAFolder(err) {
			return err
		}
		r.files = append(r.files, old)
		return nil
	}
	switch mode := old.info.Mode(); {
	case mode.IsDir():
		return nil
	case mode&fs.ModeSymlink != 0:
		if old.target, err = r.tree.Readlink(name); err != nil {
			return err
		}
	case mode.IsRegular():
		source, err := r.tree.Open(name)
		if err != nil {
			return err
		}
		defer source.Close()
		if err := writeFile(r.copyOf(len(r.files)), source); err != nil {
			return err
		}
	}
	r.files = append(r.files, old)
	return nil
}

// after puts everything back after a failure, and says so.
func (r *remembered) after(failure error) error {
	if err := r.putBack(); err != nil {
		return errors.Join(failure, fmt.Errorf("your files could not be put back: %w", err))
	}
	if pre, ok := errors.AsType[*Precondition](failure); ok {
		said := *pre
		said.What += ". Your files were put back as they were"
		return &said
	}
	return failure
}

// putBack makes index and files what they were.
func (r *remembered) putBack() error {
	var failed []error
	for _, f := range r.files { // what is new goes first: a folder may have become a file
		if f.info == nil {
			failed = append(failed, r.remove(f.path))
		}
	}
	for i, f := range r.files {
		if f.info != nil {
			failed = append(failed, r.write(i, f))
		}
	}
	failed = append(failed, copyFile(filepath.Join(r.copies, "index"), r.index))
	return errors.Join(failed...)
}

// remove removes a file that was not there, and the folders that are empty without it.
func (r *remembered) remove(name string) error {
	if err := r.tree.Remove(name); err != nil {
		if errors.Is(err, fs.ErrNotExist) || notAFolder(err) {
			return nil
		}
		return fmt.Errorf("removing %s: %w", git.Quote(name), err)
	}
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if r.tree.Remove(dir) != nil { // it has other files
			break
		}
	}
	return nil
}

// write writes a file as it was, unless it still is.
func (r *remembered) write(i int, f oldFile) (err error) {
	if info, err := r.tree.Lstat(f.path); err == nil && os.SameFile(info, f.info) && info.ModTime().Equal(f.info.ModTime()) {
		return nil
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("putting %s back: %w", git.Quote(f.path), err)
		}
	}()
	if err := r.tree.RemoveAll(f.path); err != nil {
		return err
	}
	if err := r.tree.MkdirAll(path.Dir(f.path), 0o777); err != nil {
		return err
	}
	if f.info.Mode()&fs.ModeSymlink != 0 {
		return r.tree.Symlink(f.target, f.path)
	}
	source, err := os.Open(r.copyOf(i))
	if err != nil {
		return err
	}
	defer source.Close()
	dest, err := r.tree.OpenFile(f.path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, f.info.Mode().Perm())
	if err != nil {
		return err
	}
	_, err = io.Copy(dest, source)
	if err := errors.Join(err, dest.Close()); err != nil {
		return err
	}
	if err := r.tree.Chmod(f.path, f.info.Mode().Perm()); err != nil {
		return err
	}
	return r.tree.Chtimes(f.path, f.info.ModTime(), f.info.ModTime())
}

// notAFolder reports whether a part of a path is a file.
func notAFolder(err error) bool { return errors.Is(err, syscall.ENOTDIR) }

func copyFile(from, to string) error {
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	return writeFile(to, f)
}

func writeFile(name string, source io.Reader) error {
	dest, err := os.OpenFile(name, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(dest, source)
	return errors.Join(err, dest.Close())
}
