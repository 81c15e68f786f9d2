package store

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"

	"pawl/internal/git"
)

// ChainLink is one entry of a ledger as Chain found it, every object of it held against its hash.
type ChainLink struct {
	LedgerCommit     // with all of its files
	N            int // from 1
}

// Damage is where a ledger stops being what its hashes say.
type Damage struct {
	N      int // of the entry, 0 where that can't be known
	Commit string
	What   string
}

func (e *Damage) Error() string { return fmt.Sprintf("%s: %s", e.Commit, e.What) }

// Chain walks a ledger from its first entry up to head and calls visit for each. Nothing is
// believed that git answers: the hash of every commit, folder and file is worked out again. The
// error is *Damage where one does not agree, or is missing.
func (s *Store) Chain(ctx context.Context, head string, visit func(ChainLink) error) error {
	if err := git.CheckHashes(head); err != nil {
		return err
	}
	at := Damage{Commit: head}
	err := s.run.Batch(ctx, func(b *git.Batch) error {
		var chain []LedgerCommit // newest first
		var trees []string
		for id := head; id != ""; {
			at = Damage{Commit: id}
			raw, err := sound(b, id, "commit")
			if err != nil {
				return err
			}
			c, err := git.ParseCommit(id, raw)
			if err != nil {
				return err
			}
			l, err := entryOf(id, c)
			if err != nil {
				return err
			}
			chain, trees = append(chain, l), append(trees, c.Tree)
			id = l.Prev
		}
		seen := map[string][]byte{} // the blobs of the entry before
		for i := range chain {
			l, tree := chain[len(chain)-1-i], trees[len(chain)-1-i]
			at = Damage{N: i + 1, Commit: l.Commit}
			link := ChainLink{LedgerCommit: l, N: i + 1}
			link.Files = map[string][]byte{}
			raw, err := sound(b, tree, "tree")
			if err != nil {
				return err
			}
			blobs, err := parseFlatTree(raw)
			if err != nil {
				return err
			}
			now := map[string][]byte{}
			for name, id := range blobs {
				content, known := seen[id]
				if !known {
					if content, err = sound(b, id, "blob"); err != nil {
						return fmt.Errorf("%s: %w", git.Quote(name), err)
					}
				}
				link.Files[name], now[id] = content, content
			}
			seen = now
			if err := visit(link); err != nil {
				return &visitError{err}
			}
		}
		return nil
	})
	var visited *visitError
	switch {
	case errors.As(err, &visited):
		return visited.error
	case err == nil, ctx.Err() != nil:
		return err
	}
	at.What = err.Error()
	return &at
}

// visitError is what a visitor said, as opposed to what was found.
type visitError struct{ error }

// sound reads an object and holds it against its hash.
func sound(b *git.Batch, id, kind string) ([]byte, error) {
	_, is, content, err := b.Get(id, -1)
	switch {
	case errors.Is(err, git.ErrNotFound):
		return nil, fmt.Errorf("the %s %s is missing", kind, id)
	case err != nil:
		return nil, fmt.Errorf("the %s %s can't be read: %w", kind, id, err)
	case is != kind:
		return nil, fmt.Errorf("%s is a %s where a %s should be", id, is, kind)
	case git.ObjectID(kind, content) != id:
		return nil, fmt.Errorf("the %s %s has another content than its hash says", kind, id)
	}
	return content, nil
}

// parseFlatTree reads a tree object without folders: "<mode> <name>NUL<20 bytes>" again and again.
func parseFlatTree(raw []byte) (map[string]string, error) {
	blobs := map[string]string{}
	for len(raw) > 0 {
		head, rest, ok := bytes.Cut(raw, []byte{0})
		mode, name, named := bytes.Cut(head, []byte{' '})
		if !ok || !named || len(rest) < 20 || string(mode) != "100644" {
			return nil, fmt.Errorf("its tree has something that is no file of a ledger: %s", git.Quote(string(head)))
		}
		blobs[string(name)] = hex.EncodeToString(rest[:20])
		raw = rest[20:]
	}
	return blobs, nil
}
