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
				return nil, fmt.Errorf("%s has %d parents", id, len(c.Parents))
			}
		}
	})
	if err != nil {
		return nil, err
	}
	last := len(line) - 1
	at := map[string][]git.Commit{} // the kept commits, as of each commit
	for _, c := range slices.Backward(line[:last]) {
		from, goesOn := goesOnFrom(c)
		switch i := slices.IndexFunc(kept, func(k git.Commit) bool { return k.Tree == c.Tree }); {
		case c.Tree == line[last].Tree:
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
