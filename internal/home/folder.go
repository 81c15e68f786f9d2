package home

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"pawl/internal/lib/fsutil/dirfd"
)

// Folder identifies a folder, whatever is at its path later. The device only counts until the machine restarts,
// because it may have another number then. A disk that is plugged in again has another number too, and the same file
// system.
type Folder struct {
	Boot   string `json:"boot,omitempty"`
	Device uint64 `json:"device,omitempty"`
	System uint64 `json:"system,omitempty"` // the ID of the file system, 0 if it has none
	Inode  uint64 `json:"inode,omitempty"`
}

// Identify returns the identity of the folder at path. The error is the system's: fs.ErrNotExist if there is nothing.
func Identify(path string) (Folder, error) {
	st, err := os.Stat(path)
	if err != nil {
		return Folder{}, err
	}
	is, ok := st.Sys().(*syscall.Stat_t)
	if !ok || !st.IsDir() {
		return Folder{}, &fs.PathError{Op: "identify", Path: path, Err: syscall.ENOTDIR}
	}
	f := Folder{Boot: boot(), Device: uint64(is.Dev), Inode: is.Ino}
	var system unix.Statfs_t
	if unix.Statfs(path, &system) == nil {
		f.System = uint64(uint32(system.Fsid.Val[0]))<<32 | uint64(uint32(system.Fsid.Val[1]))
	}
	return f, nil
}

// Same reports whether now is the same folder. The zero Folder, which was never identified, equals every folder.
func (f Folder) Same(now Folder) bool {
	return f == Folder{} || f.Inode == now.Inode && (f.Device == now.Device || f.Boot != now.Boot || f.System != 0 && f.System == now.System)
}

var boot = sync.OnceValue(func() string {
	b, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(b))
})

// GitDir returns the folder that contains a repository's branches: for the working tree at path, for a linked working
// tree, or path itself for a bare repository. It reads the same files as git and runs nothing. The result is not cleaned,
// because path may be a link such as /proc/self/fd/7, whose ".." is the parent of the folder to which it leads.
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
			return "", fmt.Errorf("%s does not name a git directory", dir)
		}
		if dir = to; !filepath.IsAbs(to) {
			dir = path + "/" + to
		}
	}
	b, err := os.ReadFile(filepath.Join(dir, "commondir"))
	if err != nil { // not a linked working tree
		return dir, nil
	}
	common := strings.TrimSpace(string(b))
	if !filepath.IsAbs(common) {
		common = dir + "/" + common
	}
	return common, nil
}

// InPlace returns an error if $PAWL_HOME is no longer the folder with which this process began.
func (h Home) InPlace() error {
	if err := dirfd.InPlace(h.Dir); err != nil {
		return fmt.Errorf("looking for pawl's folder: %w", err)
	}
	return nil
}
