package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"slices"

	"pawl/internal/git"
	"pawl/internal/lib/safego"
)

// Changes lists the differences from one commit or tree to another.
func (s *Store) Changes(ctx context.Context, base, head string) ([]git.FileChange, error) {
	if err := errors.Join(git.CheckRev(base), git.CheckRev(head)); err != nil {
		return nil, err
	}
	out, err := s.run.Run(ctx, append(append([]string{"diff-tree"}, git.DiffFormat...), base, head, "--")...)
	if err != nil {
		return nil, err
	}
	files, err := git.ParseChanges(out)
	if err != nil {
		return nil, err
	}
	return files, s.run.ReadTargets(ctx, files)
}

// Diff returns the difference as text for people, cut off after maxBytes. It contains file contents as they are, so
// whoever shows it has to neutralise control characters.
func (s *Store) Diff(ctx context.Context, base, head string, maxBytes int) (string, error) {
	if err := errors.Join(git.CheckRev(base), git.CheckRev(head)); err != nil {
		return "", err
	}
	c := s.run.Command("-c", "core.quotePath=false", "diff", "--no-color", "--no-ext-diff", "--no-textconv", "--find-renames", base, head, "--")
	var b bytes.Buffer
	c.Stdout = func(r io.Reader) error {
		if _, err := io.Copy(&b, io.LimitReader(r, int64(maxBytes))); b.Len() < maxBytes {
			return err
		}
		return git.ErrEnough
	}
	_, err := c.Run(ctx)
	return b.String(), err
}

// Proposal is the diff between two commits with its hash, which a person approves.
type Proposal struct {
	Hash       string // SHA-256, hex
	Files      int
	Insertions int
	Deletions  int
}

// proposalArgs are part of the public contract: the hash is the SHA-256 of git's output, after the preface if there is
// one.
var proposalArgs = []string{"diff", "--binary", "--full-index", "--no-color", "--no-ext-diff", "--no-textconv"}

// Proposal computes the hash and size of the difference, with a preface before it (loop.Proposal).
func (s *Store) Proposal(ctx context.Context, preface, base, head string) (Proposal, error) {
	var p Proposal
	g, gctx := safego.WithContext(ctx)
	g.Go(func() error {
		sum := sha256.New()
		err := s.WriteProposal(gctx, preface, base, head, sum)
		p.Hash = hex.EncodeToString(sum.Sum(nil))
		return err
	})
	g.Go(func() error {
		files, err := s.Changes(gctx, base, head)
		for _, f := range files {
			p.Files++
			p.Insertions += f.Insertions
			p.Deletions += f.Deletions
		}
		return err
	})
	if err := g.Wait(); err != nil {
		return Proposal{}, err
	}
	return p, nil
}

// WriteProposal writes exactly the bytes that the hash covers. `git apply` accepts them.
func (s *Store) WriteProposal(ctx context.Context, preface, base, head string, w io.Writer) error {
	if err := errors.Join(git.CheckRev(base), git.CheckRev(head)); err != nil {
		return err
	}
	if _, err := io.WriteString(w, preface); err != nil {
		return err
	}
	c := s.run.Command(append(append([]string{}, proposalArgs...), base, head)...)
	c.Stdout = func(r io.Reader) error {
		_, err := io.Copy(w, r)
		return err
	}
	_, err := c.Run(ctx)
	return err
}

// Touched lists the paths that any commit after base up to head changed, including commits that were undone, sorted.
// A rename counts as two paths. Commits that begun reaches do not count: if the base was rewritten, they are no longer
// in base.
func (s *Store) Touched(ctx context.Context, base, begun, head string) ([]string, error) {
	if err := errors.Join(git.CheckRev(base), git.CheckRev(begun), git.CheckRev(head)); err != nil {
		return nil, err
	}
	out, err := s.run.Run(ctx, "log", "--format=", "--name-only", "-z", "--no-renames", "--no-color", "--ignore-submodules=none",
		head, "^"+base, "^"+begun, "--")
	if err != nil {
		return nil, err
	}
	return slices.Compact(slices.Sorted(slices.Values(git.Fields(out)))), nil
}
