package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"pawl/internal/git"
	"pawl/internal/git/userrepo"
	"pawl/internal/home/hostrecord"
	"pawl/internal/spec"
)

// Repository returns the loop's repository; the caller closes it. See RepositoryOf.
func (ws *Workspace) Repository() (userrepo.Repo, error) { return RepositoryOf(ws.Record) }

// Pushed returns the commit of a ref in the loop's repository, "" if the repository does not have the ref.
func (ws *Workspace) Pushed(ctx context.Context, ref string) (string, error) {
	repo, err := ws.Repository()
	if err != nil {
		return "", err
	}
	defer repo.Close()
	refs, err := userrepo.Refs(ctx, ws.Objects, repo, ref)
	return refs[ref], err
}

// SetThere sets a ref in the loop's repository to a commit of the store, wherever the ref is there.
func (ws *Workspace) SetThere(ctx context.Context, ref, target string) error {
	repo, err := ws.Repository()
	if err != nil {
		return err
	}
	defer repo.Close()
	refs, err := userrepo.Refs(ctx, ws.Objects, repo, ref)
	if err == nil && refs[ref] != target {
		err = userrepo.Move(ctx, ws.Objects, repo, ref, target, refs[ref])
	}
	return err
}

// RepositoryOf returns the repository of a loop or a steward. A repository on this host is held: it is the one with
// which the loop began, and stays it until it is closed. If another repository is in its place, or none, the error is
// a *userrepo.Precondition, and nothing there is read or run.
func RepositoryOf(r hostrecord.Record) (userrepo.Repo, error) {
	if r.Local() == "" {
		return userrepo.At(r.Repo), nil
	}
	f, err := r.Hold()
	switch {
	case errors.Is(err, hostrecord.ErrReplaced):
		return userrepo.Repo{}, &userrepo.Precondition{Code: userrepo.Replaced, What: fmt.Sprintf("%s is not the repository that the loop started with", git.Quote(r.Local())),
			Do: "put that one back; if you replaced it on purpose, start the loop again from its ledger (" + r.Resuming() + " COMMIT; `pawl show --json` names the commit as ledger)"}
	case errors.Is(err, fs.ErrNotExist):
		return userrepo.Repo{}, &userrepo.Precondition{Code: userrepo.NoSuchPath, What: fmt.Sprintf("there is no repository at %s any more", git.Quote(r.Local())), Do: "bring it back"}
	case err != nil:
		return userrepo.Repo{}, err
	case r.Remote: // the URL is file://
		return userrepo.HeldAt(r.Repo, f), nil
	}
	return userrepo.Held(f), nil
}

// Find opens the repository of a spec, or of a ledger that comes to this host. It holds a repository of this host: until
// the caller closes it, it stays the one that was found, whatever is put in its place.
func Find(ctx context.Context, r spec.Repo) (userrepo.Repo, error) {
	if _, err := git.Version(ctx); err != nil {
		return userrepo.Repo{}, err
	}
	if r.Remote() {
		return userrepo.FindAt(r.URL, hostrecord.Record{Repo: r.URL, Remote: true}.Local()), nil
	}
	return userrepo.Find(ctx, r.Path)
}

// DescendsFrom reports whether a ledger commit equals another or comes after it; false for one that the store lacks, or
// that is none. An error says that git could not be run, so nobody knows.
func (ws *Workspace) DescendsFrom(ctx context.Context, head, earlier string) (bool, error) {
	ok, err := ws.Objects.Contains(ctx, head, earlier)
	if git.Failure(err) != nil || git.CheckHashes(head, earlier) != nil {
		return false, nil
	}
	return ok, err
}
