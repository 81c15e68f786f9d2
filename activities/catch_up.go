package activities

import (
	"context"
	"fmt"

	"pawl/internal/fault"
	"pawl/internal/userrepo"
)

// catchUp brings this host's copy of a ledger up to the repository's, where another host has gone
// on with it. What the repository did not take does not count.
func (ws *loopWorkspace) catchUp(ctx context.Context) error {
	head, err := ws.store.Ref(ctx, ws.Ledger)
	if err != nil {
		return err
	}
	repo, err := ws.repository()
	if err != nil {
		return plainFault(err)
	}
	defer repo.Close()
	refs, err := userrepo.Refs(ctx, ws.store, repo, ws.Ledger)
	if err != nil {
		return plainFault(userrepo.Unreached(ws.Repo, err))
	}
	at := refs[ws.Ledger]
	if at == "" || at == head || ws.descendsFrom(ctx, head, at) {
		return nil
	}
	if at, err = userrepo.FetchLedger(ctx, ws.store, repo, ws.Ledger); err != nil {
		return err
	}
	return ws.setTo(ctx, at)
}

// setTo sets ledger and branch of this host's copy to a ledger commit and the head that it knows.
// What this host has recorded and nobody has taken stays in the store, under refs/pawl-lost.
func (ws *loopWorkspace) setTo(ctx context.Context, head string) error {
	s, err := ws.ledger.State(ctx, head)
	if err != nil {
		return err
	}
	old, err := ws.store.Ref(ctx, ws.Ledger)
	if err == nil && old != "" && !ws.descendsFrom(ctx, head, old) {
		err = ws.store.SetRef(ctx, "refs/pawl-lost/"+old, old, "")
	}
	if err != nil {
		return err
	}
	for ref, to := range map[string]string{ws.Ledger: head, ws.Branch: s.Head} {
		at, err := ws.store.Ref(ctx, ref)
		if err == nil && at != to {
			err = ws.store.SetRef(ctx, ref, to, at)
		}
		if err != nil {
			return fmt.Errorf("setting %s to what the repository has: %w", ref, err)
		}
	}
	return nil
}

// plainFault is the fault that an unmet precondition is for whoever called.
func plainFault(err error) error {
	if failed := userrepo.Failed(err); len(failed) > 0 {
		return fault.New(fault.PreconditionFailed, "%s", failed[0].What).Advise(failed[0].Do)
	}
	return err
}
