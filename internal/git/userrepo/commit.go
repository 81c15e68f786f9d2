package userrepo

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"pawl/internal/git"
)

// Uncommitted says which files keep a loop from starting, since they differ from the commit that it would start from.
type Uncommitted struct {
	Top   string   // the top level of the working tree
	Paths []string // relative to it
}

// Only reports whether a file is all that is not committed.
func (u Uncommitted) Only(file string) bool { return len(u.Paths) == 1 && u.Has(file) }

// Has reports whether a file is not committed.
func (u Uncommitted) Has(file string) bool { return slices.Contains(u.Paths, u.path(file)) }

// path returns the path of a file relative to the top level, "" if it is elsewhere.
func (u Uncommitted) path(file string) string {
	abs, err := filepath.Abs(file)
	if err != nil {
		return ""
	}
	if resolved, err := filepath.EvalSymlinks(filepath.Dir(abs)); err == nil {
		abs = filepath.Join(resolved, filepath.Base(abs))
	}
	rel, err := filepath.Rel(u.Top, abs)
	if err != nil || !filepath.IsLocal(rel) {
		return ""
	}
	return filepath.ToSlash(rel)
}

// FindUncommitted returns what is not committed in the repository of a folder, if a loop from that base needs a clean tree.
// It returns nothing if the repository can't be read: whoever starts the loop says why.
func FindUncommitted(ctx context.Context, dir, base string) Uncommitted {
	source, err := Inspect(ctx, At(dir), base, "")
	for _, failed := range Failed(err) {
		if failed.Code == DirtyTree {
			return Uncommitted{Top: source.Path, Paths: failed.Paths}
		}
	}
	return Uncommitted{}
}

// CommitFile commits a file as it is in the working tree, and nothing else: what is staged stays staged. It is called
// only if a person has asked for it.
func (u Uncommitted) CommitFile(ctx context.Context, file, message string) error {
	path := u.path(file)
	user := At(u.Top).user()
	_, err := user.Run(ctx, "ls-files", "--error-unmatch", "--", ":(literal)"+path)
	tracked := err == nil
	if !tracked {
		if _, err := user.Run(ctx, "add", "--intent-to-add", "--", ":(literal)"+path); err != nil {
			return fmt.Errorf("add %s: %w", git.Quote(path), err)
		}
	}
	if _, err := user.Run(ctx, "commit", "--quiet", "--only", "--message", message, "--", ":(literal)"+path); err != nil {
		if !tracked {
			_, _ = user.Run(ctx, "rm", "--quiet", "--cached", "--force", "--", ":(literal)"+path)
		}
		return fmt.Errorf("commit %s: %w", git.Quote(path), err)
	}
	return nil
}
