package repo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"golang.org/x/sync/errgroup"
)

// RestoreOptions say which kind of tree is restored.
type RestoreOptions struct {
	// Judge: everything goes that is not in the commit, was not there when Pristine was called
	// and does not match Keep. Without it (a desk) untracked files go and ignored ones stay.
	Judge bool
	// Keep are doublestar globs of untracked files that may stay in a judge and may change there
	// (judge.keep): caches.
	Keep []string
	// Sealed are files that stand as the contract has them, whatever the commit says.
	Sealed []TreeEntry
}

// Restore brings the tree back to commit: tracked files exact in content, mode and kind,
// whatever else is there removed as the options say, and the tree's own .git as a fresh clone
// would have it.
//
// recreated means that the tree had to be made anew (it was missing, replaced or unfinished; in a
// judge, something that setup made had been changed or removed): the caller runs setup.command
// and calls Pristine, and, if setup may touch tracked files, Restore again.
func (t *Tree) Restore(ctx context.Context, commit string, o RestoreOptions) (recreated bool, err error) {
	if err := checkHashes(commit); err != nil {
		return false, err
	}
	for _, glob := range o.Keep {
		if !doublestar.ValidatePattern(glob) {
			return false, fmt.Errorf("repo: %s is not a glob", Quote(glob))
		}
	}
	lock, err := t.lock(ctx)
	if err != nil {
		return false, err
	}
	defer lock.Close()

	ok, err := t.restore(ctx, commit, lock, o)
	if ok && err == nil {
		return false, nil
	}
	if ctx.Err() != nil {
		return false, err
	}
	// Whatever it is that could not be mended in place: a new tree is the cure for all of it.
	if createErr := t.create(ctx, commit, lock, o); createErr != nil {
		return false, errors.Join(createErr, err)
	}
	return true, nil
}

// restore mends the tree in place; false if it has to be made anew.
func (t *Tree) restore(ctx context.Context, commit string, lock *os.File, o RestoreOptions) (bool, error) {
	st := t.loadState()
	if !st.Finished {
		return false, nil
	}
	root, err := t.open(st)
	if root == nil || err != nil {
		return false, err
	}
	defer root.Close()
	before, err := readIndex(t.indexPath())
	if err != nil {
		return false, err
	}
	record, err := t.loadPristine()
	if err != nil {
		return false, err
	}
	atCommit := t.indexIsAt(st, commit, before)
	entries, err := walk(root, true, func(p string) bool {
		if _, ok := record[p]; ok {
			return true
		}
		_, tracked := before.entries[p]
		return atCommit && tracked
	})
	if err != nil {
		return false, err
	}

	// First what would make git act on something other than the tree's own files. git takes a
	// tracked file that it reaches through a symlinked folder for unchanged if that folder is
	// the moved original.
	c := cleaner{root: root}
	var extras []found
	unchanged := 0
	for _, f := range entries {
		if c.isGone(f.path) {
			continue
		}
		e, tracked := before.entries[f.path]
		switch {
		case tracked && e.isGitlink() && f.kind == isDir:
		case tracked && !e.isGitlink() && (f.kind == isFile || f.kind == isLink):
			if f.is != nil && e.unchanged(*f.is, st.IndexIs.Mtime) {
				unchanged++
			}
		case tracked:
			err = c.remove(f.path)
		case before.folders[f.path] && f.kind == isDir && f.shut == "":
		case before.folders[f.path]:
			err = c.remove(f.path)
		default:
			extras = append(extras, f)
		}
		if err != nil {
			return false, err
		}
	}
	if o.Judge {
		intact, err := t.cleanJudge(root, extras, before, record, o.Keep)
		if err != nil || !intact {
			return false, err
		}
	}
	exact := atCommit && unchanged == len(before.entries)
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { return t.checkout(gctx, &st, commit, exact, lock, o) })
	git := st.Git
	g.Go(func() (err error) {
		git, err = t.givePack(gctx, root, git, commit, lock)
		return err
	})
	if err := g.Wait(); err != nil {
		return false, err
	}
	if !o.Judge {
		if err := t.cleanDesk(ctx, root, extras, before, record, lock); err != nil {
			return false, err
		}
	}
	return true, t.show(&st, git, commit)
}

