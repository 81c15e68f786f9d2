package home

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"pawl/internal/held"
)

// Folder is which folder stood at a path, whatever stands there later. The device counts until the machine
// is started anew, since it may have another number then.
type Folder struct {
	Boot   string `json:"boot,omitempty"`
	Device uint64 `json:"device,omitempty"`
	Inode  uint64 `json:"inode,omitempty"`
}

// Identify returns which folder is at path. The error is that of the system: fs.ErrNotExist where there is
// nothing.
func Identify(path string) (Folder, error) {
	st, err := os.Stat(path)
	if err != nil {
		return Folder{}, err
	}
	is, ok := st.Sys().(*syscall.Stat_t)
	if !ok || !st.IsDir() {
		return Folder{}, &fs.PathError{Op: "identify", Path: path, Err: syscall.ENOTDIR}
	}
	return Folder{Boot: boot(), Device: uint64(is.Dev), Inode: is.Ino}, nil
}

// Same reports whether it is that folder. One that was never looked at is any.
func (f Folder) Same(now Folder) bool {
	return f == Folder{} || f.Inode == now.Inode && (f.Device == now.Device || f.Boot != now.Boot)
}

var boot = sync.OnceValue(func() string {
	b, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(b))
})

// GitDir is the folder that a repository's branches are in: of the working tree at path, of one that is
// linked to another, or path itself where it is bare. It reads what git would and runs nothing.
func GitDir(path string) (string, error) {
	dir := filepath.Join(path, ".git")
	st, err := os.Stat(dir)
	switch {
	case err != nil && !os.IsNotExist(err):
		return "", err
	case err != nil:
		return path, nil
	case !st.IsDir():
		b, err := os.ReadFile(dir)
		if err != nil {
			return "", err
		}
		to, ok := strings.CutPrefix(strings.TrimSpace(string(b)), "gitdir: ")
		if !ok {
			return "", fmt.Errorf("%s names no git directory", dir)
		}
		if dir = to; !filepath.IsAbs(to) {
			dir = filepath.Join(path, to)
		}
	}
	b, err := os.ReadFile(filepath.Join(dir, "commondir"))
	if err != nil { // a working tree of its own
		return dir, nil
	}
	common := strings.TrimSpace(string(b))
	if !filepath.IsAbs(common) {
		common = filepath.Join(dir, common)
	}
	return common, nil
}

// InPlace returns an error if another folder stands in the place of $PAWL_HOME than the one that this process
// began with.
func (h Home) InPlace() error {
	if err := held.InPlace(h.Dir); err != nil {
		return fmt.Errorf("looking for pawl's folder: %w", err)
	}
	return nil
}
