package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"pawl/internal/git"
)

// Conflict is the error of two lines of work that can't be merged without a person.
type Conflict struct{ Paths []string }

func (e *Conflict) Error() string { return "both sides changed " + git.QuoteSome(e.Paths) }

// Merge returns the tree of two merged commits. The error is *Conflict if they conflict.
func (s *Store) Merge(ctx context.Context, ours, theirs string) (tree string, err error) {
	if err := git.CheckHashes(ours, theirs); err != nil {
		return "", err
	}
	out, err := s.run.Run(ctx, "merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", ours, theirs)
	parts := strings.Split(strings.TrimRight(string(out), "\x00"), "\x00")
	switch {
	case err == nil:
		return parts[0], git.CheckHashes(parts[0])
	case git.Exited(err, 1) && len(parts) > 1:
		return "", &Conflict{Paths: parts[1:]}
	}
	return "", err
}

// Carry returns the tree of a commit with the change from base to head. Only the three trees count: what the
// histories have in common does not. So it also holds where base is no ancestor of onto any more. The error is
// *Conflict if the change does not fit there.
func (s *Store) Carry(ctx context.Context, base, head, newBase string) (tree string, err error) {
	// git merges commits and looks for the base in their history, so the trees get one of their own.
	made, err := s.Make(ctx, NewCommit{Tree: base, Message: "base", Author: carrier, Time: time.Unix(0, 0).UTC()})
	if err != nil {
		return "", fmt.Errorf("carry %s: %w", base, err)
	}
	sides := make([]string, 2)
	for i, side := range []string{newBase, head} {
		sides[i], err = s.Make(ctx, NewCommit{
			Tree: side, Parents: []string{made}, Message: "side", Author: carrier, Time: time.Unix(0, 0).UTC(),
		})
		if err != nil {
			return "", fmt.Errorf("carry %s: %w", side, err)
		}
	}
	return s.Merge(ctx, sides[0], sides[1])
}

// carrier is the author of the commits of Carry, which no ref ever reaches.
var carrier = git.Identity{Name: "pawl", Email: "pawl@localhost"}

// Renews reports whether a commit brings the change from base to head onto another commit, as Merge or Carry does, and
// nothing else.
func (s *Store) Renews(ctx context.Context, commit, base, head string) (bool, error) {
	c, err := s.ReadCommit(ctx, commit)
	if err != nil || len(c.Parents) != 2 || c.Parents[0] != head {
		return false, err
	}
	tip := c.Parents[1]
	merged, err := s.Merge(ctx, head, tip)
	if _, conflict := errors.AsType[*Conflict](err); err != nil && !conflict {
		return false, err
	}
	if merged == c.Tree || base == "" {
		return merged == c.Tree, nil
	}
	carried, err := s.Carry(ctx, base, head, tip)
	if _, conflict := errors.AsType[*Conflict](err); conflict {
		return false, nil
	}
	return err == nil && carried == c.Tree, err
}

// Contains reports whether commit equals ancestor or descends from it.
func (s *Store) Contains(ctx context.Context, commit, ancestor string) (bool, error) {
	if err := git.CheckHashes(commit, ancestor); err != nil {
		return false, err
	}
	_, err := s.run.Run(ctx, "merge-base", "--is-ancestor", ancestor, commit)
	if git.Exited(err, 1) {
		return false, nil
	}
	return err == nil, err
}

// Gone returns the oldest of the commits that base has in its history and tip does not. Whatever reaches one of them
// reaches what was removed.
func (s *Store) Gone(ctx context.Context, base, tip string) (oldest []string, err error) {
	if err := git.CheckHashes(base, tip); err != nil {
		return nil, err
	}
	out, err := s.run.Run(ctx, "rev-list", "--parents", base, "--not", tip, "--")
	if err != nil {
		return nil, fmt.Errorf("list what %s lacks of %s: %w", tip, base, err)
	}
	parents := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		parents[fields[0]] = fields[1:]
	}
	for _, commit := range slices.Sorted(maps.Keys(parents)) {
		isGone := func(parent string) bool {
			_, seen := parents[parent]
			return seen
		}
		if !slices.ContainsFunc(parents[commit], isGone) {
			oldest = append(oldest, commit)
		}
	}
	return oldest, nil
}
