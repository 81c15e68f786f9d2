package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"pawl/internal/git"
	"pawl/internal/lib/crashpoint"
)

// Tx is what becomes durable together: at most one of Commit and Revert on the code branch, and the ledger entry for
// the result. Repeating an interrupted transaction completes it. Repeating a completed one changes nothing and returns
// the same result.
type Tx struct {
	Commit *CommitInput
	Revert *RevertInput
	// Entry returns the ledger entry for the commit that Commit or Revert makes; code is "" without them. An empty
	// Entry.Code means that commit. It must return the same entry for the same commit.
	Entry func(code string) (Entry, error)
}

// TxResult is what a transaction made, or found already made.
type TxResult struct {
	Code  string // "" without Commit and Revert
	Entry string // "" without Entry
}

// Transact checks that the refs are where the transaction starts from, makes the commits durable, and moves the refs. If
// any ref is elsewhere, it moves nothing and the error is *Fenced.
func (s *Store) Transact(ctx context.Context, tx Tx) (TxResult, error) {
	lock, err := s.lock(ctx)
	if err != nil {
		return TxResult{}, err
	}
	defer lock.Close()

	var r TxResult
	var code git.Commit // the zero value if the transaction makes none
	var branch, start string
	switch {
	case tx.Commit != nil && tx.Revert != nil:
		return r, errors.New("a transaction commits or reverts, not both")
	case tx.Commit != nil:
		branch, start = tx.Commit.Branch, tx.Commit.Parent
		code, err = tx.Commit.commit()
	case tx.Revert != nil:
		branch, start = tx.Revert.Branch, tx.Revert.Commit
		code, err = s.revert(ctx, *tx.Revert)
	}
	if err != nil {
		return r, err
	}

	var p pack
	type move struct{ ref, to string }
	var moves []move
	if code.ID != "" {
		begins, err := s.begins(ctx, branch, start, func() (string, error) { return code.ID, nil })
		if begins {
			err = errors.Join(s.need(ctx, start), s.needTree(ctx, code.Tree))
			p.add("commit", code.Content())
			moves = append(moves, move{branch, code.ID})
		}
		if err != nil {
			return TxResult{}, err
		}
		r.Code = code.ID
	}
	var root *folder
	if tx.Entry != nil {
		e, err := tx.Entry(r.Code)
		if err != nil {
			return TxResult{}, err
		}
		e.Code = cmp.Or(e.Code, r.Code)
		if err := e.check(); err != nil {
			return TxResult{}, err
		}
		// An attempt that died may have appended this very entry, even before it moved the branch, as earlier versions of
		// pawl could.
		begins, err := s.begins(ctx, e.Ref, e.Prev, func() (_ string, err error) {
			r.Entry, err = s.wouldBe(ctx, e)
			return r.Entry, err
		})
		if begins {
			builtOn := slices.Clone(e.Keeps)
			if e.Code != r.Code {
				builtOn = append(builtOn, e.Code)
			}
			if err = s.need(ctx, builtOn...); err == nil {
				r.Entry, root, err = s.entry(ctx, e, &p)
			}
			moves = append(moves, move{e.Ref, r.Entry})
		}
		if err != nil {
			return TxResult{}, err
		}
	}
	if len(moves) > 0 {
		path, err := s.write(&p)
		if err != nil {
			return TxResult{}, err
		}
		crashpoint.At("store.packed")
		for _, m := range moves {
			if err := s.moveRef(ctx, m.ref, m.to, lock); err != nil {
				return TxResult{}, err
			}
			crashpoint.At("store.moved")
		}
		if root != nil {
			s.remember(r.Entry, root, path)
		}
	}
	if code.ID != "" {
		s.commits.put(code.ID, code)
	}
	s.foldPacks(ctx, lock)
	return r, nil
}

// begins reports whether a ref is where a transaction starts from. If it is anywhere else but where the transaction
// moves it, which would returns, or if it can't be read, the error is *Fenced.
func (s *Store) begins(ctx context.Context, ref, start string, would func() (string, error)) (bool, error) {
	have, err := s.Ref(ctx, ref)
	switch {
	case errors.Is(err, ErrDamagedRef):
		return false, &Fenced{Ref: ref, Want: start, Have: Damaged}
	case err != nil || have == start:
		return err == nil, err
	case have != "":
		if target, err := would(); err != nil || target == have {
			return false, err
		}
	}
	return false, &Fenced{Ref: ref, Want: start, Have: have}
}

