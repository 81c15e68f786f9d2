package commit

import (
	"context"
	"errors"
	"fmt"

	"pawl/activities/workspace"
	"pawl/internal/git"
	"pawl/internal/git/store"
	"pawl/internal/lib/crashpoint"
	"pawl/internal/loop/api"
)

// Take puts the changes of a candidate onto the loop's desk, on top of the head. If something was kept since the
// candidate was made, it merges three-way, in the store. If both changed the same file, that is a conflict, and the
// desk stays as it was. A retry does the same again.
func (a *Committer) Take(ctx context.Context, input api.Take) (api.Taken, error) {
	ws, err := a.Workspace(ctx, input.Ref)
	if err != nil {
		return api.Taken{}, err
	}
	crashpoint.At("take.before")
	commit, err := putOn(ctx, ws, input)
	if conflict, ok := errors.AsType[*store.Conflict](err); ok {
		return api.Taken{Conflict: git.QuoteSome(conflict.Paths)}, nil
	}
	if err != nil {
		return api.Taken{}, fmt.Errorf("putting the candidate %s on top of %s: %w", input.Commit, input.Head, err)
	}
	if err := ws.Restore(ctx, ws.Desk, commit); err != nil {
		return api.Taken{}, err
	}
	ws.Leave(ws.Desk) // the desk now differs from the head
	crashpoint.At("take.after")
	return api.Taken{}, nil
}

// putOn returns a commit with the candidate's changes on top of the head; the candidate itself if it was made from there.
func putOn(ctx context.Context, ws *workspace.Workspace, input api.Take) (string, error) {
	if input.Head == input.Base {
		return input.Commit, nil
	}
	tree, err := ws.Objects.Merge(ctx, input.Head, input.Commit)
	if err != nil {
		return "", err
	}
	return ws.Objects.Make(ctx, store.NewCommit{
		Tree: tree, Parents: []string{input.Head}, Message: "a candidate on top of what was kept since", Author: ws.Author(), Time: input.Time,
	})
}
