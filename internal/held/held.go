// Package held keeps folders open. Work below a path is then done in the folder that was there when it was opened, even
// if somebody renames a folder above it or puts another one in its place. A path below such a folder goes by the
// folder's descriptor (/proc/self/fd/N/…), in this process and in those that it starts.
//
// It never decides which folder is the right one, and reads nothing. Where the system has no such names (macOS), paths
// stay paths: between a check and a call another folder can take the place. Start at Folder.
package held

import (
	"fmt"
	"io/fs"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// Folder is a folder that is open, and the path at which it was found.
type Folder struct {
	Path string
	file *os.File
}

// Open opens the folder at a path; what is no folder is an error of the system. Its caller closes it.
func Open(path string) (*Folder, error) {
	f, err := open(path)
	if err != nil {
		return nil, err
	}
	return &Folder{Path: filepath.Clean(path), file: f}, nil
}

// Close closes it.
func (f *Folder) Close() error { return f.file.Close() }

// Here is what leads this process to the folder, and a process that it starts until that executes its program.
func (f *Folder) Here() string { return by(f.Path, f.file.Fd()) }

// Within is what leads a process that works in the folder (see Here) to it, and those that it starts there.
func (f *Folder) Within() string {
	if names == "" {
		return f.Path
	}
	return "/proc/self/cwd"
}

// by is a folder by a descriptor, or by its path where descriptors have no names.
func by(path string, fd uintptr) string {
	if names == "" {
		return path
	}
	return names + strconv.FormatUint(uint64(fd), 10)
}

// Folders are some that are open.
type Folders []*Folder

// of is the folder that a path is at or below, nil where there is none.
func (fs Folders) of(path string) *Folder {
	for _, f := range fs {
		if strings.HasPrefix(path, f.Path) && (len(path) == len(f.Path) || path[len(f.Path)] == '/') {
			return f
		}
	}
	return nil
}

// At is what leads to a path through the one that it is below, else the path itself.
func (fs Folders) At(path string) string {
	f := fs.of(path)
	if f == nil {
		return path
	}
	return f.Here() + path[len(f.Path):]
}

// Close closes them.
func (fs Folders) Close() {
	for _, f := range fs {
		f.Close()
	}
}

// kept are the folders of Keep.
var kept struct {
	sync.RWMutex
	all Folders
}

// Keep opens a folder for as long as this process lives: At and Lend lead there from now on. A folder that is kept
// already stays the one that it was.
func Keep(path string) error {
	kept.Lock()
	defer kept.Unlock()
	path = filepath.Clean(path)
	for _, f := range kept.all {
		if f.Path == path {
			return nil
		}
	}
	f, err := Open(path)
	if err == nil {
		kept.all = append(kept.all, f)
	}
	return err
}

// all are the kept folders of now.
func all() Folders {
	kept.RLock()
	defer kept.RUnlock()
	return kept.all
}

// At is what leads this process to a path: through the kept folder that it is below, else the path itself.
func At(path string) string { return all().At(path) }

// InPlace returns an error where another folder, or none, stands at the path of a kept one.
func InPlace(path string) error {
	for _, f := range all() {
		if f.Path == filepath.Clean(path) {
			again, err := f.again()
			if err == nil {
				err = again.Close()
			}
			return err
		}
	}
	return nil
}

// again opens what stands at the folder's path, as the mounts of the calling thread have it. An error says that it is
// another folder by now.
func (f *Folder) again() (*Folder, error) {
	now, err := Open(f.Path)
	if err != nil {
		return nil, err
	}
	was, err := f.file.Stat()
	if err == nil {
		var is fs.FileInfo
		if is, err = now.file.Stat(); err == nil && !os.SameFile(was, is) {
			err = fmt.Errorf("%s is not the folder any more that this worker began with; bring that back, or start the worker anew", f.Path)
		}
	}
	if err != nil {
		now.Close()
		return nil, err
	}
	return now, nil
}

// Anew opens the kept folders that these paths are below once more, for a thread with mounts of its own: of the others' it can
// mount nothing. An error says that another folder stands at the path of one. Its caller closes them.
func Anew(paths iter.Seq[string]) (Folders, error) {
	var out Folders
	known := all()
	for path := range paths {
		f := known.of(path)
		if f == nil || out.of(path) != nil {
			continue
		}
		now, err := f.again()
		if err != nil {
			out.Close()
			return nil, err
		}
		out = append(out, now)
	}
	return out, nil
}

// Hand has a process that is yet to start inherit the kept folders, and returns their paths, for it to Take.
func Hand(cmd *exec.Cmd) (paths []string) {
	for _, f := range all() {
		cmd.ExtraFiles = append(cmd.ExtraFiles, f.file)
		paths = append(paths, f.Path)
	}
	return paths
}

// Take keeps the folders that this process was handed as its files from a number on: as its own mounts have them, where they are
// in their places.
func Take(from uintptr, paths []string) {
	kept.Lock()
	defer kept.Unlock()
	for i, path := range paths {
		f := &Folder{Path: path, file: os.NewFile(from+uintptr(i), path)}
		if now, err := f.again(); err == nil {
			f.Close()
			f = now
		}
		kept.all = append(kept.all, f)
	}
}

// Real is a path as the kernel has it, without links, as filepath.EvalSymlinks has it. What is in a kept folder is said by
// the path at which that was found.
func Real(path string) (string, error) {
	f := all().of(path)
	if f == nil {
		return filepath.EvalSymlinks(path)
	}
	return f.real(path)
}

// Lend returns what a process that is yet to start is to be told instead of a path, and what turns its words about such
// paths into those that people know. The kept folders that it is told of are among the files that it inherits.
func Lend(cmd *exec.Cmd) (lent, known func(text string) string) {
	numbers := map[*Folder]uintptr{}
	lent = func(path string) string {
		f := all().of(path)
		if f == nil {
			return path
		}
		fd, is := numbers[f]
		if !is {
			cmd.ExtraFiles = append(cmd.ExtraFiles, f.file)
			fd = uintptr(2 + len(cmd.ExtraFiles))
			numbers[f] = fd
		}
		return by(f.Path, fd) + path[len(f.Path):]
	}
	return lent, func(text string) string {
		for f, fd := range numbers {
			text = strings.ReplaceAll(text, by(f.Path, fd)+"/", f.Path+"/")
		}
		return text
	}
}

// Known is a text of this process with the paths that people know in the place of those that lead to the kept folders.
func Known(text string) string {
	for _, f := range all() {
		text = strings.ReplaceAll(text, f.Here()+"/", f.Path+"/")
	}
	return text
}

// Named is an error of the system with the path that people know in the place of the one that led there.
func Named(err error, path string) error {
	switch e := err.(type) { //nolint:errorlint // the outermost names the path
	case *fs.PathError:
		return &fs.PathError{Op: e.Op, Path: path, Err: e.Err}
	case *os.LinkError:
		return &os.LinkError{Op: e.Op, Old: filepath.Base(e.Old), New: path, Err: e.Err}
	}
	return err
}
