package store

import (
	"context"
	"io/fs"
	"os"
)

// maxPacks is how many packs a store may have before a transaction folds them together. Each
// transaction leaves one; every git process looks through all of them.
const maxPacks = 40

// maintain folds what transactions have left (small packs, loose objects) into one pack, small
// differences instead of whole files. It removes nothing that any ref, tree or waiting change
// could need: what nothing refers to any more stays until the store itself goes.
func (s *Store) maintain(ctx context.Context, lock *os.File) error {
	// A crash of fast-import leaves its report in the git directory.
	reports, _ := fs.Glob(os.DirFS(s.path()), "fast_import_crash_*")
	for _, r := range reports {
		_ = os.Remove(s.path(r))
	}
	// Geometric: a large pack (the user's history) is left alone while it outweighs the rest.
	c := s.run.Command("repack", "-d", "-q", "--geometric=2", "--no-write-bitmap-index")
	c.Lock = lock
	_, err := c.Run(ctx)
	return err
}

// foldPacks is maintain when it is due. That it fails is no reason for a transaction to: the
// refs have moved, and the next transaction tries again.
func (s *Store) foldPacks(ctx context.Context, lock *os.File) {
	if packs, _ := fs.Glob(os.DirFS(s.path()), "objects/pack/*.pack"); len(packs) > maxPacks {
		_ = s.maintain(ctx, lock)
	}
}
