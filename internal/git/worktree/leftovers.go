package worktree

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"pawl/internal/git"
)

// Leftovers returns the paths in the tree that are not in head, that git does not ignore and that setup did not make:
// what a command left behind. A folder without any file of head stands for everything in it.
func (t *Tree) Leftovers(ctx context.Context, head string) ([]string, error) {
	if err := git.CheckHashes(head); err != nil {
		return nil, err
	}
	v, err := t.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer v.leave()
	if v.root == nil {
		return nil, nil
	}
	if !v.indexIsAt(head) { // it contains what a Stage added
		if _, err := v.call("read-tree", "--reset", head).Run(ctx); err != nil {
			return nil, err
		}
		if err := v.noteIndex(head, ""); err != nil {
			return nil, err
		}
		if err := v.saveState(); err != nil {
			return nil, err
		}
	}
	untracked, err := v.untracked(ctx)
	if err != nil {
		return nil, err
	}
	made, err := readPaths(t.madePath())
	return slices.DeleteFunc(untracked, func(p string) bool { return slices.Contains(made, p) || inAny(made, p) }), err
}

// untracked lists what is neither tracked nor ignored. A folder without tracked files is listed as one path.
func (v *visit) untracked(ctx context.Context) ([]string, error) {
	out, err := v.call("ls-files", "-z", "--others", "--exclude-standard", "--directory", "--no-empty-directory").Run(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing what a command has left: %w", err)
	}
	names := git.Fields(out)
	for i, name := range names {
		names[i] = strings.TrimSuffix(name, "/")
	}
	return names, nil
}

// madePath is the list of the files that setup made and git does not ignore, as untracked lists them.
func (t *Tree) madePath() string { return filepath.Join(t.state, "made.json") }

// apart returns those of the paths below which the index has nothing.
func (ix *index) apart(paths ...[]string) (names []string) {
	for _, p := range slices.Concat(paths...) {
		if _, tracked := ix.entries[p]; !tracked && !ix.folders[p] && p != "" {
			names = append(names, p)
		}
	}
	return names
}
