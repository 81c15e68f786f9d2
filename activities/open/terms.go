package open

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	"pawl/activities/agentcall"
	"pawl/activities/baseline"
	"pawl/activities/contract"
	"pawl/activities/workspace"
	"pawl/internal/fault"
	"pawl/internal/ledger"
	"pawl/internal/lib/fsutil/durable"
	"pawl/internal/loop/api"
	"pawl/internal/loop/rules"
	"pawl/internal/spec"
)

// contract draws up the contract that a person will be asked to approve, and keeps it for the ledger.
func drawContract(ctx context.Context, ws *workspace.Workspace, s spec.Spec, out *api.Opened) error {
	d, err := contract.Draw(ctx, ws, s, out.Base)
	if err != nil {
		return err
	}
	if f := d.Closed(ws, s); f != nil {
		return workspace.Refuse(f)
	}
	out.Terms, out.InScope, out.Warnings = d.Terms(), d.InScope, d.Warnings
	counting, _, err := agentcall.Counting(ws, s)
	if err != nil {
		return err
	}
	out.Environment = append(rules.Environment(s, os.Environ()), counting...)
	named, err := ws.Named(s)
	if err != nil {
		return err
	}
	out.Protections = append(out.Protections, named...)
	ready, err := Ready(ctx, ws, s, d)
	if err != nil {
		return err
	}
	if err := ready.err(); err != nil {
		return err
	}
	if err := recall(ctx, ws, s, d.Contract); err != nil { // then the loop measures by itself
		ws.Machine.Logger.WarnContext(ctx, "what validate measured can't be used", "loop", ws.Loop, "error", err)
	}
	ws.Book.Bind(d.Contract)
	return durable.WriteJSON(filepath.Join(ws.Machine.Home.Loop(ws.Ref), ledger.ContractFile), d.Contract)
}

// recall gives the loop what `pawl validate` has measured for this contract, if nothing can have changed that since then.
func recall(ctx context.Context, ws *workspace.Workspace, s spec.Spec, contract ledger.Contract) error {
	safe, err := baseline.Safe(ws, s)
	if err != nil || !safe {
		return err
	}
	k, err := baseline.KeyOf(ws, contract)
	if err != nil {
		return err
	}
	return baseline.Recall(ctx, ws, k, time.Now())
}

// Amend draws up the contract that the loop would have with another spec. An event makes it the loop's, once approved.
func (a *Opener) Amend(ctx context.Context, input api.Amend) (api.Terms, error) {
	ws, err := a.Workspace(ctx, input.Ref)
	if err != nil {
		return api.Terms{}, err
	}
	d, err := contract.Draw(ctx, ws, input.Spec, input.Base)
	return d.Terms(), err
}

// sameTerms refuses another spec than the approved one in the ledger. These may differ: where the repository is, who
// starts the loop, and whether that approves a contract that nobody has approved yet.
func sameTerms(contract ledger.Contract, given spec.Spec) error {
	terms := func(s spec.Spec) string {
		s.Repo, s.Session, s.Approvals.Plan = spec.Repo{}, nil, ""
		b, _ := json.Marshal(s)
		return string(b)
	}
	if terms(contract.Spec) == terms(given) {
		return nil
	}
	return workspace.Refuse(fault.New(fault.PreconditionFailed, "the spec is not the one of the contract that the ledger has").
		Advise("Start it with that spec: it is in the ledger's contract.json (git show REF:contract.json)."))
}
