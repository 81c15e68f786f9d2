package worktree

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"pawl/internal/lib/fsutil/dirfd"
	"pawl/internal/lib/fsutil/remove"
)

// folder is an open directory, opened without following a symlink at any component below the tree. Everything done to a
// tree is done relative to a folder, so nothing that the agent put there leads outside.
type folder struct {
	f   *os.File
	abs string // for messages, and to look up entries whose type the file system does not report
}

func openFolder(path string) (*folder, error) {
	return openFolderAt(unix.AT_FDCWD, dirfd.At(path), path)
}

func (d *folder) fd() int { return int(d.f.Fd()) }

// Close closes the folder, if there is one.
func (d *folder) Close() error {
	if d == nil {
		return nil
	}
	return d.f.Close()
}

func (d *folder) open(name string) (*folder, error) {
	return openFolderAt(d.fd(), name, filepath.Join(d.abs, name))
}

func openFolderAt(dir int, name, abs string) (*folder, error) {
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: abs, Err: err}
	}
	return &folder{f: os.NewFile(uintptr(fd), abs), abs: abs}, nil
}

// openForced opens a folder even if its mode forbids it.
func (d *folder) openForced(name string) (*folder, error) {
	f, err := remove.Open(d.f, name)
	if err != nil {
		return nil, err
	}
	return &folder{f: f, abs: filepath.Join(d.abs, name)}, nil
}

func (d *folder) stat() (unix.Stat_t, error) {
	var st unix.Stat_t
	err := unix.Fstat(d.fd(), &st)
	return st, err
}

// openFile opens a regular file below the folder for reading, through real folders only.
func (d *folder) openFile(path string) (f *os.File, err error) {
	err = d.within(path, func(dir *folder, name string) error {
		// O_NONBLOCK: opening must not wait, whatever the file has become.
		fd, err := unix.Openat(dir.fd(), name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err != nil {
			return &os.PathError{Op: "open", Path: filepath.Join(d.abs, path), Err: err}
		}
		f = os.NewFile(uintptr(fd), filepath.Join(d.abs, path))
		return nil
	})
	return f, err
}

// within calls do with the open folder that contains path, and path's last component.
func (d *folder) within(path string, do func(dir *folder, name string) error) error {
	dir := d
	closeDir := func() {
		if dir != d {
			_ = dir.Close()
		}
	}
	defer closeDir()
	for {
		first, rest, below := strings.Cut(path, "/")
		if !below {
			return do(dir, path)
		}
		next, err := dir.open(first)
		if err != nil {
			return err
		}
		closeDir()
		dir, path = next, rest
	}
}

// lstatAt describes what is at a path, through real folders only. It follows no link.
func (d *folder) lstatAt(path string) (stamp, error) {
	var st unix.Stat_t
	err := d.within(path, func(dir *folder, name string) error {
		return unix.Fstatat(dir.fd(), name, &st, unix.AT_SYMLINK_NOFOLLOW)
	})
	return stampOf(st), err
}

// sum returns the SHA-256 of a file's content, or "" if it can't be read.
func (d *folder) sum(path string) string {
	f, err := d.openFile(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return ""
	}
	return hex.EncodeToString(h.Sum(nil))
}

// touch gives a file the present time.
func (d *folder) touch(path string) error {
	now := unix.NsecToTimespec(time.Now().UnixNano())
	return d.within(path, func(dir *folder, name string) error {
		return unix.UtimesNanoAt(dir.fd(), name, []unix.Timespec{now, now}, unix.AT_SYMLINK_NOFOLLOW)
	})
}

// remove removes whatever is at path, with everything in it. A missing path is no error.
func (d *folder) remove(path string) error {
	reached := false
	err := d.within(path, func(dir *folder, name string) error {
		reached = true
		return remove.At(dir.f, name, filepath.Join(d.abs, path))
	})
	if !reached && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP)) {
		return nil // not reachable through real folders, so it does not exist
	}
	return err
}
