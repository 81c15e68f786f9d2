package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"pawl/internal/git"
)

// ErrMerge is the error of commits that are not one line.
var ErrMerge = errors.New("not one line of commits")

// Settled returns the commits after base up to head whose changes are still in head, oldest first. It leaves out
// commits that were undone, reverts, and commits that went back to an earlier one. If there is a merge between them,
// the error is ErrMerge.
func (s *Store) Settled(ctx context.Context, base, head string) (kept []git.Commit, err error) {
	if err := git.CheckHashes(base, head); err != nil {
		return nil, err
	}
	line, err := ask(ctx, s, func(b *git.Batch) (line []git.Commit, err error) { // newest first, and base as the last one
		for id := head; ; id = line[len(line)-1].Parents[0] {
			c, err := b.Commit(id)
			if err != nil {
				return nil, err
			}
			line = append(line, c)
			if id == base {
				return line, nil
			}
			if len(c.Parents) != 1 {
				return nil, fmt.Errorf("%s has %d parents: %w", id, len(c.Parents), ErrMerge)
			}
		}
	})
	if err != nil {
		return nil, err
	}
	last := len(line) - 1
	keptAt := map[string][]git.Commit{} // the kept commits, as of each commit
	for _, c := range slices.Backward(line[:last]) {
		origin, goesOn := goesOnFrom(c)
		switch i := slices.IndexFunc(kept, func(k git.Commit) bool { return k.Tree == c.Tree }); {
		case c.Tree == line[last].Tree:
			kept = nil
		case goesOn:
			kept = keptAt[origin]
		case i >= 0:
			kept = kept[:i+1]
		default:
			kept = append(slices.Clip(kept), c)
		}
		keptAt[c.ID] = kept
	}
	return kept, nil
}

// WithTree returns the oldest commit after base, up to tip on its first parents, that has the tree of a commit; "" if
// none has it.
func (s *Store) WithTree(ctx context.Context, base, tip, commit string) (string, error) {
	tree, err := s.treeOf(ctx, commit)
	if err != nil {
		return "", err
	}
	if err := git.CheckHashes(base, tip); err != nil {
		return "", err
	}
	out, err := s.run.Run(ctx, "log", "--first-parent", "--reverse", "--no-color", "--format=%H %T", tip, "^"+base, "--")
	if err != nil {
		return "", fmt.Errorf("list the commits up to %s: %w", tip, err)
	}
	for line := range strings.Lines(string(out)) {
		id, trailer, _ := strings.Cut(strings.TrimSpace(line), " ")
		if trailer == tree {
			return id, nil
		}
	}
	return "", nil
}