// indexIsAt reports whether the index is known to be what commit's tree is, so that files that
// match it need no git to look at them: the case of an iteration that begins where the last one
// was kept.
func (t *Tree) indexIsAt(st treeState, commit string, ix *index) bool {
	if st.IndexTree == "" || len(ix.links) > 0 {
		return false
	}
	c, known := t.store.commits.get(commit)
	if !known || c.Tree != st.IndexTree {
		return false
	}
	now, err := stampFile(t.indexPath())
	return err == nil && now == st.IndexIs
}

// noteIndex remembers which tree the index is.
func (t *Tree) noteIndex(st *treeState, tree string) error {
	is, err := stampFile(t.indexPath())
	st.IndexTree, st.IndexIs = tree, is
	return err
}

// cleaner removes paths and remembers the last one, below which a walk found more.
type cleaner struct {
	root *folder
	gone string // with '/' at its end
}

func (c *cleaner) isGone(p string) bool { return c.gone != "" && strings.HasPrefix(p, c.gone) }

func (c *cleaner) remove(p string) error {
	c.gone = p + "/"
	return c.root.remove(p)
}

// checkout makes tracked files exact. --reset -u looks at every file's stat data, rewrites what
// differs in any of it (so a mode or a mended mtime too) and removes what the commit before had
// and this one has not.
// Where they are known to be exact it does nothing.
func (t *Tree) checkout(ctx context.Context, st *treeState, commit string, exact bool, lock *os.File, o RestoreOptions) error {
	if !exact {
		if _, err := t.call(lock, "read-tree", "--reset", "-u", "--no-recurse-submodules", commit).run(ctx); err != nil {
			return err
		}
		c, _ := t.store.commits.get(commit)
		if err := t.noteIndex(st, c.Tree); err != nil {
			return err
		}
	}
	if len(o.Sealed) == 0 {
		return nil
	}
	ix, err := readIndex(t.indexPath())
	if err != nil {
		return err
	}
	var info, paths strings.Builder
	for _, s := range o.Sealed {
		if s.Mode == modeGitlink {
			continue
		}
		if e, ok := ix.entries[s.Path]; ok && e.modeText() == s.Mode && e.blobText() == s.Blob {
			continue
		}
		// A folder or file that stands where the sealed file has to gives way in the index too.
		fmt.Fprintf(&info, "%s %s\t%s\x00", s.Mode, s.Blob, s.Path)
		paths.WriteString(s.Path + "\x00")
	}
	if info.Len() == 0 {
		return nil
	}
	st.IndexTree = ""
	c := t.call(lock, "update-index", "--add", "--replace", "-z", "--index-info")
	c.stdin = strings.NewReader(info.String())
	if _, err := c.run(ctx); err != nil {
		return err
	}
	c = t.call(lock, "checkout-index", "--force", "--index", "--quiet", "-z", "--stdin")
	c.stdin = strings.NewReader(paths.String())
	_, err = c.run(ctx)
	return err
}

// cleanJudge removes what is neither tracked nor recorded nor kept; false if something recorded
// has been changed or is gone.
func (t *Tree) cleanJudge(root *folder, extras []found, ix *index, record pristine, keep []string) (bool, error) {
	stays := make(map[string]bool, len(record))
	needed := map[string]bool{}
	seen := 0
	for _, f := range extras {
		kept := f.kind != isOther && f.shut == "" && matches(keep, f.path)
		if was, ok := record[f.path]; ok {
			seen++
			if !kept && (f.shut != "" || !was.same(*f.is)) {
				return false, nil
			}
			kept = true
		}
		if kept {
			stays[f.path] = true
			for d := path.Dir(f.path); d != "." && !needed[d]; d = path.Dir(d) {
				needed[d] = true
			}
		}
	}
	if seen < len(record) {
		have := make(map[string]bool, len(extras))
		for _, f := range extras {
			have[f.path] = true
		}
		for p := range record {
			if _, tracked := ix.entries[p]; !tracked && !ix.folders[p] && !have[p] && !matches(keep, p) {
				return false, nil
			}
		}
	}
	c := cleaner{root: root}
	for _, f := range extras {
		if stays[f.path] || needed[f.path] || c.isGone(f.path) {
			continue
		}
		if err := c.remove(f.path); err != nil {
			return false, err
		}
	}
	return true, nil
}

