package store

import (
	"context"
	"errors"
	"strings"

	"pawl/internal/git"
)

// Conflict is the error of two lines of work that can't be merged without a person.
type Conflict struct{ Paths []string }

func (e *Conflict) Error() string { return "both sides changed " + git.QuoteSome(e.Paths) }

// Merge returns the tree of two merged commits. The error is *Conflict if they conflict.
func (s *Store) Merge(ctx context.Context, one, other string) (tree string, err error) {
	if err := git.CheckHashes(one, other); err != nil {
		return "", err
	}
	out, err := s.run.Run(ctx, "merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", one, other)
	parts := strings.Split(strings.TrimRight(string(out), "\x00"), "\x00")
	switch {
	case err == nil:
		return parts[0], git.CheckHashes(parts[0])
	case git.Exited(err, 1) && len(parts) > 1:
		return "", &Conflict{Paths: parts[1:]}
	}
	return "", err
}

// Merges reports whether a commit is the merge of another commit into head, as Merge makes it, and nothing else.
func (s *Store) Merges(ctx context.Context, commit, head string) (bool, error) {
	c, err := s.ReadCommit(ctx, commit)
	if err != nil || len(c.Parents) != 2 || c.Parents[0] != head {
		return false, err
	}
	tree, err := s.Merge(ctx, head, c.Parents[1])
	if _, conflict := errors.AsType[*Conflict](err); conflict {
		return false, nil
	}
	return err == nil && tree == c.Tree, err
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
