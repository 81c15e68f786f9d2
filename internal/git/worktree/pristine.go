package worktree

import (
	"bytes"
	"context"
	"encoding/gob"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"pawl/internal/git"
	"pawl/internal/lib/fsutil/dirfd"
	"pawl/internal/lib/fsutil/durable"
)

// stamp shows whether a file was touched. Somebody who writes to the file can't set the ctime back.
type stamp struct {
	Mode         uint32
	Ino          uint64
	Size         int64
	Mtime, Ctime int64 // nanoseconds
}

func stampOf(st unix.Stat_t) stamp {
	return stamp{Mode: uint32(st.Mode), Ino: st.Ino, Size: st.Size,
		Mtime: unix.TimespecToNsec(st.Mtim), Ctime: unix.TimespecToNsec(st.Ctim)}
}

func stampFile(path string) (stamp, error) {
	var st unix.Stat_t
	err := unix.Lstat(dirfd.At(path), &st)
	if err != nil {
		err = &os.PathError{Op: "lstat", Path: path, Err: err}
	}
	return stampOf(st), err
}

// made is a file as setup made it. Sum is the hash of its content if the file has other names elsewhere (pnpm and uv
// link to their caches), because then each added or removed name changes the ctime.
type made struct {
	Is  stamp
	Sum string
}

// same reports whether a file is unchanged. A folder's times change with its content, which is checked by itself.
func (m made) same(current stamp, sum func() string) bool {
	recorded := m.Is
	if recorded.Mode&unix.S_IFMT == unix.S_IFDIR {
		return recorded.Mode == current.Mode
	}
	if m.Sum != "" {
		recorded.Ctime = current.Ctime
	}
	return recorded == current && (m.Is.Ctime == current.Ctime || m.Sum == sum())
}

// pristine is what setup made: every untracked path, by its name. If a tree lacks this record, its setup has not
// finished.
type pristine map[string]made

func (t *Tree) pristinePath() string { return filepath.Join(t.state, "pristine") }

func (t *Tree) loadPristine() (pristine, error) {
	f, err := os.Open(dirfd.At(t.pristinePath()))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var p pristine
	return p, gob.NewDecoder(f).Decode(&p)
}

// tick is longer than the granularity of the timestamps of any file system that pawl is likely to meet.
const tick = 20 * time.Millisecond

// Pristine records what setup.command has made in the tree, and marks the tree as finished. A later Restore of a
// judge keeps exactly that. The caller must call it after each Restore that made the tree again, even without a
// setup.command.
func (t *Tree) Pristine(ctx context.Context) error {
	v, err := t.enter(ctx)
	if err != nil {
		return err
	}
	defer v.leave()
	root := v.root
	if root == nil {
		return fmt.Errorf("%s is not a tree that pawl made: %w", git.Quote(t.Dir), fs.ErrNotExist)
	}
	ix, err := readIndex(t.indexPath())
	if err != nil {
		return err
	}
	// If setup checked out a submodule with `git submodule update`, its repository is in the tree's .git, which pawl
	// replaces. The submodule's files stay, but its .git file would lead nowhere and make every git command in the
	// tree fail.
	for _, link := range ix.links {
		if current, err := root.lstatAt(link + "/.git"); err == nil && current.Mode&unix.S_IFMT == unix.S_IFREG {
			if err := root.remove(link + "/.git"); err != nil {
				return err
			}
		}
	}
	entries, err := walk(root, false, func(p string) bool {
		_, tracked := ix.entries[p]
		return !tracked && !ix.folders[p]
	})
	if err != nil {
		return err
	}
	p := pristine{}
	newest := int64(0)
	for _, f := range entries {
		if f.is == nil {
			continue
		}
		sum := ""
		if f.linked {
			sum = root.sum(f.path)
		}
		p[f.path] = made{*f.is, sum}
		newest = max(newest, f.is.Ctime)
	}
	if err := v.copyChanging(p); err != nil {
		return err
	}
	// A file written in the same tick as the record keeps its timestamps. So let the tick pass.
	if wait := time.Until(time.Unix(0, newest).Add(tick)); wait > 0 {
		select {
		case <-time.After(min(wait, time.Second)):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	made, err := v.untracked(ctx)
	if err == nil {
		err = durable.CacheJSON(t.madePath(), made)
	}
	if err != nil {
		return err
	}
	return t.savePristine(p)
}

func (t *Tree) savePristine(p pristine) error {
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(p); err != nil {
		return err
	}
	return durable.WriteCache(t.pristinePath(), b.Bytes())
}
