package userrepo

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"pawl/internal/git"
	"pawl/internal/git/store"
)

// RefAt returns the object of a ref of the user's repository, "" if there is none.
func RefAt(ctx context.Context, repo Repo, ref string) (string, error) {
	if err := git.CheckRef(ref); err != nil {
		return "", err
	}
	insp := &inspector{ctx: ctx, repo: repo}
	path, _, err := insp.maybe("rev-parse", "-q", "--verify", ref)
	if err != nil {
		return "", fmt.Errorf("looking for %s: %w", ref, err)
	}
	return path, nil
}

// Drop deletes a ref of the user's repository, if it is still at that object. It has to be Droppable.
func Drop(ctx context.Context, repo Repo, ref, path string) error {
	if err := git.CheckRef(ref); err != nil {
		return err
	}
	if err := Droppable(ctx, repo, ref); err != nil {
		return err
	}
	if _, err := repo.user().Run(ctx, "update-ref", "-d", ref, path); err != nil {
		return fmt.Errorf("deleting %s: %w", ref, err)
	}
	return nil
}

// Droppable returns why a ref can't be dropped: a branch that is checked out anywhere gives *Precondition.
func Droppable(ctx context.Context, repo Repo, ref string) error {
	branch, ok := strings.CutPrefix(ref, "refs/heads/")
	if !ok {
		return nil
	}
	checkedOut, err := (&inspector{ctx: ctx, repo: repo}).checkedOut(branch)
	if err == nil && checkedOut {
		err = &Precondition{Code: CheckedOutThere, What: "the branch " + git.Quote(branch) + " is checked out", Do: "check out another branch"}
	}
	return err
}

// RefsTo returns pawl's refs that reach one of the commits, sorted: those of the store, and of a repository on this
// host.
func RefsTo(ctx context.Context, s *store.Store, repo Repo, commits []string) ([]string, error) {
	if err := git.CheckHashes(commits...); err != nil {
		return nil, err
	}
	places := []git.Runner{s.Git()}
	if repo.isLocal() {
		places = append(places, repo.user())
	}
	found := map[string]bool{}
	for _, place := range places {
		for _, commit := range commits {
			out, err := place.Run(ctx, "for-each-ref", "--format=%(refname)", "--contains", commit, "refs/heads/pawl/", "refs/pawl-ledger/")
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			if err != nil { // it does not have the commit
				continue
			}
			for ref := range strings.Lines(string(out)) {
				found[strings.TrimSuffix(ref, "\n")] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found)), nil
}
