// Package store keeps pawl's own bare repository: the loops' branches, their ledgers and the objects of both. A
// commit and its ledger entry become durable in one transaction.
//
// It never runs anything in the store, has no working tree, and talks to no other repository (trees and userrepo do).
// It knows nothing about the content of a ledger's files (ledger does). Start reading at Store, then at Transact.
package store

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"pawl/internal/git"
	"pawl/internal/home/repairlog"
	"pawl/internal/lib/fsutil/dirfd"
	"pawl/internal/lib/fsutil/durable"
)

// Store is a bare repository of pawl's own. There is one for each of the user's repositories, shared by its loops, and
// only pawl runs git in it. Its methods may be called concurrently, also from several processes.
type Store struct {
	dir     string
	run     git.Runner
	commits cache[git.Commit] // a revert usually follows its commit, and then needs no process to look it up
	entries cache[lastEntry]
	logs    cache[[]string]
}

// storeConfig is the whole config file of a store. The settings of git.Hardened override it.
const storeConfig = `[core]
	repositoryformatversion = 0
	filemode = true
	bare = true
`

// storeAttributes override every .gitattributes. Otherwise an agent could write "*.go -diff" to hide its diff from the
// person who approves it and from the policy that counts lines. Conversions (eol, encoding, ident) stay as the tree has
// them, because a desk has to equal a clone.
const storeAttributes = "* !diff !merge\n"

// Open opens the store in dir, and creates it if it is missing. Several processes may call it at once. If it has to
// write files of an existing store again, it notes that (mending), for the store's loops.
func Open(ctx context.Context, dir string) (*Store, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	s := &Store{dir: dir, run: git.Hardened(dir)}
	if ok, err := s.complete(); err != nil || ok {
		return s, err
	}
	if err := os.MkdirAll(filepath.Dir(s.path()), 0o700); err != nil {
		return nil, err
	}
	lock, err := durable.Lock(ctx, dir+".lock")
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	if ok, err := s.complete(); err != nil || ok { // another process was first
		return s, err
	}
	if err := s.create(ctx, lock); err != nil {
		return nil, fmt.Errorf("creating the store %s: %w", dir, err)
	}
	return s, nil
}

// Git returns a runner for git in the store, without a working tree.
func (s *Store) Git() git.Runner { return s.run }

// Dir returns the store's directory.
func (s *Store) Dir() string { return s.dir }

// path returns a path to a part of the store, through the folder that pawl holds open.
func (s *Store) path(parts ...string) string {
	return filepath.Join(append([]string{dirfd.At(s.dir)}, parts...)...)
}

// complete reports whether the store is there. It appears by a rename, so it is whole or absent. Its config may be that
// of an older pawl.
func (s *Store) complete() (bool, error) {
	if _, err := os.Stat(s.path("HEAD")); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	wrote, err := s.writeConfig(s.path())
	if len(wrote) > 0 {
		repairlog.Note(s.dir, fmt.Sprintf("%s of the store %s was not as pawl writes it (damaged, or of another version of pawl): it is written again", strings.Join(wrote, ", "), s.dir))
	}
	return true, err
}

// writeConfig writes those files that are the same in every store, if they differ, and returns the names of the files
// it wrote.
func (s *Store) writeConfig(dir string) (wrote []string, err error) {
	for _, file := range []struct{ name, content string }{{"config", storeConfig}, {"info/attributes", storeAttributes}, {"info/exclude", Excludes()}} {
		path := filepath.Join(dir, filepath.FromSlash(file.name))
		if have, err := os.ReadFile(path); err == nil && string(have) == file.content {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return wrote, err
		}
		if err := durable.WriteFile(path, []byte(file.content), 0o600); err != nil {
			return wrote, err
		}
		wrote = append(wrote, file.name)
	}
	return wrote, nil
}

// Excludes returns the content of info/exclude for the store and the trees: pawl's own files in a tree's root.
func Excludes() string {
	return "/" + strings.Join(RootFiles, "\n/") + "\n"
}

func (s *Store) create(ctx context.Context, lock *os.File) error {
	fresh := s.dir + ".new"
	path := dirfd.At(fresh)
	if err := os.RemoveAll(path); err != nil { // left by a process that died here
		return err
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		return err
	}
	init := git.Hardened(fresh).With("GIT_DEFAULT_REF_FORMAT=files").Command("init", "--quiet", "--bare", "--template=", "--initial-branch=none", "--object-format=sha1")
	if _, err := init.Holding(lock).Run(ctx); err != nil {
		return err
	}
	if _, err := s.writeConfig(path); err != nil {
		return err
	}
	return durable.Rename(fresh, s.dir)
}

