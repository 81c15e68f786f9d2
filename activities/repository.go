package activities

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path/filepath"

	"pawl/internal/git"
	"pawl/internal/home"
	"pawl/internal/userrepo"
	"pawl/internal/workspace"
)

// stands returns which folders a repository on this host is: its working tree's, and the one that its
// branches are in.
func stands(at string) (tree, branches home.Folder, err error) {
	dir, err := home.GitDir(at)
	if err == nil {
		tree, err = home.Identify(at)
	}
	if err == nil {
		branches, err = home.Identify(dir)
	}
	if err != nil {
		err = fmt.Errorf("looking at the repository's folder: %w", err)
	}
	return tree, branches, err
}

// local is where the repository of a record is on this host, "" where it is elsewhere.
func local(r workspace.Record) string {
	if !r.Remote {
		return r.Repo
	}
	if u, err := url.Parse(r.Repo); err == nil && u.Scheme == "file" {
		return filepath.FromSlash(u.Path)
	}
	return ""
}

// local is where the repository is on this host, "" where it is elsewhere.
func (ws *loopWorkspace) local() string { return local(ws.Record) }

// inPlace returns a *userrepo.Precondition if another repository stands where the loop's was when it began.
// Nothing that is in such a one is read or run. One that is gone is for git to say.
func (ws *loopWorkspace) inPlace() error {
	at := ws.local()
	if at == "" {
		return nil
	}
	tree, branches, err := stands(at)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case ws.Tree.Same(tree) && ws.Git.Same(branches):
		return nil
	}
	return &userrepo.Precondition{Code: userrepo.Replaced, What: fmt.Sprintf("%s is another repository than the one that the loop began with", git.Quote(at)),
		Do: "bring that back; where you have put another one there, start the loop again from its ledger (pawl start --ledger)"}
}
