package worktree

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"golang.org/x/sys/unix"

	"pawl/internal/git"
	"pawl/internal/git/store"
	"pawl/internal/lib/list"
)

// cleaner removes paths. It remembers the last one, because a walk has listed more paths below it.
type cleaner struct {
	root *folder
	gone string // with '/' at its end
}

func (c *cleaner) isGone(p string) bool { return c.gone != "" && strings.HasPrefix(p, c.gone) }

func (c *cleaner) remove(p string) error {
	c.gone = p + "/"
	return c.root.remove(p)
}

// cleanJudge removes what is neither tracked, nor recorded, nor kept. If a recorded file was changed or removed and
// can't be restored, it returns an error.
func (v *visit) cleanJudge(extras []found, ix *index, record pristine, o RestoreOptions) error {
	var spoiled, changing []string
	spoil := func(p string) {
		if o.Clean && matches(o.Keep, p) && len(changing) < maxChanging {
			changing = append(changing, p)
		}
		spoiled = append(spoiled, p)
	}
	stays := make(map[string]bool, len(record)) // with their parent folders
	unseen := maps.Clone(record)
	renewed := false
	renew := func(p string) error {
		current, back, err := v.bringBack(p, record[p])
		if record[p] = current; back {
			renewed = true
		} else if err == nil {
			spoil(p)
		}
		return err
	}
	for _, f := range extras {
		kept := !f.isOdd() && f.shut == "" && !o.Clean && matches(o.Keep, f.path)
		if recorded, ok := record[f.path]; ok {
			delete(unseen, f.path)
			switch {
			case kept:
			case f.shut != "":
				spoil(f.path)
			case !recorded.same(*f.is, func() string { return v.root.sum(f.path) }):
				if err := renew(f.path); err != nil {
					return err
				}
			case recorded.Sum != "" && recorded.Is.Ctime != f.is.Ctime: // note the new time, or the file would be read every time
				record[f.path], renewed = made{*f.is, recorded.Sum}, true
			}
			kept = true
		}
		if kept {
			for p := f.path; p != "." && !stays[p]; p = path.Dir(p) {
				stays[p] = true
			}
		}
	}
	for p := range unseen {
		if _, tracked := ix.entries[p]; tracked || ix.folders[p] || !o.Clean && matches(o.Keep, p) {
			continue
		}
		if err := renew(p); err != nil {
			return err
		}
	}
	if len(spoiled) > 0 {
		slices.Sort(spoiled)
		return errors.Join(v.noteChanging(changing), fmt.Errorf("%s, which setup made, was changed or removed; list it in judge.keep if it may be", git.Quote(spoiled[0])))
	}
	if renewed {
		if err := v.savePristine(record); err != nil {
			return err
		}
	}
	c := cleaner{root: v.root}
	for _, f := range extras {
		if stays[f.path] || c.isGone(f.path) {
			continue
		}
		if err := c.remove(f.path); err != nil {
			return err
		}
	}
	return nil
}

// matches reports whether a glob matches the path or a folder that it is in.
func matches(globs []string, p string) bool {
	for ; p != "."; p = path.Dir(p) {
		if slices.ContainsFunc(globs, func(g string) bool { return doublestar.MatchUnvalidated(g, p) }) {
			return true
		}
	}
	return false
}

// cleanDesk removes what is untracked and not ignored, after the checkout: the commit's .gitignore decides what is
// ignored, not one that the agent wrote. Files that setup made stay, as ignored files do.
func (v *visit) cleanDesk(ctx context.Context, extras []found, record pristine) error {
	index, err := readIndex(v.indexPath())
	if err != nil {
		return err
	}
	made, err := readPaths(v.madePath())
	if err != nil {
		return err
	}
	made = index.apart(made)
	c := cleaner{root: v.root}
	var odd []string // what ls-files does not list
	ask := false
	for i, f := range extras {
		_, tracked := index.entries[f.path]
		switch {
		case c.isGone(f.path), store.IsRootFile(f.path) && f.mode.IsRegular(), slices.Contains(made, f.path), inAny(made, f.path):
			continue
		case tracked: // the checkout replaced it
			continue
		case index.folders[f.path] && f.isOpen():
			continue
		case inAny(index.links, f.path):
			// git inspects nothing in a submodule's folder. What setup put there stays.
			if _, ok := record[f.path]; !ok {
				if err := c.remove(f.path); err != nil {
					return err
				}
			}
			continue
		}
		ask = true
		switch {
		case f.isOdd(), f.shut != "", path.Base(f.path) == ".git":
			odd = append(odd, f.path)
		case f.mode.IsDir() && (i+1 == len(extras) || !strings.HasPrefix(extras[i+1].path, f.path+"/")):
			odd = append(odd, f.path) // empty
		}
	}
	if !ask {
		return nil
	}
	if err := v.removeUntracked(ctx, made); err != nil {
		return err
	}
	ignored, err := v.ignored(ctx, odd)
	if err != nil {
		return err
	}
	for _, p := range odd {
		if !ignored[p] {
			if err := v.root.remove(p); err != nil {
				return err
			}
			v.root.removeEmptyParents(p, index)
		}
	}
	return nil
}

// removeUntracked removes the untracked files that are not ignored. It repeats, because removing a .gitignore can
// uncover more. Files below the paths in apart stay.
func (v *visit) removeUntracked(ctx context.Context, apart []string) error {
	const rounds = 100
	for range rounds {
		out, err := v.call("ls-files", "-z", "--others", "--exclude-standard").Run(ctx)
		if err != nil {
			return err
		}
		ix, err := readIndex(v.indexPath())
		if err != nil {
			return err
		}
		retry := false
		for _, p := range git.Fields(out) {
			// A nested repository is listed as a folder.
			p = strings.TrimSuffix(p, "/")
			if slices.Contains(apart, p) || inAny(apart, p) {
				continue
			}
			retry = retry || path.Base(p) == ".gitignore"
			if err := v.root.remove(p); err != nil {
				return err
			}
			v.root.removeEmptyParents(p, ix)
		}
		if !retry {
			return nil
		}
	}
	return errors.New(".gitignore files nested without end")
}

// removeEmptyParents removes parent folders of p that are now empty, as git clean does.
func (d *folder) removeEmptyParents(p string, ix *index) {
	for p = path.Dir(p); p != "." && !ix.folders[p]; p = path.Dir(p) {
		if d.within(p, func(dir *folder, name string) error { return unix.Unlinkat(dir.fd(), name, unix.AT_REMOVEDIR) }) != nil {
			return
		}
	}
}

// ignored tells which of the paths the tree's .gitignore files and pawl's excludes ignore.
func (v *visit) ignored(ctx context.Context, paths []string) (map[string]bool, error) {
	if len(paths) == 0 {
		return nil, nil
	}
	// check-ignore takes no literal pathspecs. With "./" in front, everything is a plain path.
	out, err := v.call("check-ignore", "-z", "--stdin").Input("./" + strings.Join(paths, "\x00./") + "\x00").Run(ctx)
	if err != nil && !git.Exited(err, 1) { // 1: none
		return nil, err
	}
	return list.Set(list.Map(git.Fields(out), func(p string) string { return strings.TrimPrefix(p, "./") })), nil
}

// inAny reports whether p is below one of the folders.
func inAny(folders []string, p string) bool {
	return slices.ContainsFunc(folders, func(f string) bool {
		rest, ok := strings.CutPrefix(p, f)
		return ok && strings.HasPrefix(rest, "/")
	})
}