// LockFetch keeps other fetches out of the store, and removes the lock on the ref that a killed fetch left. It does not
// lock out writers of refs: other loops continue while a network is slow.
func (s *Store) LockFetch(ctx context.Context, ref string) (*os.File, error) {
	lock, err := durable.Lock(ctx, filepath.Join(s.dir, "pawl-fetch.lock"))
	if err != nil {
		return nil, err
	}
	if err := errors.Join(s.dropStaleLock(ref), s.dropStaleLock("shallow")); err != nil {
		lock.Close()
		return nil, err
	}
	return lock, nil
}

// ask returns the answer to a question for which objects of the store are read, by one process.
func ask[T any](ctx context.Context, s *Store, question func(*git.Batch) (T, error)) (answer T, err error) {
	err = s.run.Batch(ctx, func(b *git.Batch) (err error) {
		answer, err = question(b)
		return err
	})
	return answer, err
}

// lock serialises whatever moves refs. It is held for milliseconds. With git's own locks, the second of two processes
// would fail instead of wait.
func (s *Store) lock(ctx context.Context) (*os.File, error) {
	return durable.Lock(ctx, filepath.Join(s.dir, "pawl.lock"))
}

// Ref returns the object that a ref names, "" if there is no such ref. A ref that pawl moved is a small file, so this
// usually needs no process.
func (s *Store) Ref(ctx context.Context, ref string) (string, error) {
	if err := git.CheckRef(ref); err != nil {
		return "", err
	}
	b, err := os.ReadFile(s.path(filepath.FromSlash(ref)))
	if err == nil {
		if hash := string(bytes.TrimSuffix(b, []byte("\n"))); git.IsHash(hash) {
			return hash, nil
		}
		return "", fmt.Errorf("%w: %s of the store %s", ErrDamagedRef, ref, s.dir)
	}
	if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) && !errors.Is(err, syscall.EISDIR) {
		return "", err
	}
	if _, packed := os.Stat(s.path("packed-refs")); errors.Is(packed, fs.ErrNotExist) {
		return "", nil
	}
	out, err := s.run.Run(ctx, "for-each-ref", "--format=%(objectname) %(refname)", ref)
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(out)) { // a prefix also matches
		if hash, name, _ := strings.Cut(strings.TrimSpace(line), " "); name == ref && git.IsHash(hash) {
			return hash, nil
		}
	}
	return "", nil
}

// ErrDamagedRef is what Ref returns for a ref whose file contains no hash, for example after a power cut.
var ErrDamagedRef = errors.New("the ref is damaged")

// Damaged is the value of Fenced.Have for such a ref.
const Damaged = "damaged"

// SetRef moves a ref from one hash to another; "" means absent. If the ref is already there, it does nothing. If the
// ref is anywhere else, the error is *Fenced.
func (s *Store) SetRef(ctx context.Context, ref, to, from string) error {
	if err := errors.Join(git.CheckRef(ref), git.CheckHashes(cmp.Or(to, git.NoHash), cmp.Or(from, git.NoHash))); err != nil {
		return err
	}
	lock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer lock.Close()
	switch have, err := s.Ref(ctx, ref); {
	case err != nil:
		return err
	case have == to:
		return nil
	case have != from:
		return &Fenced{Ref: ref, Want: from, Have: have}
	}
	if to != "" {
		if err := s.need(ctx, to); err != nil {
			return err
		}
		return s.moveRef(ctx, ref, to, lock)
	}
	if err := s.dropStaleLock(ref); err != nil {
		return err
	}
	script := "delete " + ref + "\x00" + from + "\x00"
	_, err = s.run.Command("update-ref", "--stdin", "-z").Input(script).Holding(lock).Run(ctx)
	return err
}

// dropStaleLock removes the lock on a ref that a killed git left. The caller holds the store's lock, and so does every
// git process that moves a ref until it ends, so no lock in use is removed.
func (s *Store) dropStaleLock(ref string) error {
	err := os.Remove(s.path(filepath.FromSlash(ref) + ".lock"))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil
	}
	return err
}

// Fenced says that a ref is not where this caller last put it: another host or a person moved it, or it was truncated
// or deleted. Nothing was written.
type Fenced struct {
	Ref  string
	Want string // "" absent
	Have string // "" absent, Damaged if unreadable
}

func (e *Fenced) Error() string {
	show := func(h string) string { return cmp.Or(h[:min(len(h), 12)], "absent") }
	return fmt.Sprintf("%s is at %s where %s was expected: something else has moved it", e.Ref, show(e.Have), show(e.Want))
}

// RootFiles are the names in a working tree's root that belong to pawl. They are never part of a change and never make
// a tree dirty: the copy of the results, the stop request, and the lock of P0.
var RootFiles = []string{"loop-results.tsv", "loop-stop", "loop-results.tsv.lock"}

// IsRootFile reports whether a path is one of RootFiles.
func IsRootFile(path string) bool {
	return slices.Contains(RootFiles, path)
}
