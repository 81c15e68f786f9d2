package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path/filepath"

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

// InPlace reports whether the repository is the one that Locate has noted. One that was never noted is, and
// so is one that is gone, which git says better.
func (r Record) InPlace() (bool, error) {
	now := r
	switch err := now.Locate(); {
	case errors.Is(err, fs.ErrNotExist):
		return true, nil
	case err != nil:
		return false, err
	}
	return r.Tree.Same(now.Tree) && r.Git.Same(now.Git), nil
}
