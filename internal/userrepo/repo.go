package userrepo

import (
	"os"
	"path/filepath"

	"pawl/internal/git"
	"pawl/internal/held"
	"pawl/internal/store"
)

// Repo is a repository of the user's: a path on this host, or a URL.
type Repo struct {
	Address string
	folder  *held.Folder // of a path or a file:// URL: what it was found to be; nil for whatever stands there
}

// At is the repository at an address, whichever stands there.
func At(address string) Repo { return Repo{Address: address} }

// Held is the repository whose working tree is that folder, or that is the folder where it is bare: whatever is renamed
// or put in its place, git works in it and talks to it. Close closes the folder.
func Held(f *held.Folder) Repo { return Repo{f.Path, f} }

// HeldAt is Held for a repository that a file:// URL names: git talks to it as to any URL's, and its own hooks run.
func HeldAt(url string, f *held.Folder) Repo { return Repo{url, f} }

// Close gives up what is held.
func (r Repo) Close() {
	if r.folder != nil {
		r.folder.Close()
	}
}

// here is a path on this host in the form that this process, and git in this process's folder, reaches it by.
func (r Repo) here() (string, error) {
	if r.folder != nil {
		return r.folder.Here(), nil
	}
	return filepath.Abs(r.Address)
}

// isLocal reports whether git will take the address for a path on this host.
func (r Repo) isLocal() bool { return r.folder != nil && !isURL(r.Address) || isLocal(r.Address) }

// from is git in a store that talks to the repository, and what git calls it there: of one that is held, the folder that
// git works in.
func (r Repo) from(s *store.Store) (git.Runner, string, error) {
	run := s.Git().WithCredentials()
	if err := checkAddress(r.Address); err != nil {
		return run, "", err
	}
	switch {
	case r.folder != nil && isURL(r.Address):
		return run.In(r.folder), "file://" + filepath.ToSlash(r.folder.Within()), nil
	case r.folder != nil:
		return run.In(r.folder), "." + string(filepath.Separator), nil
	case isLocal(r.Address):
		abs, err := filepath.Abs(r.Address)
		return run, abs, err
	}
	return run, r.Address, nil
}

// objects is the folder of objects of a repository that is held, nil where git has to find it. git names that folder by its path
// to the programs that take a push: if another repository took its place meanwhile, they would write the objects there, and
// this one would get a ref to objects that it does not have.
func (r Repo) objects() *os.File {
	if held.Third == "" || r.folder == nil || isURL(r.Address) {
		return nil
	}
	at := filepath.Join(r.folder.Here(), ".git")
	if _, err := os.Lstat(at); err != nil { // it is bare
		at = r.folder.Here()
	}
	f, err := os.Open(filepath.Join(at, "objects"))
	if err != nil {
		return nil // of a linked working tree, for example
	}
	return f
}

// user is git in the repository as the user runs it.
func (r Repo) user() git.Runner {
	run := git.AsUser(r.Address)
	if r.folder != nil {
		run = run.In(r.folder)
	}
	return run
}

// open opens the folder of the repository; nothing is done outside of it.
func (r Repo) open() (*os.Root, error) {
	at, err := r.here()
	if err != nil {
		return nil, err
	}
	return os.OpenRoot(at)
}
