package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"pawl/internal/git"
)

// CommitInput is everything that a commit is made from. Its hash depends on nothing else, so the same input makes the
// same commit.
type CommitInput struct {
	Tree     string // from a Change
	Parent   string
	Message  string
	Trailers []git.Trailer
	Author   git.Identity // and committer
	Time     time.Time    // the workflow's time, not the attempt's, because a retry has to make the same commit
	Branch   string       // full ref name; moved from Parent to the commit
}

// RevertInput asks for undoing one commit, or all commits after another one.
type RevertInput struct {
	Commit   string // the tip of Branch
	GoOn     string // the commit whose tree the branch gets; "" for the parent of Commit
	Branch   string // full ref name
	Author   git.Identity
	Time     time.Time
	Trailers []git.Trailer
}

// Commit makes the commit and moves Branch from Parent to it. If Branch is already at that commit, nothing happens. If
// Branch is anywhere else, the error is *Fenced.
func (s *Store) Commit(ctx context.Context, input CommitInput) (string, error) {
	r, err := s.Transact(ctx, Tx{Commit: &input})
	return r.Code, err
}

func (input CommitInput) commit() (git.Commit, error) {
	if err := errors.Join(git.CheckHashes(input.Tree, input.Parent), git.CheckRef(input.Branch)); err != nil {
		return git.Commit{}, err
	}
	return git.NewCommit(input.Tree, []string{input.Parent}, input.Author, input.Time, input.Message, input.Trailers), nil
}

// revert makes the commit that `git revert --no-edit` makes of a branch's tip. Its tree is the parent's, or that of the
// commit to go on from, so it needs no working tree and can't conflict. A merge commit is refused; pawl makes none.
func (s *Store) revert(ctx context.Context, input RevertInput) (git.Commit, error) {
	if err := errors.Join(git.CheckHashes(input.Commit), git.CheckRef(input.Branch)); err != nil {
		return git.Commit{}, err
	}
	c, err := s.ReadCommit(ctx, cmp.Or(input.GoOn, input.Commit))
	if err != nil {
		return git.Commit{}, err
	}
	if input.GoOn != "" {
		trailers := append(slices.Clip(input.Trailers), git.Trailer{Key: goneOn, Value: input.GoOn})
		text := "Go on from \"" + c.Subject() + "\"\n\nThis brings back the files of commit " + input.GoOn + "."
		return git.NewCommit(c.Tree, []string{input.Commit}, input.Author, input.Time, text, trailers), nil
	}
	if len(c.Parents) != 1 {
		return git.Commit{}, fmt.Errorf("%s has %d parents and cannot be reverted", input.Commit, len(c.Parents))
	}
	parent, err := s.ReadCommit(ctx, c.Parents[0])
	if err != nil {
		return git.Commit{}, err
	}
	text := "Revert \"" + c.Subject() + "\"\n\nThis reverts commit " + input.Commit + "."
	return git.NewCommit(parent.Tree, []string{input.Commit}, input.Author, input.Time, text, input.Trailers), nil
}

// goneOn is the trailer that names the commit whose files a commit restores.
const goneOn = "Pawl-Goes-On-From"

// goesOnFrom returns the commit whose files this one restores, if it does.
func goesOnFrom(c git.Commit) (origin string, ok bool) {
	trailers := c.Message[max(0, strings.LastIndex(c.Message, "\n\n")):]
	_, rest, ok := strings.Cut(trailers, "\n"+goneOn+": ")
	origin, _, _ = strings.Cut(rest, "\n")
	return origin, ok
}

// ReadCommit reads a commit. The error is git.ErrNotFound if there is none.
func (s *Store) ReadCommit(ctx context.Context, commit string) (git.Commit, error) {
	if err := git.CheckHashes(commit); err != nil {
		return git.Commit{}, err
	}
	if c, ok := s.commits.get(commit); ok {
		return c, nil
	}
	return s.readCommit(ctx, commit)
}

// readCommit is ReadCommit without the cache.
func (s *Store) readCommit(ctx context.Context, commit string) (git.Commit, error) {
	return ask(ctx, s, func(b *git.Batch) (git.Commit, error) {
		c, err := b.Commit(commit)
		if err != nil {
			return c, err
		}
		s.commits.put(c.ID, c)
		if len(c.Parents) == 1 { // a revert asks for the parent next
			if p, err := b.Commit(c.Parents[0]); err == nil {
				s.commits.put(p.ID, p)
			}
		}
		return c, nil
	})
}

// Known returns a commit that this process made or read recently.
func (s *Store) Known(commit string) (git.Commit, bool) { return s.commits.get(commit) }

// hasTree reports whether a commit that this process made or read recently has the tree.
func (s *Store) hasTree(id string) bool {
	s.commits.mu.Lock()
	defer s.commits.mu.Unlock()
	for _, c := range s.commits.all {
		if c.Tree == id {
			return true
		}
	}
	return false
}

// cache remembers what this process made or read recently. A full cache is emptied.
type cache[V any] struct {
	mu  sync.Mutex
	all map[string]V
}

const cacheSize = 128

func (c *cache[V]) get(id string) (V, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	v, ok := c.all[id]
	return v, ok
}

func (c *cache[V]) put(id string, v V) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil || len(c.all) >= cacheSize {
		c.all = map[string]V{}
	}
	c.all[id] = v
}

func (c *cache[V]) drop(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.all, id)
}

// NewCommit is a commit without a ref.
type NewCommit struct {
	Tree     string // a tree, or a commit with that tree
	Parents  []string
	Message  string
	Trailers []git.Trailer
	Author   git.Identity
	Time     time.Time
}

// Make writes the commit into the store and returns its hash. The same input makes the same commit.
func (s *Store) Make(ctx context.Context, n NewCommit) (string, error) {
	if err := git.CheckHashes(append([]string{n.Tree}, n.Parents...)...); err != nil {
		return "", err
	}
	tree, err := s.treeOf(ctx, n.Tree)
	if err != nil {
		return "", err
	}
	lock, err := s.lock(ctx)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	o := git.NewCommit(tree, n.Parents, n.Author, n.Time, n.Message, n.Trailers)
	var p pack
	p.add("commit", o.Content())
	if _, err := s.write(&p); err != nil {
		return "", err
	}
	s.commits.put(o.ID, o)
	s.foldPacks(ctx, lock)
	return o.ID, nil
}

// treeOf returns the tree of a commit, and a tree itself.
func (s *Store) treeOf(ctx context.Context, id string) (tree string, err error) {
	if c, ok := s.commits.get(id); ok {
		return c.Tree, nil
	}
	if s.hasTree(id) {
		return id, nil
	}
	return ask(ctx, s, func(b *git.Batch) (string, error) {
		kind, _, err := b.Get(id, -1)
		if err != nil || kind == "tree" {
			return id, err
		}
		c, err := b.Commit(id)
		return c.Tree, err
	})
}
