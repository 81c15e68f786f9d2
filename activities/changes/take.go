package changes

import (
	"context"
	"errors"
	"fmt"

	"pawl/activities/hosted"
	"pawl/internal/act"
	"pawl/internal/crash"
	"pawl/internal/git"
	"pawl/internal/store"
)

// Take brings what a candidate has changed onto the loop's desk, on top of the head: three-way, in the store, where
// something was kept since the candidate was made. Files that both have changed are a conflict, and the desk is left
// as it was. A retry does the same again.
func (a *Committer) Take(ctx context.Context, in act.Take) (act.Taken, error) {
	ws, err := a.Workspace(ctx, in.Ref)
	if err != nil {
		return act.Taken{}, err
	}
	crash.At("take.before")
	commit, err := putOn(ctx, ws, in)
	if both, ok := errors.AsType[*store.Conflict](err); ok {
		return act.Taken{Conflict: git.QuoteSome(both.Paths)}, nil
	}
	if err != nil {
		return act.Taken{}, fmt.Errorf("putting the candidate %s on top of %s: %w", in.Commit, in.Head, err)
	}
	if err := ws.Restore(ctx, ws.Desk, commit); err != nil {
		return act.Taken{}, err
	}
	ws.Leave(ws.Desk) // it differs from the head from now on
	crash.At("take.after")
	return act.Taken{}, nil
}

// putOn returns a commit with what the candidate has changed on top of the head: the candidate itself where that is its base.
func putOn(ctx context.Context, ws *hosted.Workspace, in act.Take) (string, error) {
	if in.Head == in.Base {
		return in.Commit, nil
	}
	tree, err := ws.Objects.Merge(ctx, in.Head, in.Commit)
	if err != nil {
		return "", err
	}
	return ws.Objects.Make(ctx, store.NewCommit{
		Tree: tree, Parents: []string{in.Head}, Message: "a candidate on top of what was kept since", Author: ws.Author(), Time: in.Time,
	})
}
