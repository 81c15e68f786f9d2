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

// Drop deletes a ref of the user's repository, if it is still at that object. A branch that is checked out anywhere
// gives *Precondition.
func Drop(ctx context.Context, of Repo, ref, at string) error {
	if err := git.CheckRef(ref); err != nil {
		return err
	}
	in := &inspector{ctx: ctx, repo: of}
	if branch, is := strings.CutPrefix(ref, "refs/heads/"); is {
		here, err := in.checkedOut(branch)
		if err != nil {
			return err
		}
		if here {
			return &Precondition{Code: CheckedOutThere, What: "the branch " + git.Quote(branch) + " is checked out", Do: "check out another branch"}
		}
	}
	if _, err := in.git("update-ref", "-d", ref, at); err != nil {
		return fmt.Errorf("deleting %s: %w", ref, err)
	}
	return nil
}
