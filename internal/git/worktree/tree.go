// Package worktree makes and keeps the directories of a loop: the desk, where the agent works, and the judge, where its
// work is judged. It brings a commit of the store into a directory and back (stage).
//
// It never trusts or runs anything in a tree: not its .git, hooks, configuration or symlinks. It never commits, never
// touches the user's repository, and decides nothing about a change: it reports what can't be committed as a
// violation. Start reading at Tree, then Restore and StageRead.
package worktree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"pawl/internal/git"
	"pawl/internal/git/store"
	"pawl/internal/lib/fsutil/dirfd"
	"pawl/internal/lib/fsutil/durable"
	"pawl/internal/lib/fsutil/remove"
)

// Tree is a desk or a judge: a directory that contains one commit of the store. Whoever works in it sees a whole clone
// (see gitdir.go). pawl runs git on its files with the store's git directory and an index outside the tree.
//
// The caller ends the agent's processes before it calls a method. A Tree is not for concurrent use. But several Trees
// of one directory, even in different processes, wait for each other.
type Tree struct {
	Dir    string // absolute
	Branch string // what the tree's own .git shows as checked out, e.g. pawl/<loop>
	Origin string // the URL of the remote origin that the tree's own .git shows; nothing is pushed to it; "" for none
	Onto   string // the branch from which the work started: the tree's own .git shows it at Base, here and at origin; "" for none
	Base   string // the store's ref with the commit from which the work started
	Why    string // why the last Restore made the tree again, for people; "" if it did not, or if the tree was never finished
	Lost   bool   // Why says that the tree was damaged or lost
	Torn   string // which of pawl's records of the tree could not be read and is made again: the index, the record; "" for none

	store *store.Store
	base  string // the commit of Base, once it is known
	state string // the folder of index, state.json and pristine; never inside Dir
}

// At names a tree, which need not exist yet. stateDir must be neither in dir nor within reach of what runs there.
func At(s *store.Store, dir, stateDir, branch string) *Tree {
	return &Tree{Dir: filepath.Clean(dir), Branch: branch, store: s, state: filepath.Clean(stateDir)}
}

// treeState is what pawl remembers about a tree. It is a cache: without it, the tree is made again.
type treeState struct {
	// Dev and Ino identify the directory: a replaced one is not ours.
	Dev, Ino uint64
	// While the index file is IndexIs, it holds IndexCommit's tree, or IndexTree.
	IndexCommit, IndexTree string
	IndexIs                stamp
	Git                    gitDir
}

func (t *Tree) indexPath() string { return filepath.Join(t.state, "index") }

// loadState returns what is remembered. If a power cut tore the file, the present directory counts as the tree with the
// agent's files, and nothing else about it is trusted. An error says that nobody can look now.
func (t *Tree) loadState() (treeState, error) {
	var st treeState
	err := durable.ReadJSON(filepath.Join(t.state, "state.json"), &st)
	if err == nil || git.Starved(err) {
		return st, err
	}
	if errors.Is(err, durable.ErrTorn) {
		t.Torn = "pawl's own record"
	}
	var dir unix.Stat_t
	if !errors.Is(err, durable.ErrTorn) || unix.Lstat(dirfd.At(t.Dir), &dir) != nil {
		return treeState{}, nil
	}
	return treeState{Dev: uint64(dir.Dev), Ino: dir.Ino}, nil
}

func (v *visit) saveState() error {
	return durable.CacheJSON(filepath.Join(v.state, "state.json"), v.st)
}

// visit is what a method has of a tree while it works on it.
type visit struct {
	*Tree
	lock *os.File
	st   treeState
	root *folder // nil if the tree is missing or not the one that pawl made
}

// enter locks and opens the tree, until the caller leaves it.
func (t *Tree) enter(ctx context.Context) (v *visit, err error) {
	v = &visit{Tree: t}
	if v.lock, err = t.lock(ctx); err != nil {
		return nil, err
	}
	if v.st, err = t.loadState(); err == nil {
		v.root, err = t.open(v.st)
	}
	if err != nil {
		v.leave()
		return nil, err
	}
	return v, nil
}

func (v *visit) leave() {
	_ = v.root.Close()
	_ = v.lock.Close()
}

// lock keeps other processes from working on the tree's files. git processes hold it until they end, so an index.lock
// that the holder finds is stale.
func (t *Tree) lock(ctx context.Context) (*os.File, error) {
	if !filepath.IsAbs(t.Dir) || !filepath.IsAbs(t.state) {
		return nil, fmt.Errorf("a tree needs absolute paths, not %s and %s", git.Quote(t.Dir), git.Quote(t.state))
	}
	if err := os.MkdirAll(dirfd.At(t.state), 0o700); err != nil {
		return nil, err
	}
	// Beside the folder: NFS and FUSE keep a name for a file that is removed while it is open, and a folder with such a
	// name can't be removed.
	lock, err := durable.Lock(ctx, t.state+".lock")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(dirfd.At(t.indexPath()) + ".lock"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		_ = lock.Close()
		return nil, err
	}
	return lock, nil
}

// call returns a git command on the tree's files, with the store's git directory and the private index.
func (v *visit) call(args ...string) *git.Command {
	return v.store.Git().With("GIT_WORK_TREE="+v.Dir, "GIT_INDEX_FILE="+v.indexPath()).Command(args...).Holding(v.lock)
}

// open opens the tree. It returns nil if the tree is missing or not the one that pawl made.
func (t *Tree) open(st treeState) (*folder, error) {
	root, err := openFolder(t.Dir)
	if git.Starved(err) {
		return nil, err
	}
	if err != nil {
		return nil, nil //nolint:nilerr // missing, a symlink, a file, unreadable: not the tree
	}
	stat, err := root.stat()
	if err != nil {
		_ = root.Close()
		return nil, err
	}
	if uint64(stat.Dev) != st.Dev || stat.Ino != st.Ino {
		_ = root.Close()
		return nil, nil
	}
	return root, nil
}

// Remove removes the tree and everything remembered about it.
func (t *Tree) Remove(ctx context.Context) error {
	lock, err := t.lock(ctx)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := t.wipe(); err != nil {
		return err
	}
	return os.RemoveAll(dirfd.At(t.state))
}

// wipe removes the tree and forgets it. If a symlink stands in its place, the symlink's target stays.
func (t *Tree) wipe() error {
	for _, name := range []string{"state.json", "pristine", "made.json", "index"} {
		if err := os.Remove(dirfd.At(filepath.Join(t.state, name))); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return remove.All(t.Dir)
}

// create makes the tree again at commit.
func (v *visit) create(ctx context.Context, commit string) error {
	// Keep the old tree until the new one is known to be possible.
	if _, err := v.store.ReadCommit(ctx, commit); err != nil {
		return err
	}
	_ = v.root.Close()
	if err := v.wipe(); err != nil {
		return err
	}
	if err := os.MkdirAll(dirfd.At(filepath.Dir(v.Dir)), 0o700); err != nil {
		return err
	}
	if err := os.Mkdir(dirfd.At(v.Dir), 0o755); err != nil {
		return err
	}
	root, err := openFolder(v.Dir)
	if err != nil {
		return err
	}
	v.root = root
	dir, err := root.stat()
	if err != nil {
		return err
	}
	v.st = treeState{Dev: uint64(dir.Dev), Ino: dir.Ino}
	if err := v.checkout(ctx, commit); err != nil {
		return err
	}
	if err := v.givePack(ctx, commit); err != nil {
		return err
	}
	return v.show(ctx, commit)
}
