package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// upper and working are what a layer is made of, in its own folder. missing is the one of all the folders that the
// machine does not have: in it each has the place that it has beside it.
const upper, working, missing = "upper", "work", ".missing"

// Promote moves what was written to the layers of one folder into those of another, which then shows it:
// what is in a trial's layers becomes what later commands find. from is gone afterwards. Nothing may run over
// either folder's layers meanwhile. It can be repeated after a crash.
func Promote(from, to string) error {
	slots, err := os.ReadDir(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("promoting layers: %w", err)
	}
	for _, slot := range slots {
		into := filepath.Join(to, slot.Name(), upper)
		if slot.Name() == missing {
			into = to
		}
		if err := merge(filepath.Join(from, slot.Name(), upper), into); err != nil {
			return fmt.Errorf("promoting layers: %w", err)
		}
	}
	return os.RemoveAll(from)
}

// merge moves the entries of a layer into the one below it. A removed file is an entry too.
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
	for _, e := range entries {
		above, below := filepath.Join(from, e.Name()), filepath.Join(to, e.Name())
		info, err := os.Lstat(below)
		if err == nil && info.IsDir() && e.IsDir() && !opaque(above) {
			if err := merge(above, below); err != nil {
				return err
			}
			continue
		}
		if err == nil {
			if err := os.RemoveAll(below); err != nil {
				return err
			}
		}
		if err := os.Rename(above, below); err != nil {
			return err
		}
	}
	return nil
}

// Untouched reports whether nothing was written to the layers of a folder, and nothing about them was changed, so that
// they can be the next ones.
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
