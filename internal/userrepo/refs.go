package userrepo

import (
	"context"
	"fmt"
	"strings"

	"pawl/internal/git"
)

// RefAt returns the object of a ref of the user's repository, "" if there is none.
func RefAt(ctx context.Context, of Repo, ref string) (string, error) {
	if err := git.CheckRef(ref); err != nil {
		return "", err
	}
	in := &inspector{ctx: ctx, repo: of}
	at, _, err := in.maybe("rev-parse", "-q", "--verify", ref)
	if err != nil {
		return "", fmt.Errorf("looking for %s: %w", ref, err)
	}
	return at, nil
}

// Drop deletes a ref of the user's repository, if it is still at that object. It has to be Droppable.
func Drop(ctx context.Context, of Repo, ref, at string) error {
	if err := git.CheckRef(ref); err != nil {
		return err
	}
	if err := Droppable(ctx, of, ref); err != nil {
		return err
	}
	if _, err := of.user().Run(ctx, "update-ref", "-d", ref, at); err != nil {
		return fmt.Errorf("deleting %s: %w", ref, err)
	}
	return nil
}

// Droppable returns why a ref can't be dropped: a branch that is checked out anywhere gives *Precondition.
func Droppable(ctx context.Context, of Repo, ref string) error {
	branch, is := strings.CutPrefix(ref, "refs/heads/")
	if !is {
		return nil
	}
	here, err := (&inspector{ctx: ctx, repo: of}).checkedOut(branch)
	if err == nil && here {
		err = &Precondition{Code: CheckedOutThere, What: "the branch " + git.Quote(branch) + " is checked out", Do: "check out another branch"}
	}
	return err
}
