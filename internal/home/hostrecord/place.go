package hostrecord

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"

	"pawl/internal/home"
	"pawl/internal/lib/fsutil/dirfd"
)

// Local returns the path of the repository on this host, "" if it is elsewhere.
func (r Record) Local() string {
	if !r.Remote {
		return r.Repo
	}
	if u, err := url.Parse(r.Repo); err == nil && u.Scheme == "file" {
		return filepath.FromSlash(u.Path)
	}
	return ""
}

// Locate records the identity of the repository's folders, if it is on this host: of the working tree and of the git
// directory with its branches. f is the working tree, or nil to open what is at its path now.
func (r *Record) Locate(f *dirfd.Folder) error {
	at := r.Local()
	if at == "" {
		return nil
	}
	if f == nil {
		var err error
		if f, err = dirfd.Open(at); err != nil {
			return fmt.Errorf("opening the repository's folder: %w", err)
		}
		defer f.Close()
	}
	return r.locate(f.Here())
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

// ErrReplaced is the error of Hold if the repository is not the one that Locate has recorded.
var ErrReplaced = errors.New("another repository stands there")

// Hold opens the folder of a repository on this host. It returns ErrReplaced if folder or git directory are not those
// that Locate has recorded, and fs.ErrNotExist if there is no folder. Everything done in the returned folder is done
// in that very folder, whatever is renamed later. The caller closes it.
func (r Record) Hold() (*dirfd.Folder, error) {
	f, err := dirfd.Open(r.Local())
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
