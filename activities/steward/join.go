package steward

import (
	"context"
	"errors"
	"fmt"
	"time"

	"pawl/activities/open"
	"pawl/activities/workspace"
	"pawl/internal/git"
	"pawl/internal/git/store"
	"pawl/internal/git/userrepo"
	"pawl/internal/lib/crashpoint"
	"pawl/internal/lib/list"
	stewardapi "pawl/internal/steward/api"
)

// Join makes one commit with the work of several steps, on a branch of pawl's in the store and in the user's
// repository. The next step's loop begins there. The same heads make the same commit. If several steps changed the
// same files in different ways, that is a result and not an error.
func (a *Stewards) Join(ctx context.Context, input stewardapi.Join) (stewardapi.Joined, error) {
	ws, err := a.Workspace(ctx, input.Ref)
	if err != nil {
		return stewardapi.Joined{}, err
	}
	if len(input.Heads) == 0 {
		return stewardapi.Joined{}, errors.New("there is nothing to join")
	}
	crashpoint.At("join.before")
	commit := input.Heads[0]
	for _, head := range input.Heads[1:] {
		var conflict *store.Conflict
		switch commit, err = merge(ctx, ws, input, commit, head); {
		case errors.As(err, &conflict):
			return stewardapi.Joined{Conflicts: list.Map(conflict.Paths, git.Quote)}, nil
		case err != nil:
			return stewardapi.Joined{}, fmt.Errorf("joining %s: %w", head, err)
		}
	}
	out := stewardapi.Joined{Branch: fmt.Sprintf("pawl/%s-%s-%s-base", ws.Ref, git.RefName(input.Task), git.RefName(input.Step)), Head: commit}
	ref := "refs/heads/" + out.Branch
	old, err := ws.Objects.Ref(ctx, ref)
	if err == nil {
		err = ws.Objects.SetRef(ctx, ref, commit, old)
	}
	if err != nil {
		return stewardapi.Joined{}, fmt.Errorf("making the branch %s: %w", out.Branch, err)
	}
	crashpoint.At("join.made")
	// The loop fetches it from the repository, where people can see it too.
	if err := ws.SetThere(ctx, ref, commit); err != nil {
		return stewardapi.Joined{}, open.Precondition(ctx, userrepo.Unreached(ws.Repo, err))
	}
	crashpoint.At("join.pushed")
	return out, nil
}

// merge returns a commit with the work of two. If one already contains the other, it is that one.
func merge(ctx context.Context, ws *workspace.Workspace, input stewardapi.Join, first, second string) (string, error) {
	for _, pair := range [][2]string{{first, second}, {second, first}} {
		if ok, err := ws.Objects.Contains(ctx, pair[0], pair[1]); err != nil || ok {
			return pair[0], err
		}
	}
	tree, err := ws.Objects.Merge(ctx, first, second)
	if err != nil {
		return "", err
	}
	var when time.Time // the time of the later one, so that a retry makes the same commit
	for _, id := range []string{first, second} {
		c, err := ws.Objects.ReadCommit(ctx, id)
		if err != nil {
			return "", err
		}
		if c.Time.After(when) {
			when = c.Time
		}
	}
	return ws.Objects.Make(ctx, store.NewCommit{
		Tree: tree, Parents: []string{first, second}, Author: ws.Author(), Time: when,
		Message:  fmt.Sprintf("pawl: the work of the steps before %s of %s", input.Step, input.Task),
		Trailers: []git.Trailer{{Key: "Pawl-Loop", Value: ws.Loop}},
	})
}