func matches(globs []string, p string) bool {
	for _, g := range globs {
		if doublestar.MatchUnvalidated(g, p) {
			return true
		}
	}
	return false
}

// cleanDesk removes what is untracked and not ignored, after the checkout: which files are
// ignored is for the commit's .gitignore to say, not for one that the agent wrote.
func (t *Tree) cleanDesk(ctx context.Context, root *folder, extras []found, before *index, record pristine, lock *os.File) error {
	now, err := readIndex(t.indexPath())
	if err != nil {
		return err
	}
	c := cleaner{root: root}
	var odd []string // what ls-files does not list
	ask := false
	for i, f := range extras {
		if c.isGone(f.path) || isRootFile(f.path) && f.kind == isFile {
			continue
		}
		if _, tracked := now.entries[f.path]; tracked {
			continue // the checkout has replaced it
		}
		if now.folders[f.path] && f.kind == isDir && f.shut == "" {
			continue
		}
		if inAny(now.links, f.path) {
			// git looks at nothing in a submodule's folder. What setup put there stays.
			if _, ok := record[f.path]; !ok {
				if err := c.remove(f.path); err != nil {
					return err
				}
			}
			continue
		}
		ask = true
		switch {
		case f.kind == isOther, f.shut != "", path.Base(f.path) == ".git":
			odd = append(odd, f.path)
		case f.kind == isDir && (i+1 == len(extras) || !strings.HasPrefix(extras[i+1].path, f.path+"/")):
			odd = append(odd, f.path) // empty
		}
	}
	if !ask {
		return nil
	}
	if err := t.removeUntracked(ctx, root, lock); err != nil {
		return err
	}
	if len(odd) == 0 {
		return nil
	}
	ignored, err := t.ignored(ctx, odd, lock)
	if err != nil {
		return err
	}
	for _, p := range odd {
		if !ignored[p] {
			if err := root.remove(p); err != nil {
				return err
			}
			root.removeEmptyParents(p, now)
		}
	}
	return nil
}

// removeUntracked removes the untracked files that are not ignored. Removing a .gitignore can
// uncover more.
func (t *Tree) removeUntracked(ctx context.Context, root *folder, lock *os.File) error {
	const rounds = 100
	for range rounds {
		out, err := t.call(lock, "ls-files", "-z", "--others", "--exclude-standard").run(ctx)
		if err != nil {
			return err
		}
		ix, err := readIndex(t.indexPath())
		if err != nil {
			return err
		}
		again := false
		for p := range strings.SplitSeq(string(out), "\x00") {
			if p == "" {
				continue
			}
			// A nested repository is listed as a folder.
			p = strings.TrimSuffix(p, "/")
			again = again || path.Base(p) == ".gitignore"
			if err := root.remove(p); err != nil {
				return err
			}
			root.removeEmptyParents(p, ix)
		}
		if !again {
			return nil
		}
	}
	return errors.New("repo: .gitignore files nested without end")
}

// removeEmptyParents removes the folders above p that removing it has emptied, as git clean does.
func (d *folder) removeEmptyParents(p string, ix *index) {
	for p = path.Dir(p); p != "." && !ix.folders[p]; p = path.Dir(p) {
		dir, name, err := d.at(p)
		if err != nil {
			return
		}
		err = rmdir(dir, name)
		if dir != d {
			_ = dir.Close()
		}
		if err != nil {
			return
		}
	}
}

// ignored tells which of the paths the tree's .gitignore files and pawl's excludes ignore.
func (t *Tree) ignored(ctx context.Context, paths []string, lock *os.File) (map[string]bool, error) {
	c := t.call(lock, "check-ignore", "-z", "--stdin")
	c.env = append(c.env, "GIT_LITERAL_PATHSPECS=1")
	c.stdin = strings.NewReader(strings.Join(paths, "\x00") + "\x00")
	out, err := c.run(ctx)
	if err != nil && !exited(err, 1) { // 1: none
		return nil, err
	}
	m := map[string]bool{}
	for p := range strings.SplitSeq(string(out), "\x00") {
		m[p] = true
	}
	return m, nil
}

// inAny reports whether p is below one of the folders.
func inAny(folders []string, p string) bool {
	for _, f := range folders {
		if strings.HasPrefix(p, f) && len(p) > len(f) && p[len(f)] == '/' {
			return true
		}
	}
	return false
}
