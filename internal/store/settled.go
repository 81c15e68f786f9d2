package store

import (
	"context"
	"fmt"
	"slices"

	"pawl/internal/git"
)

// Settled returns the commits after base up to head whose changes are still in head, oldest first. It leaves out
// commits that were undone, reverts, and commits that went back to an earlier one. A commit with several parents is
// an error.
func (s *Store) Settled(ctx context.Context, base, head string) (kept []git.Commit, err error) {
	if err := git.CheckHashes(base, head); err != nil {
		return nil, err
	}
	var line []git.Commit // newest first
	var root git.Commit
	err = s.run.Batch(ctx, func(b *git.Batch) error {
		for id := head; id != base; {
			c, err := b.Commit(id)
			if err != nil {
				return err
			}
			if len(c.Parents) != 1 {
				return fmt.Errorf("%s has %d parents", id, len(c.Parents))
			}
			line = append(line, c)
			id = c.Parents[0]
		}
		root, err = b.Commit(base)
		return err
	})
	if err != nil {
		return nil, err
	}
	at := map[string][]git.Commit{} // the kept commits, as of each commit
	for _, c := range slices.Backward(line) {
		from, goesOn := goesOnFrom(c)
		switch i := slices.IndexFunc(kept, func(k git.Commit) bool { return k.Tree == c.Tree }); {
		case c.Tree == root.Tree:
			kept = nil
		case goesOn:
			kept = at[from]
		case i >= 0:
			kept = kept[:i+1]
		default:
			kept = append(slices.Clip(kept), c)
		}
		at[c.ID] = kept
	}
	return kept, nil
}
