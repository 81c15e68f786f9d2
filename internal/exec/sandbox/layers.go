package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"pawl/internal/lib/fsutil/remove"
)

// upper and working are the parts of a layer, in the layer's own folder. missing is the layer for all folders that the
// machine does not have; each has its usual place in it.
const upper, working, missing = "upper", "work", ".missing"

// Promote moves what was written in the layers of one folder into those of another: what a trial wrote becomes visible
// to later commands. from is removed. Nothing may run on either folder's layers meanwhile. It can be repeated after a
// crash.
func Promote(from, to string) error {
	slots, err := os.ReadDir(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, slot := range slots {
		up, dest := filepath.Join(from, slot.Name(), upper), filepath.Join(to, slot.Name(), upper)
		if slot.Name() == missing {
			dest = to
		} else if err == nil {
			err = unlock(up)
		}
		if err == nil {
			err = merge(up, dest)
		}
	}
	if err == nil {
		err = remove.All(from)
	}
	if err != nil {
		return fmt.Errorf("promoting layers: %w", err)
	}
	return nil
}

// merge moves the entries of a layer into the layer below. A removed file is an entry too. Folders keep the mode that
// commands saw.
func merge(from, to string) error {
	entries, err := os.ReadDir(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil || len(entries) == 0 {
		return err
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	if err := unlock(to); err != nil {
		return err
	}
	for _, e := range entries {
		above, below := filepath.Join(from, e.Name()), filepath.Join(to, e.Name())
		if !e.IsDir() {
			if err := replace(above, below); err != nil {
				return err
			}
			continue
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		if err := unlock(above); err != nil {
			return err
		}
		if info, none := os.Lstat(below); none == nil && info.IsDir() && !opaque(above) {
			err = merge(above, below)
		} else {
			err = replace(above, below)
		}
		if err != nil {
			return err
		}
		if err := os.Chmod(below, info.Mode()); err != nil {
			return err
		}
	}
	return nil
}

// replace moves an entry to a place that may be taken.
func replace(above, below string) error {
	if err := remove.All(below); err != nil {
		return err
	}
	return os.Rename(above, below)
}

// unlock gives a folder the permissions that its owner needs to move it and its content. Module caches are read-only,
// and commands can lock what they like.
func unlock(dir string) error {
	info, err := os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil || !info.IsDir() || info.Mode().Perm()&0o700 == 0o700 {
		return err
	}
	return os.Chmod(dir, info.Mode()|0o700)
}

// Untouched reports whether nothing in the layers of a folder was written or changed, so that they can be used for the
// next judgement.
func Untouched(dir string) bool {
	slots, err := os.ReadDir(dir)
	for _, slot := range slots {
		up := filepath.Join(dir, slot.Name(), upper)
		left, unread := os.ReadDir(up)
		switch {
		case errors.Is(unread, fs.ErrNotExist): // not in use yet
		case unread != nil, len(left) > 0, !asMade(up, filepath.Join(dir, slot.Name(), working)):
			return false
		}
	}
	return err == nil || errors.Is(err, fs.ErrNotExist)
}
