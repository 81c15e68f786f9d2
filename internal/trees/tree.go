// Package trees makes and keeps the directories of a loop: the desk, where the agent works, and the judge, where its
// work is judged. It brings a commit of the store into a directory and back (stage).
//
// It never believes or runs anything that lies in a tree: not its .git, hooks, configuration or symlinks. It never
// commits, never touches the user's repository, and decides nothing about a change: it reports what can't be committed
// as a violation. Start reading at Tree, then Restore and StageRead.
package trees

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"pawl/internal/durable"
	"pawl/internal/git"
	"pawl/internal/held"
	"pawl/internal/remove"
	"pawl/internal/store"
)

// Tree is a desk or a judge: a directory that stands for one commit of the store. To whoever works in
// it, it is a whole clone (see gitdir.go). pawl runs git on its files with the store's git directory
// and an index outside the tree.
//
// The caller ends what the agent left behind before it calls a method. A Tree is not for concurrent
// use, but several of the same directory, also in different processes, wait for each other.
type Tree struct {
	Dir    string // absolute
	Branch string // what the tree's own .git shows as checked out, e.g. pawl/<loop>
	Origin string // the URL that the tree's own .git shows as its remote origin, which nothing is pushed to; "" for none
	Why    string // why the last Restore made the tree anew, for people; "" where it did not, or the tree was never finished
	Lost   bool   // Why is that something has become of the tree; else there was none
	Torn   string // what pawl keeps of the tree and could not be read, and is made again: the index, the record; "" for nothing

	store *store.Store
	state string // the folder of index, state.json and pristine; never inside Dir
}

// At names a tree; it need not exist yet. stateDir must not be in dir nor within the reach of
// whatever runs there.
func At(s *store.Store, dir, stateDir, branch string) *Tree {
	return &Tree{Dir: filepath.Clean(dir), Branch: branch, store: s, state: filepath.Clean(stateDir)}
}

// treeState is what pawl remembers about a tree it made. It is a cache: without it the tree is
// made anew.
type treeState struct {
	// Dev and Ino are the directory's: one that was replaced is not ours.
	Dev, Ino uint64
	// The index is IndexCommit's tree, or IndexTree, as long as the index file is IndexIs.
	IndexCommit, IndexTree string
	IndexIs                stamp
	Git                    gitDir
}

func (t *Tree) indexPath() string { return filepath.Join(t.state, "index") }

// loadState returns what is remembered. Where a power cut has torn the file, the directory that is there
// now counts as the tree: its files are as the agent left them, and nothing else about it is believed.
func (t *Tree) loadState() treeState {
	var st treeState
	err := durable.ReadJSON(filepath.Join(t.state, "state.json"), &st)
	if err == nil {
		return st
	}
	if errors.Is(err, durable.ErrTorn) {
		t.Torn = "what pawl has noted about it"
	}
	var dir unix.Stat_t
	if !errors.Is(err, durable.ErrTorn) || unix.Lstat(held.At(t.Dir), &dir) != nil {
		return treeState{}
	}
	return treeState{Dev: uint64(dir.Dev), Ino: dir.Ino}
}

func (t *Tree) saveState(st treeState) error {
	b, err := durable.Encode(st)
	if err != nil {
		return err
	}
	path := filepath.Join(t.state, "state.json")
	if have, err := os.ReadFile(held.At(path)); err == nil && bytes.Equal(have, b) {
		return nil
	}
	return durable.WriteCache(path, b)
}

// lock keeps other processes from working on the tree's files. git processes hold it too until they
// end, so a lock file on the index is stale for whoever has it.
func (t *Tree) lock(ctx context.Context) (*os.File, error) {
	if !filepath.IsAbs(t.Dir) || !filepath.IsAbs(t.state) {
		return nil, fmt.Errorf("a tree needs absolute paths, not %s and %s", git.Quote(t.Dir), git.Quote(t.state))
	}
	if err := os.MkdirAll(held.At(t.state), 0o700); err != nil {
		return nil, err
	}
	lock, err := durable.Lock(ctx, filepath.Join(t.state, "lock"))
	if err != nil {
		return nil, err
	}
	if err := os.Remove(held.At(t.indexPath()) + ".lock"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		_ = lock.Close()
		return nil, err
	}
	return lock, nil
}

// call is a git process on the tree's files: the store's git directory, the private index.
func (t *Tree) call(lock *os.File, args ...string) *git.Command {
	c := t.store.Git().With("GIT_WORK_TREE="+t.Dir, "GIT_INDEX_FILE="+t.indexPath()).Command(args...)
	c.Lock = lock
	return c
}

// open opens the tree if it is there and the one that pawl made; nil if not.
func (t *Tree) open(st treeState) (*folder, error) {
	root, err := openFolder(t.Dir)
	if err != nil {
		return nil, nil //nolint:nilerr // missing, a symlink, a file, unreadable: not the tree
	}
	now, err := root.stat()
	if err != nil {
		_ = root.Close()
		return nil, err
	}
	if uint64(now.Dev) != st.Dev || now.Ino != st.Ino {
		_ = root.Close()
		return nil, nil
	}
	return root, nil
}

// Remove gives the tree up, with everything in it and everything remembered about it.
func (t *Tree) Remove(ctx context.Context) error {
	lock, err := t.lock(ctx)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := t.wipe(); err != nil {
		return err
	}
	return os.RemoveAll(held.At(t.state))
}

// wipe removes the tree and forgets it. What a symlink in its place points to stays as it is.
func (t *Tree) wipe() error {
	for _, name := range []string{"state.json", "pristine", "made.json", "index"} {
		if err := os.Remove(held.At(filepath.Join(t.state, name))); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return remove.All(t.Dir)
}

// create makes the tree anew at commit.
func (t *Tree) create(ctx context.Context, commit string, lock *os.File, o RestoreOptions) error {
	// Not before the new one is known to be possible.
	if _, err := t.store.ReadCommit(ctx, commit); err != nil {
		return err
	}
	if err := t.wipe(); err != nil {
		return err
	}
	if err := os.MkdirAll(held.At(filepath.Dir(t.Dir)), 0o700); err != nil {
		return err
	}
	if err := os.Mkdir(held.At(t.Dir), 0o755); err != nil {
		return err
	}
	root, err := openFolder(t.Dir)
	if err != nil {
		return err
	}
	defer root.Close()
	dir, err := root.stat()
	if err != nil {
		return err
	}
	st := treeState{Dev: uint64(dir.Dev), Ino: dir.Ino}
	if err := t.checkout(ctx, &st, commit, false, lock, o); err != nil {
		return err
	}
	dot, err := t.givePack(ctx, root, st.Git, commit, lock)
	if err != nil {
		return err
	}
	return t.show(&st, dot, commit)
}
