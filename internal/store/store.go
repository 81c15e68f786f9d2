// Package store keeps pawl's own bare repository: the loops' branches, their ledgers and the objects
// of both. A commit and the ledger entry for it become durable in one transaction.
//
// It never runs what is in the store, has no working tree and talks to no other repository (that is
// for trees and userrepo), and knows nothing of what a ledger's files mean (that is for ledger). Start
// reading at Store, then at Transact.
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
	"strings"
	"syscall"

	"pawl/internal/durable"
	"pawl/internal/git"
	"pawl/internal/held"
	"pawl/internal/mending"
)

// Store is a bare repository of pawl's own, one for each user repository, shared by its loops. Only
// pawl runs git in it. Its methods may be called concurrently, also from several processes.
type Store struct {
	dir     string
	run     git.Runner
	commits commitCache
	logs    logCache
}

// storeConfig is the whole config file of a store; what git.Hardened sets wins over it.
const storeConfig = `[core]
	repositoryformatversion = 0
	filemode = true
	bare = true
`

// storeAttributes take precedence over every .gitattributes. An agent that writes "*.go -diff" would
// otherwise hide its diff from the person who approves it and from the policy that counts lines.
// Conversions (eol, encoding, ident) stay as the tree has them: a desk is what a clone would be.
const storeAttributes = "* !diff !merge\n"

// Open opens the store in dir and creates it where there is none. It may be called by
// several processes at once. What of an old one it has to write again is noted beside it (mending), for its loops.
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

// Git runs git in the store, without any working tree.
func (s *Store) Git() git.Runner { return s.run }

// Dir is where the store is.
func (s *Store) Dir() string { return s.dir }

// path is what leads this process to a part of the store, in the folder of pawl's that it holds.
func (s *Store) path(parts ...string) string {
	return filepath.Join(append([]string{held.At(s.dir)}, parts...)...)
}

// complete reports whether the store is there. It appears by a rename, so it is whole or absent;
// an upgrade of pawl may have other ideas about its config.
func (s *Store) complete() (bool, error) {
	if _, err := os.Stat(s.path("HEAD")); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	wrote, err := s.writeConfig(s.path())
	if len(wrote) > 0 {
		mending.Note(s.dir, fmt.Sprintf("%s of the store %s was not as pawl writes it (damaged, or of another version of pawl): it is written again", strings.Join(wrote, ", "), s.dir))
	}
	return true, err
}

// writeConfig writes the files of a store that are the same in every store, where they are not that, and returns
// which it wrote.
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

// Excludes is info/exclude of the store and of the trees: pawl's own files in a tree's root.
func Excludes() string {
	return "/" + strings.Join(RootFiles, "\n/") + "\n"
}

func (s *Store) create(ctx context.Context, lock *os.File) error {
	fresh := s.dir + ".new"
	at := held.At(fresh)
	if err := os.RemoveAll(at); err != nil { // of a process that died here
		return err
	}
	if err := os.Mkdir(at, 0o700); err != nil {
		return err
	}
	c := git.Hardened(fresh).Command("init", "--quiet", "--bare", "--template=", "--initial-branch=none", "--object-format=sha1")
	c.Lock = lock
	if _, err := c.Run(ctx); err != nil {
		return err
	}
	if _, err := s.writeConfig(at); err != nil {
		return err
	}
	return durable.Rename(fresh, s.dir)
}

// LockFetch keeps other fetches out of the store and removes what a fetch that was killed has left on
// the ref. It is not the lock of what moves refs: other loops go on while a network is slow.
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

// lock serialises what moves refs. It is held for milliseconds; git's own locks would make the
// second of two processes fail instead of wait.
func (s *Store) lock(ctx context.Context) (*os.File, error) {
	return durable.Lock(ctx, filepath.Join(s.dir, "pawl.lock"))
}

// Ref returns the object that a ref names, "" if there is no such ref. A ref that pawl has moved
// is a small file, so that this usually costs no process.
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
	for line := range strings.Lines(string(out)) { // a prefix matches too
		if hash, name, _ := strings.Cut(strings.TrimSpace(line), " "); name == ref && git.IsHash(hash) {
			return hash, nil
		}
	}
	return "", nil
}

// ErrDamagedRef is what Ref returns for a ref whose file holds no hash, as after a power cut.
var ErrDamagedRef = errors.New("the ref is damaged")

// Damaged is what a Fenced has of such a ref.
const Damaged = "damaged"

// SetRef moves a ref from one hash to another, "" meaning absent, and succeeds without doing anything if
// it is there already. A ref that is elsewhere gives *Fenced.
func (s *Store) SetRef(ctx context.Context, ref, to, from string) error {
	if err := git.CheckRef(ref); err != nil {
		return err
	}
	if err := git.CheckHashes(cmp.Or(to, git.NoHash), cmp.Or(from, git.NoHash)); err != nil {
		return err
	}
	lock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer lock.Close()
	have, err := s.Ref(ctx, ref)
	switch {
	case err != nil:
		return err
	case have == to:
		return nil
	case have != from:
		return &Fenced{Ref: ref, Want: from, Have: have}
	}
	if err := s.dropStaleLock(ref); err != nil {
		return err
	}
	c := s.run.Command("update-ref", "--stdin", "-z")
	c.Lock = lock
	c.Stdin = strings.NewReader("update " + ref + "\x00" + cmp.Or(to, git.NoHash) + "\x00" + cmp.Or(from, git.NoHash) + "\x00")
	_, err = c.Run(ctx)
	return err
}

// dropStaleLock removes the lock that a git killed half way has left on a ref. The caller holds the
// store's lock, as does every git process that moves a ref until it ends, so nobody's lock goes.
func (s *Store) dropStaleLock(ref string) error {
	err := os.Remove(s.path(filepath.FromSlash(ref) + ".lock"))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil
	}
	return err
}

// Fenced says that a ref is not where this caller last put it: another host or a person has
// moved it, or it was truncated or deleted. Nothing was written.
type Fenced struct {
	Ref  string
	Want string // "" absent
	Have string // "" absent, Damaged where it can't be read
}

func (e *Fenced) Error() string {
	show := func(h string) string { return cmp.Or(h[:min(len(h), 12)], "absent") }
	return fmt.Sprintf("%s is at %s where %s was expected: something else has moved it", e.Ref, show(e.Have), show(e.Want))
}
