//go:build !linux

package dirfd

import (
	"os"
	"path/filepath"
	"syscall"
)

// names is "": on this system a descriptor has no name that leads into its folder.
const names = ""

// Third is "" for the same reason.
const Third = ""

func open(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_DIRECTORY, 0)
}

func (f *Folder) real(path string) (string, error) { return filepath.EvalSymlinks(path) }
