package worktree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"pawl/internal/git"
	"pawl/internal/lib/fsutil/dirfd"
	"pawl/internal/lib/list"
)

// EmptySubmodules returns the submodules of which the tree has only the empty folder.
func (t *Tree) EmptySubmodules() ([]string, error) {
	ix, err := readIndex(t.indexPath())
	if err != nil {
		return nil, fmt.Errorf("listing the submodules: %w", err)
	}
	var empty []string
	for _, link := range ix.links {
		inside, err := os.ReadDir(dirfd.At(filepath.Join(t.Dir, link)))
		if err == nil && len(inside) == 0 {
			empty = append(empty, link)
		}
	}
	return empty, nil
}

// changedInSubmodules returns what is in submodules and not as setup made it: new, changed and removed files. What the
// submodule's own .gitignore files ignore (its builds) does not count. entries is the tree with each file's stat.
func (v *visit) changedInSubmodules(ctx context.Context, links []string, entries []found) ([]string, error) {
	if len(links) == 0 {
		return nil, nil
	}
	record, err := v.loadPristine()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // its setup was cut off
	}
	if err != nil {
		return nil, err
	}
	present := map[string]bool{}
	var changed []string
	for _, f := range entries {
		present[f.path] = true
		if f.is == nil || f.mode.IsDir() || !inAny(links, f.path) {
			continue
		}
		recorded, ok := record[f.path]
		if !ok || !recorded.same(*f.is, func() string { return v.root.sum(f.path) }) {
			changed = append(changed, f.path)
		}
	}
	for p, recorded := range record {
		if !present[p] && recorded.Is.Mode&unix.S_IFMT != unix.S_IFDIR {
			changed = append(changed, p)
		}
	}
	var names []string
	for _, link := range links {
		counted, err := v.notIgnoredIn(ctx, link, inside(link, changed), entries)
		if err != nil {
			return nil, err
		}
		names = append(names, counted...)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// inside returns the paths in a submodule, without those of a .git, relative to it.
func inside(link string, paths []string) []string {
	var names []string
	for _, p := range paths {
		name, inside := strings.CutPrefix(p, link+"/")
		if inside && !slices.Contains(strings.Split(name, "/"), ".git") {
			names = append(names, name)
		}
	}
	return names
}

// notIgnoredIn returns those of the names in a submodule that its .gitignore files don't ignore, as paths of the tree.
// Where one of those files was changed too, or git can't read it, all count.
func (v *visit) notIgnoredIn(ctx context.Context, link string, names []string, entries []found) ([]string, error) {
	paths := list.Map(names, func(name string) string { return link + "/" + name })
	if len(names) == 0 || slices.ContainsFunc(names, isRule) || !v.hasRules(link, entries) {
		return paths, nil
	}

	// The submodule is no repository here. The store's git looks at its folder as if that were a whole tree.
	noIndex := filepath.Join(v.state, "no-index")
	check := v.store.Git().With("GIT_WORK_TREE="+filepath.Join(v.Dir, link), "GIT_INDEX_FILE="+noIndex).
		Command("check-ignore", "--no-index", "-z", "--stdin").Holding(v.lock)
	out, err := check.Input("./" + strings.Join(names, "\x00./") + "\x00").Run(ctx)
	_ = os.Remove(dirfd.At(noIndex))
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if git.Starved(err) {
		return nil, err
	}

	ignored := map[string]bool{}
	for _, name := range git.Fields(out) {
		ignored[link+"/"+strings.TrimPrefix(name, "./")] = true
	}
	return slices.DeleteFunc(paths, func(p string) bool { return ignored[p] }), nil
}

// isRule reports whether a file says what git ignores.
func isRule(name string) bool { return path.Base(name) == ".gitignore" }

// hasRules reports whether a submodule is a folder whose .gitignore files git can read: an agent may have put a
// symlink or a FIFO there.
func (v *visit) hasRules(link string, entries []found) bool {
	current, err := v.root.lstatAt(link)
	if err != nil || current.Mode&unix.S_IFMT != unix.S_IFDIR {
		return false
	}
	return !slices.ContainsFunc(entries, func(f found) bool {
		return strings.HasPrefix(f.path, link+"/") && isRule(f.path) && !f.mode.IsRegular()
	})
}
