// Package held keeps folders open, so that what is done below a path is done in the folder that was there when it was
// opened, whatever somebody renames above it or puts in its place. A path below such a folder is said by its
// descriptor (/proc/self/fd/N/…), to this process and to those that it starts.
//
// It never decides which folder is the right one, and reads nothing. Where the system has no such names (macOS), paths
// stay paths: between a check and a call another folder can take the place. Start at Folder.
package held

import (
	"io/fs"
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

// by is a folder by a descriptor, or by its path where descriptors have no names.
func by(path string, fd uintptr) string {
	if names == "" {
		return path
	}
	return names + strconv.FormatUint(uint64(fd), 10)
}

// kept are the folders of Keep.
var kept struct {
	sync.RWMutex
	all []*Folder
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

// of is the kept folder that a path is at or below, nil where there is none.
func of(path string) *Folder {
	kept.RLock()
	defer kept.RUnlock()
	for _, f := range kept.all {
		if strings.HasPrefix(path, f.Path) && (len(path) == len(f.Path) || path[len(f.Path)] == '/') {
			return f
		}
	}
	return nil
}

// At is what leads this process to a path: through the kept folder that it is below, else the path itself.
func At(path string) string {
	f := of(path)
	if f == nil {
		return path
	}
	return f.Here() + path[len(f.Path):]
}

// Lend returns what a process that is yet to start is to be told instead of a path. The kept folders that it is told of
// are among the files that it inherits.
func Lend(cmd *exec.Cmd) func(path string) string {
	lent := map[*Folder]uintptr{}
	return func(path string) string {
		f := of(path)
		if f == nil {
			return path
		}
		fd, is := lent[f]
		if !is {
			cmd.ExtraFiles = append(cmd.ExtraFiles, f.file)
			fd = uintptr(2 + len(cmd.ExtraFiles))
			lent[f] = fd
		}
		return by(f.Path, fd) + path[len(f.Path):]
	}
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