// need returns an error if the store lacks one of the commits on which something is to be built.
func (s *Store) need(ctx context.Context, commits ...string) (err error) {
	for _, c := range commits {
		_, missing := s.ReadCommit(ctx, c)
		err = errors.Join(err, missing)
	}
	return err
}

// needTree returns an error if the store lacks a tree. A tree that was just staged is usually a file of its own.
func (s *Store) needTree(ctx context.Context, tree string) error {
	if _, err := os.Stat(s.path("objects", tree[:2], tree[2:])); err == nil || s.hasTree(tree) {
		return nil
	}
	_, err := ask(ctx, s, func(b *git.Batch) ([]byte, error) { return b.Of("tree", tree, -1) })
	return err
}

// wouldBe returns the ID that an entry would have. It returns "" if the commits that it builds on are missing, because
// then it can't have been appended.
func (s *Store) wouldBe(ctx context.Context, e Entry) (string, error) {
	for _, c := range append([]string{e.Prev, e.Code}, e.Keeps...) {
		if c == "" {
			continue
		}
		switch _, err := s.readCommit(ctx, c); { // not from the cache, because a truncated chain may have lost it
		case errors.Is(err, git.ErrNotFound):
			return "", nil
		case err != nil:
			return "", err
		}
	}
	id, _, err := s.entry(ctx, e, &pack{})
	return id, err
}

// entry puts a ledger commit into a pack: the files of the previous entry with some replaced, and the code head as
// second parent. It returns the commit's ID and its folder.
func (s *Store) entry(ctx context.Context, e Entry, p *pack) (id string, root *folder, err error) {
	top := item{id: e.Prev + "^{tree}", within: s.take(e.Prev)}
	if e.Prev == "" {
		top.within = &folder{}
	}
	edit := func(read func(tree string) ([]byte, error)) error {
		if err := top.open(read); err != nil {
			return err
		}
		for _, name := range slices.Sorted(maps.Keys(e.Files)) {
			blob := ""
			if content := e.Files[name]; content != nil {
				blob = p.add("blob", content)
			}
			if err := top.within.set(name, blob, read); err != nil {
				return err
			}
		}
		return nil
	}
	err = edit(func(string) ([]byte, error) { return nil, errUnread })
	if errors.Is(err, errUnread) {
		err = s.run.Batch(ctx, func(b *git.Batch) error {
			return edit(func(tree string) ([]byte, error) {
				_, content, err := b.Get(tree, -1)
				return content, err
			})
		})
	}
	if err != nil {
		return "", nil, fmt.Errorf("an entry of the ledger %s: %w", e.Ref, err)
	}
	parents := append([]string{e.Code}, e.Keeps...)
	if e.Prev != "" {
		parents = append([]string{e.Prev}, parents...)
	}
	c := git.NewCommit(top.within.write(p), parents, e.Author, e.Time, e.Message, nil)
	return p.add("commit", c.Content()), top.within, nil
}

// moveRef sets a ref, which the caller has compared, as git does: its lock becomes its file. The caller holds the store's
// lock. git itself makes a new ref if something may be in its way.
func (s *Store) moveRef(ctx context.Context, ref, target string, lock *os.File) error {
	if err := s.dropStaleLock(ref); err != nil {
		return err
	}
	path := s.path(filepath.FromSlash(ref))
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, packed := os.Lstat(s.path("packed-refs")); errors.Is(packed, fs.ErrNotExist) {
			err = os.MkdirAll(filepath.Dir(path), 0o777)
		}
	}
	if err != nil || info != nil && !info.Mode().IsRegular() {
		script := "update " + ref + "\x00" + target + "\x00\x00"
		_, err := s.run.Command("update-ref", "--stdin", "-z").Input(script).Holding(lock).Run(ctx)
		return err
	}
	f, err := os.OpenFile(path+".lock", os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	_, err = f.WriteString(target + "\n")
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return os.Rename(f.Name(), path)
}
