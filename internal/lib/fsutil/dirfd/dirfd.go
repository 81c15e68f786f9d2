// Package dirfd keeps folders open. pawl then works in the folder that it opened, even if somebody renames a folder
// above it or replaces it. Paths below such a folder use the folder's descriptor (/proc/self/fd/N/…), in this process
// and in the processes that it starts.
//
// It never decides which folder is the right one, and reads nothing. On a system without such names (macOS), paths
// stay paths, and somebody can replace a folder between a check and a call. Start at Folder.
package dirfd

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

// Folder is an open folder, and the path at which it was found.
type Folder struct {
	Path string
	file *os.File
}

// Open opens the folder at a path. The caller closes it. Without a folder it returns the system's error.
func Open(path string) (*Folder, error) {
	f, err := open(path)
	if err != nil {
		return nil, err
	}
	return &Folder{Path: filepath.Clean(path), file: f}, nil
}

// Close closes the folder.
func (f *Folder) Close() error { return f.file.Close() }

// Here returns the folder's path in this process, and in a child of it until the child executes its program.
func (f *Folder) Here() string { return by(f.Path, f.file.Fd()) }

// Within returns the folder's path for a process whose working directory it is, and for that process's children.
func (f *Folder) Within() string {
	if names == "" {
		return f.Path
	}
	return "/proc/self/cwd"
}

// by returns the path of a folder by descriptor, or its ordinary path where descriptors have no names.
func by(path string, fd uintptr) string {
	if names == "" {
		return path
	}
	return names + strconv.FormatUint(uint64(fd), 10)
}

// Folders are open folders.
type Folders []*Folder

// of returns the folder that contains a path or is at it, nil for none.
func (fs Folders) of(path string) *Folder {
	for _, f := range fs {
		if strings.HasPrefix(path, f.Path) && (len(path) == len(f.Path) || path[len(f.Path)] == '/') {
			return f
		}
	}
	return nil
}

// At returns the path through the folder that contains it, or else the path itself.
func (fs Folders) At(path string) string {
	f := fs.of(path)
	if f == nil {
		return path
	}
	return f.Here() + path[len(f.Path):]
}

// Close closes all folders.
func (fs Folders) Close() {
	for _, f := range fs {
		f.Close()
	}
}

// kept has the folders of Keep.
var kept struct {
	sync.RWMutex
	all Folders
}

// Keep opens a folder until this process ends. From now on At and Lend use it for paths below it. If a folder is
// already kept at that path, it stays.
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

// all returns the folders that are kept now.
func all() Folders {
	kept.RLock()
	defer kept.RUnlock()
	return kept.all
}

// At returns a path for this process: through the kept folder that contains it, or else the path itself.
func At(path string) string { return all().At(path) }

// InPlace returns an error if the path of a kept folder has another folder, or none.
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

// again opens the folder's path once more, in the calling thread's mounts. Another folder there is an error.
func (f *Folder) again() (*Folder, error) {
	now, err := Open(f.Path)
	if err != nil {
		return nil, err
	}
	was, err := f.file.Stat()
	if err == nil {
		var is fs.FileInfo
		if is, err = now.file.Stat(); err == nil && !os.SameFile(was, is) {
			err = fmt.Errorf("%s is no longer the folder that this worker started with; put that folder back, or restart the worker", f.Path)
		}
	}
	if err != nil {
		now.Close()
		return nil, err
	}
	return now, nil
}

// Anew opens the kept folders of these paths again, for a thread with its own mounts, which can't use folders of
// other mounts as mount sources. It returns an error if one of their paths has another folder now. The caller closes
// the result.
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

// Hand lets a process that will start inherit the kept folders, and returns their paths for Take.
func Hand(cmd *exec.Cmd) (paths []string) {
	for _, f := range all() {
		cmd.ExtraFiles = append(cmd.ExtraFiles, f.file)
		paths = append(paths, f.Path)
	}
	return paths
}

// Take keeps the folders that this process inherited as files from number from on. If their paths still have the same
// folders, it opens them again in this process's mounts.
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

// Real returns a path without symbolic links, as filepath.EvalSymlinks does. A path in a kept folder begins with the
// path at which the folder was found.
func Real(path string) (string, error) {
	f := all().of(path)
	if f == nil {
		return filepath.EvalSymlinks(path)
	}
	return f.real(path)
}

// Lend returns two functions for a process that will start. lent returns a path for that process, and lets it inherit
// the kept folder of the path. known replaces such paths in a text of that process by the paths that people know.
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

// Known replaces the paths through kept folders in a text of this process by the paths that people know.
func Known(text string) string {
	for _, f := range all() {
		text = strings.ReplaceAll(text, f.Here()+"/", f.Path+"/")
	}
	return text
}

// Named returns a system error with the path that people know.
func Named(err error, path string) error {
	switch e := err.(type) { //nolint:errorlint // the outermost error has the path
	case *fs.PathError:
		return &fs.PathError{Op: e.Op, Path: path, Err: e.Err}
	case *os.LinkError:
		return &os.LinkError{Op: e.Op, Old: filepath.Base(e.Old), New: path, Err: e.Err}
	}
	return err
}
