package worktree

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"pawl/internal/git"
	"pawl/internal/lib/fsutil/dirfd"
	"pawl/internal/lib/fsutil/durable"
)

// Some files that setup makes change with every run of the tests, such as caches in a folder of judge.keep. When such a
// file must not stay changed (RestoreOptions.Clean), setup runs again, once. A copy of setup's file is then kept beside
// the tree, and the file is restored from that copy the next time.

// The limits of what is copied, in files and bytes. Beyond them, setup runs again.
const (
	maxChanging      = 1000
	maxChangingBytes = 64 << 20
)

// changingPath is the list of the files that are known to change.
func (t *Tree) changingPath() string { return filepath.Join(t.state, "changing.json") }
func (t *Tree) copyPath(path string) string {
	sum := sha256.Sum256([]byte(path))
	return filepath.Join(t.state, "copies", hex.EncodeToString(sum[:]))
}

// readPaths reads a list of paths. The list can be made again, so a missing or torn file reads as an empty list.
func readPaths(file string) (paths []string, err error) {
	err = durable.ReadJSON(file, &paths)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, durable.ErrTorn) {
		return nil, nil
	}
	return paths, err
}

// noteChanging adds paths to the files that are known to change.
func (t *Tree) noteChanging(paths []string) error {
	noted, err := readPaths(t.changingPath())
	if err != nil || len(paths) == 0 {
		return err
	}
	names := append(noted, paths...)
	slices.Sort(names)
	names = slices.Compact(names)
	return durable.CacheJSON(t.changingPath(), names[:min(len(names), maxChanging)])
}

// copyChanging copies those of them that setup has just made.
func (v *visit) copyChanging(p pristine) error {
	paths, err := readPaths(v.changingPath())
	if err != nil || len(paths) == 0 {
		return err
	}
	if err := os.RemoveAll(dirfd.At(filepath.Join(v.state, "copies"))); err != nil {
		return err
	}
	if err := os.Mkdir(dirfd.At(filepath.Join(v.state, "copies")), 0o700); err != nil {
		return err
	}
	size := int64(0)
	for _, path := range paths {
		recorded, ok := p[path]
		madeAs := recorded.Is
		if size += madeAs.Size; !ok || madeAs.Mode&unix.S_IFMT != unix.S_IFREG || size > maxChangingBytes {
			continue
		}
		f, err := v.root.openFile(path)
		if err != nil {
			return err
		}
		content := make([]byte, madeAs.Size)
		_, err = f.ReadAt(content, 0)
		f.Close()
		if err != nil && madeAs.Size > 0 {
			return fmt.Errorf("copying %s: %w", git.Quote(path), err)
		}
		if err := durable.WriteCache(v.copyPath(path), content); err != nil {
			return err
		}
	}
	return nil
}

// bringBack restores a file as setup made it and returns its new description; false if there is no copy.
func (v *visit) bringBack(path string, recorded made) (made, bool, error) {
	content, err := os.ReadFile(dirfd.At(v.copyPath(path)))
	if errors.Is(err, fs.ErrNotExist) {
		return recorded, false, nil
	}
	if err != nil {
		return recorded, false, err
	}
	if err := v.root.remove(path); err != nil {
		return recorded, false, err
	}
	err = v.root.within(path, func(dir *folder, name string) error {
		fd, err := unix.Openat(dir.fd(), name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
		if err != nil {
			return err
		}
		f := os.NewFile(uintptr(fd), filepath.Join(v.root.abs, path))
		_, err = f.Write(content)
		mtime := unix.NsecToTimespec(recorded.Is.Mtime)
		return errors.Join(err, f.Chmod(fs.FileMode(recorded.Is.Mode&0o777)), unix.UtimesNanoAt(dir.fd(), name, []unix.Timespec{mtime, mtime}, unix.AT_SYMLINK_NOFOLLOW), f.Close())
	})
	if err != nil {
		return recorded, false, nil //nolint:nilerr // a folder above it is gone: setup makes it again
	}
	current, err := v.root.lstatAt(path)
	return made{Is: current}, err == nil, err
}
