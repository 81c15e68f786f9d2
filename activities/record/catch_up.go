package record

import (
	"context"
	"fmt"
	"strings"

	"pawl/activities/workspace"
	"pawl/internal/fault"
	"pawl/internal/git/userrepo"
)

// CatchUp updates this host's copy of a ledger from the repository, if another host has continued it. What the
// repository did not accept does not count.
func CatchUp(ctx context.Context, ws *workspace.Workspace) error {
	head, err := ws.Objects.Ref(ctx, ws.Ledger)
	if err != nil {
		return err
	}
	repo, err := ws.Repository()
	if err != nil {
		return PlainFault(err)
	}
	defer repo.Close()
	refs, err := userrepo.Refs(ctx, ws.Objects, repo, ws.Ledger)
	if err != nil {
		return PlainFault(userrepo.Unreached(ws.Repo, err))
	}
	at := refs[ws.Ledger]
	if at == "" || at == head {
		return nil
	}
	if in, err := ws.DescendsFrom(ctx, head, at); in || err != nil {
		return err
	}
	if at, err = userrepo.FetchLedger(ctx, ws.Objects, repo, ws.Ledger); err != nil {
		return err
	}
	return SetTo(ctx, ws, at)
}

// SetTo sets ledger and branch of this host's copy to a ledger commit and the head of its state. What this host
// recorded and the repository did not accept stays in the store, under refs/pawl-lost.
func SetTo(ctx context.Context, ws *workspace.Workspace, head string) error {
	to := map[string]string{ws.Ledger: head}
	if ws.Branch != "" {
		s, err := ws.Book.State(ctx, head)
		if err != nil {
			return err
		}
		to[ws.Branch] = s.Head
	}
	old, err := ws.Objects.Ref(ctx, ws.Ledger)
	if err == nil && old != "" {
		var in bool
		if in, err = ws.DescendsFrom(ctx, head, old); err == nil && !in {
			err = ws.Objects.SetRef(ctx, "refs/pawl-lost/"+old, old, "")
		}
	}
	if err != nil {
		return err
	}
	for ref, to := range to {
		at, err := ws.Objects.Ref(ctx, ref)
		if err == nil && at != to {
			err = ws.Objects.SetRef(ctx, ref, to, at)
		}
		if err != nil {
			return fmt.Errorf("setting %s to what the repository has: %w", ref, err)
		}
	}
	return nil
}

// PlainFault returns the fault of unmet preconditions for the caller, and any other error unchanged.
func PlainFault(err error) error {
	failed := userrepo.Failed(err)
	if len(failed) == 0 {
		return err
	}
	var what, do []string
	for _, pre := range failed {
		what, do = append(what, pre.What), append(do, pre.Do)
	}
	return fault.New(fault.PreconditionFailed, "%s", strings.Join(what, "; ")).Advise(strings.Join(do, "\n"))
}
