package workspace

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"

	"pawl/internal/held"
	"pawl/internal/home"
)

// Local is where the repository is on this host, "" where it is elsewhere.
func (r Record) Local() string {
	if !r.Remote {
		return r.Repo
	}
	if u, err := url.Parse(r.Repo); err == nil && u.Scheme == "file" {
		return filepath.FromSlash(u.Path)
	}
	return ""
}

// Locate notes which folders the repository is, where it is on this host: that of the working tree, and the
// one that its branches are in.
func (r *Record) Locate() error {
	at := r.Local()
	if at == "" {
		return nil
	}
	return r.locate(at)
}

func (r *Record) locate(at string) error {
	dir, err := home.GitDir(at)
	if err == nil {
		r.Tree, err = home.Identify(at)
	}
	if err == nil {
		r.Git, err = home.Identify(dir)
	}
	if err != nil {
		return fmt.Errorf("looking at the repository's folder: %w", err)
	}
	return nil
}

// ErrReplaced is what Hold returns where another repository stands in the place of the one that Locate has noted.
var ErrReplaced = errors.New("another repository stands there")

// Hold opens the folder of a repository on this host and wants it to be the one that Locate has noted, with the git
// directory that it had: ErrReplaced where it is another, fs.ErrNotExist where there is none. What is done in the folder
// is done in that one, whatever is renamed later. Its caller closes it.
func (r Record) Hold() (*held.Folder, error) {
	f, err := held.Open(r.Local())
	if err != nil {
		return nil, err
	}
	now := r
	if err = now.locate(f.Here()); err == nil && !(r.Tree.Same(now.Tree) && r.Git.Same(now.Git)) {
		err = ErrReplaced
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
