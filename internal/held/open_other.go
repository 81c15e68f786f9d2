//go:build !linux

package held

import (
	"os"
	"path/filepath"
	"syscall"
)

// names is "": a descriptor of a folder has no name that leads into it.
const names = ""

func open(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_DIRECTORY, 0)
}

func (f *Folder) real(path string) (string, error) { return filepath.EvalSymlinks(path) }
