package trees

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"pawl/internal/durable"
	"pawl/internal/git"
)

// Leftovers are the paths in the tree that head does not have, git does not ignore and setup did not make: what a
// command has left that ran there. A folder in which head has nothing stands for all that is in it.
func (t *Tree) Leftovers(ctx context.Context, head string) ([]string, error) {
	if err := git.CheckHashes(head); err != nil {
		return nil, err
	}
	lock, err := t.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	st := t.loadState()
	root, err := t.open(st)
	if root == nil || err != nil {
		return nil, err
	}
	defer root.Close()
	if !t.indexIsAt(st, head) { // what a Stage has taken is in it
		if _, err := t.call(lock, "read-tree", "--reset", head).Run(ctx); err != nil {
			return nil, err
		}
		if err := t.noteIndex(&st, head, ""); err != nil {
			return nil, err
		}
		if err := t.saveState(st); err != nil {
			return nil, err
		}
	}
	untracked, err := t.untracked(ctx, lock)
	if err != nil {
		return nil, err
	}
	made, err := t.loadMade()
	return slices.DeleteFunc(untracked, func(p string) bool { return slices.Contains(made, p) || inAny(made, p) }), err
}

// untracked lists what is neither tracked nor ignored, whole folders by their name.
func (t *Tree) untracked(ctx context.Context, lock *os.File) ([]string, error) {
	out, err := t.call(lock, "ls-files", "-z", "--others", "--exclude-standard", "--directory", "--no-empty-directory").Run(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing what a command has left: %w", err)
	}
	names := git.Fields(out)
	for i, name := range names {
		names[i] = strings.TrimSuffix(name, "/")
	}
	return names, nil
}

func (t *Tree) madePath() string { return filepath.Join(t.state, "made.json") }

// loadMade returns what setup made that git does not ignore, as untracked lists it. Without the file that is nothing.
func (t *Tree) loadMade() ([]string, error) { return readPaths(t.madePath()) }

// saveMade records what setup has made that git does not ignore.
func (t *Tree) saveMade(ctx context.Context, lock *os.File) error {
	made, err := t.untracked(ctx, lock)
	if err != nil {
		return err
	}
	return durable.CacheJSON(t.madePath(), made)
}

// apart are those of the paths in which the index has nothing.
func (ix *index) apart(paths ...[]string) (all []string) {
	for _, p := range slices.Concat(paths...) {
		if _, tracked := ix.entries[p]; !tracked && !ix.folders[p] && p != "" {
			all = append(all, p)
		}
	}
	return all
}
