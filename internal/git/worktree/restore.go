package worktree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/bmatcuk/doublestar/v4"

	"pawl/internal/git"
	"pawl/internal/lib/safego"
)

// RestoreOptions say which kind of tree is restored.
type RestoreOptions struct {
	// Judge restores a judge: everything goes that is not in the commit, did not exist when Pristine was called and
	// does not match Keep. Without it (a desk), untracked files go and ignored ones stay.
	Judge bool
	// Keep are doublestar globs of untracked files, or of folders with everything in them, that may stay and change in
	// a judge (judge.keep): caches.
	Keep []string
	// Clean also resets these: files that setup made become as setup made them, and the rest goes.
	Clean bool
	// Like is a commit with the same tree as the restored one, such as the parent of a reverted commit. If the tree's
	// own .git shows Like already, it is left alone.
	Like string
}

// Restore brings the tree back to commit: tracked files get their exact content, mode and kind, everything else is
// removed as the options say, and the tree's own .git becomes that of a fresh clone.
//
// recreated means that the tree was made again, for the reason in Tree.Why. Then the caller runs setup.command and
// calls Pristine. If setup may touch tracked files, it calls Restore again.
func (t *Tree) Restore(ctx context.Context, commit string, o RestoreOptions) (recreated bool, err error) {
	if err := git.CheckHashes(commit); err != nil {
		return false, err
	}
	for _, glob := range o.Keep {
		if !doublestar.ValidatePattern(glob) {
			return false, fmt.Errorf("%s is not a glob", git.Quote(glob))
		}
	}
	t.Why, t.Lost = "", false
	v, err := t.enter(ctx)
	if err != nil {
		return false, err
	}
	defer v.leave()
	ok := v.st.Ino != 0
	cause := v.restore(ctx, commit, o)
	if cause == nil {
		return false, nil
	}
	if ctx.Err() != nil {
		return false, errors.Join(ctx.Err(), cause)
	}
	if git.Starved(cause) { // nothing is known about the tree, and a new one would need the same
		return false, cause
	}
	// A new tree solves whatever could not be repaired in place.
	if err := v.create(ctx, commit); err != nil {
		return false, errors.Join(err, cause)
	}
	if !errors.Is(cause, errUnfinished) {
		t.Why, t.Lost = cause.Error(), ok && !errors.Is(cause, errSubmoduleChanged)
	}
	return true, nil
}

// errUnfinished means that the setup of the tree was cut off.
var errUnfinished = errors.New("the tree was not finished")

// errSubmoduleChanged means that the desk has changes that no commit takes. They were named when the change was taken, so
// the tree is not lost.
var errSubmoduleChanged = errors.New("a submodule was changed after setup")

// restore repairs the tree in place. An error says why it has to be made again.
func (v *visit) restore(ctx context.Context, commit string, o RestoreOptions) error {
	if v.root == nil {
		return errors.New("the tree was missing or replaced")
	}
	oldIndex, err := readIndex(v.indexPath())
	if err != nil {
		return err
	}
	record, err := v.loadPristine()
	if errors.Is(err, fs.ErrNotExist) {
		return errUnfinished
	}
	if err != nil {
		return fmt.Errorf("what belongs into the tree can't be read: %w", err)
	}
	atCommit := len(oldIndex.links) == 0 && v.indexIsAt(commit)
	index, err := stampFile(v.indexPath())
	if err != nil {
		return err
	}
	entries, err := walk(v.root, true, func(p string) bool {
		if _, ok := record[p]; ok {
			return true
		}
		_, tracked := oldIndex.entries[p]
		return tracked
	})
	if err != nil {
		return err
	}

	// First remove everything that is not certainly what git put there. git compares times only by the second, and
	// treats a file as unchanged if it reaches it through a symlink to a moved folder.
	c := cleaner{root: v.root}
	var extras []found
	unchanged := 0
	for _, f := range entries {
		if c.isGone(f.path) {
			continue
		}
		e, tracked := oldIndex.entries[f.path]
		switch {
		case tracked && e.isGitlink() && f.mode.IsDir():
		case tracked && e.unchanged(*f.is, index.Mtime):
			unchanged++
		case tracked && e.matches(*f.is) && e.gitReads(index.Mtime):
			// A tracked file is not removed on suspicion alone, because builds use its mtime.
		case tracked:
			err = c.remove(f.path)
		case oldIndex.folders[f.path] && f.isOpen():
		case oldIndex.folders[f.path]:
			err = c.remove(f.path)
		default:
			extras = append(extras, f)
		}
		if err != nil {
			return err
		}
	}
	if o.Judge {
		if err := v.cleanJudge(extras, oldIndex, record, o); err != nil {
			return err
		}
	} else {
		changed, err := v.changedInSubmodules(ctx, oldIndex.links, entries)
		if err != nil {
			return err
		}
		if len(changed) > 0 { // a judge would not have that
			return fmt.Errorf("%s in %w", git.Quote(changed[0]), errSubmoduleChanged)
		}
	}
	g, gctx := safego.WithContext(ctx)
	if !atCommit || unchanged < len(oldIndex.entries) {
		g.Go(func() error { return v.checkout(gctx, commit) })
	}
	shown := commit
	if o.Like != "" && v.st.Git.Shown == o.Like {
		shown = o.Like
	}
	g.Go(func() error { return v.givePack(gctx, shown) })
	if err := g.Wait(); err != nil {
		return err
	}
	if !o.Judge {
		if err := v.cleanDesk(ctx, extras, record); err != nil {
			return err
		}
	}
	return v.show(ctx, shown)
}

// indexIsAt reports whether the index is known to hold commit's tree. Files that match such an index need no git
// command.
func (v *visit) indexIsAt(commit string) bool {
	if v.st.IndexCommit != commit {
		c, ok := v.store.Known(commit)
		if !ok || c.Tree != v.st.IndexTree {
			return false
		}
	}
	current, err := stampFile(v.indexPath())
	return err == nil && current == v.st.IndexIs
}

// noteIndex records what the index holds: a commit's tree, or a tree by its ID.
func (v *visit) noteIndex(commit, tree string) error {
	current, err := stampFile(v.indexPath())
	v.st.IndexCommit, v.st.IndexTree, v.st.IndexIs = commit, tree, current
	return err
}

// checkout makes tracked files exact.
func (v *visit) checkout(ctx context.Context, commit string) error {
	if _, err := v.call("read-tree", "--reset", "-u", "--no-recurse-submodules", commit).Run(ctx); err != nil {
		return err
	}
	return v.noteIndex(commit, "")
}
