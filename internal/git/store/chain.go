package store

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"pawl/internal/git"
)

// Damage says where a ledger stops matching its hashes.
type Damage struct {
	N      int // of the entry; 0 if unknown
	Commit string
	What   string
}

func (e *Damage) Error() string { return fmt.Sprintf("%s: %s", e.Commit, e.What) }

// Chain walks a ledger from its first entry to head and calls visit for each, with its number from 1 and all its files. It
// trusts no answer of git: it computes the hash of every commit, folder and file again. The error is *Damage if an object does not match or is missing.
func (s *Store) Chain(ctx context.Context, head string, visit func(n int, entry LedgerCommit)) error {
	if err := git.CheckHashes(head); err != nil {
		return err
	}
	damage := Damage{Commit: head}
	err := s.run.Batch(ctx, func(b *git.Batch) error {
		var chain []git.Commit // newest first
		for id := head; id != ""; {
			damage = Damage{Commit: id}
			raw, err := sound(b, id, "commit")
			if err != nil {
				return err
			}
			c, err := git.ParseCommit(id, raw)
			if err != nil {
				return err
			}
			l, err := entryOf(c)
			if err != nil {
				return err
			}
			chain, id = append(chain, c), l.Prev
		}
		seen := map[string][]byte{} // the blobs of the previous entry
		folders := lister{batch: b, known: map[string][]file{}}
		for i, c := range slices.Backward(chain) {
			damage = Damage{N: len(chain) - i, Commit: c.ID}
			l, _ := entryOf(c)
			l.Files = map[string][]byte{}
			files, err := folders.list(c.Tree, 0)
			if err != nil {
				return err
			}
			current := map[string][]byte{}
			for _, f := range files {
				content, ok := seen[f.blob]
				if !ok {
					if content, err = sound(b, f.blob, "blob"); err != nil {
						return fmt.Errorf("%s: %w", git.Quote(f.name), err)
					}
				}
				l.Files[f.name], current[f.blob] = content, content
			}
			seen = current
			visit(damage.N, l)
		}
		return nil
	})
	if err == nil || ctx.Err() != nil {
		return err
	}
	damage.What = err.Error()
	return &damage
}

// sound reads an object and checks it against its hash.
func sound(b *git.Batch, id, kind string) ([]byte, error) {
	gotKind, content, err := b.Get(id, -1)
	switch {
	case errors.Is(err, git.ErrNotFound):
		return nil, fmt.Errorf("the %s %s is missing", kind, id)
	case err != nil:
		return nil, fmt.Errorf("the %s %s can't be read: %w", kind, id, err)
	case gotKind != kind:
		return nil, fmt.Errorf("%s is a %s where a %s should be", id, gotKind, kind)
	case git.ObjectID(kind, content) != id:
		return nil, fmt.Errorf("the %s %s has another content than its hash says", kind, id)
	}
	return content, nil
}

// file is a file in a ledger's tree.
type file struct{ name, blob string }

// maxDepth is how deep the folders of a ledger may be nested.
const maxDepth = 3

// lister lists the trees of a ledger's entries. It remembers folders, because most are the same as in the previous
// entry.
type lister struct {
	batch *git.Batch
	known map[string][]file // small folders, by their IDs
	large struct {          // the last folder in the root, with everything below it
		tree  string
		files []file
	}
}

// list returns the files of a tree and of its folders, each folder checked against its hash.
func (l *lister) list(tree string, depth int) ([]file, error) {
	if files, ok := l.known[tree]; ok {
		return files, nil
	}
	if tree == l.large.tree {
		return l.large.files, nil
	}
	raw, err := sound(l.batch, tree, "tree")
	if err != nil {
		return nil, err
	}
	items, err := parseFolder(raw, depth < maxDepth)
	if err != nil {
		return nil, err
	}
	var files []file
	for _, i := range items {
		if !i.folder {
			files = append(files, file{i.name, i.id})
			continue
		}
		below, err := l.list(i.id, depth+1)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", git.Quote(i.name), err)
		}
		for _, f := range below {
			files = append(files, file{i.name + "/" + f.name, f.blob})
		}
	}
	switch depth {
	case 0:
	case 1:
		l.large.tree, l.large.files = tree, files
	default:
		l.known[tree] = files
	}
	return files, nil
}
