package store

import (
	"context"
	"io/fs"
	"os"
)

// maxPacks is how many packs a store may have before a transaction combines them. Each transaction adds one, and every
// git process searches all of them.
const maxPacks = 40

// foldPacks combines what transactions have left (small packs, loose objects) into one pack with deltas, when that is
// due. It removes nothing that a ref, a tree or a waiting change could need: unreferenced objects stay until the store is
// removed. If it fails, the transaction still succeeds, because the refs have moved. The next transaction tries again.
func (s *Store) foldPacks(ctx context.Context, lock *os.File) {
	if packs, _ := fs.Glob(os.DirFS(s.path()), "objects/pack/*.pack"); len(packs) <= maxPacks {
		return
	}
	drafts, _ := fs.Glob(os.DirFS(s.path()), "objects/pack/"+draftPack+"*") // of transactions that died
	for _, d := range drafts {
		_ = os.Remove(s.path(d))
	}
	// Geometric: a large pack (the user's history) is left alone while it outweighs the others.
	_, _ = s.run.Command("repack", "-d", "-q", "--geometric=2", "--no-write-bitmap-index").Holding(lock).Run(ctx)
}
