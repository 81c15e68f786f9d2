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
	commit := refs[ws.Ledger]
	if commit == "" || commit == head {
		return nil
	}
	if ok, err := ws.DescendsFrom(ctx, head, commit); ok || err != nil {
		return err
	}
	if commit, err = userrepo.FetchLedger(ctx, ws.Objects, repo, ws.Ledger); err != nil {
		return err
	}
	return SetTo(ctx, ws, commit)
}

// SetTo sets ledger and branch of this host's copy to a ledger commit and the head of its state. What this host
// recorded and the repository did not accept stays in the store, under refs/pawl-lost.
func SetTo(ctx context.Context, ws *workspace.Workspace, head string) error {
	targets := map[string]string{ws.Ledger: head}
	if ws.Branch != "" {
		s, err := ws.Book.State(ctx, head)
		if err != nil {
			return err
		}
		targets[ws.Branch] = s.Head
	}
	old, err := ws.Objects.Ref(ctx, ws.Ledger)
	if err == nil && old != "" {
		var ok bool
		if ok, err = ws.DescendsFrom(ctx, head, old); err == nil && !ok {
			err = ws.Objects.SetRef(ctx, "refs/pawl-lost/"+old, old, "")
		}
	}
	if err != nil {
		return err
	}
	for ref, target := range targets {
		commit, err := ws.Objects.Ref(ctx, ref)
		if err == nil && commit != target {
			err = ws.Objects.SetRef(ctx, ref, target, commit)
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
	var texts, do []string
	for _, pre := range failed {
		texts, do = append(texts, pre.What), append(do, pre.Do)
	}
	return fault.New(fault.PreconditionFailed, "%s", strings.Join(texts, "; ")).Advise(strings.Join(do, "\n"))
}
