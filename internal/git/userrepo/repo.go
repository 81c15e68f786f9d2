package userrepo

import (
	"os"
	"path/filepath"

	"pawl/internal/git"
	"pawl/internal/git/store"
	"pawl/internal/lib/fsutil/dirfd"
)

// Repo is a repository of the user: a path on this host, or a URL.
type Repo struct {
	Address string
	folder  *dirfd.Folder // of a path or a file:// URL; nil to use whatever is at the address
}

// At returns the repository at an address, whatever is there at the time of a call.
func At(address string) Repo { return Repo{Address: address} }

// Held returns the repository whose working tree, or whose bare repository, is that folder. If the folder is renamed
// or another one is put in its place, git still uses this one. Close closes the folder.
func Held(f *dirfd.Folder) Repo { return Repo{f.Path, f} }

// HeldAt is Held for a repository that a file:// URL names. Git treats it like any URL, and its own hooks run.
func HeldAt(url string, f *dirfd.Folder) Repo { return Repo{url, f} }

// Folder returns the held folder, nil if there is none.
func (r Repo) Folder() *dirfd.Folder { return r.folder }

// Close closes the held folder.
func (r Repo) Close() {
	if r.folder != nil {
		r.folder.Close()
	}
}

// here returns the path by which this process, and git in this process's folder, reaches a repository on this host.
func (r Repo) here() string {
	if r.folder != nil {
		return r.folder.Here()
	}
	return r.Address
}

// isLocal reports whether git reads the address as a path on this host.
func (r Repo) isLocal() bool { return r.folder != nil && !isURL(r.Address) || isLocal(r.Address) }

// from returns git in a store, and the name by which it talks to the repository. If the repository is held, git works
// in its folder.
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
// this one would get a ref to objects that it does not have. At a URL git has to find it too: hooks of the repository run there,
// and they would inherit the variable that names the folder to git's programs.
func (r Repo) objects() *os.File {
	if dirfd.Third == "" || r.folder == nil || isURL(r.Address) {
		return nil
	}
	path := filepath.Join(r.folder.Here(), ".git")
	if _, err := os.Lstat(path); err != nil { // it is bare
		path = r.folder.Here()
	}
	f, _ := os.Open(filepath.Join(path, "objects")) // nil of a linked working tree, for example
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

// open opens the folder of the repository. The root allows nothing outside of it.
func (r Repo) open() (*os.Root, error) { return os.OpenRoot(r.here()) }
