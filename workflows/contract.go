package workflows

import (
	"errors"
	"fmt"
	"strings"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"pawl/internal/act"
	"pawl/internal/govern"
	"pawl/internal/loop"
	"pawl/internal/spec"
)

// agree is the contract gate: autonomy starts only after it, and only where nothing else is
// missing (A1).
func (r *run) agree(ctx workflow.Context) error {
	if err := r.ready(); err != nil {
		return err
	}
	by := "spec (approvals.plan: auto)"
	if r.spec.Approvals.Plan != spec.Auto {
		a, err := r.hold(ctx, loop.Gate{
			Kind:    loop.GateContract,
			Summary: fmt.Sprintf("approve the contract: %s", loop.Clip(r.spec.Goal, 200)),
			Hash:    r.opened.Contract,
		})
		if err != nil {
			return err
		}
		if a.Message == "reject" {
			return stop(govern.Interrupted.Because("the contract was rejected by " + orElse(a.By, "a person") + noteOf(a)))
		}
		by = orElse(a.By, "a person")
	}
	r.emit(ctx, loop.Event{Type: loop.AutonomyStarted, By: by})
	return r.record(ctx, "the loop begins", false)
}

// ready holds the loop to the preconditions of autonomy, all at once (A1).
func (r *run) ready() error {
	if missing := govern.Missing(r.state, r.spec, r.opened.Ref != ""); len(missing) > 0 {
		return notReady("autonomy can't start without %s", strings.Join(missing, "; "))
	}
	return nil
}

// exhausted is what comes of a budget that is used up: the loop ends, never goes on in silence
// (A2), or asks a person, whose extension is an amendment of the contract. Nil means that there is
// more of it now.
func (r *run) exhausted(ctx workflow.Context, end govern.End) error {
	if r.spec.Limits.OnExhausted != spec.Ask {
		return stop(end)
	}
	r.emit(ctx, loop.Event{Type: loop.BudgetExhausted, ExhaustedBudget: end.Budget})
	g := loop.Gate{
		Kind: loop.GateBudget, Budget: end.Budget,
		Summary: fmt.Sprintf("%s (%s): extend it, or reject and the loop ends", end.Reason, r.state.Budget.Spent(end.Budget)),
	}
	g.Hash = govern.AskHash(r.state.Contract, g, r.state.Budget)
	a, err := r.hold(ctx, g)
	if err != nil {
		return err
	}
	if a.Message == "reject" {
		end.Budget = "" // it is recorded already
		return stop(end.Because(end.Reason + ", and " + orElse(a.By, "a person") + " did not extend it" + noteOf(a)))
	}
	return r.amended(ctx, a, r.state.Contract.Sealed)
}

// amend lets a person correct a command that is at fault: the amended contract has a hash of its
// own and is approved like the first. It reports whether it was.
func (r *run) amend(ctx workflow.Context, a loop.Answer) (bool, error) {
	next, err := r.spec.Amend(a.Amendment, spec.Amendable)
	if err != nil {
		return false, err
	}
	var drawn act.Opened
	if err := r.execute(ctx, act.AmendName, "the amended contract", func() any {
		return act.Amend{Ref: r.opened.Ref, Base: r.state.Base, Spec: next}
	}, &drawn); err != nil {
		return false, err
	}
	answer, err := r.hold(ctx, loop.Gate{
		Kind:    loop.GateContract,
		Summary: fmt.Sprintf("approve the amended contract: %s", loop.Clip(string(a.Amendment), 300)),
		Hash:    drawn.Contract,
	})
	if err != nil || answer.Message == "reject" {
		return false, err
	}
	answer.Amendment = a.Amendment
	return true, r.amended(ctx, answer, drawn.Sealed)
}

// amended puts an approved amendment in force.
func (r *run) amended(ctx workflow.Context, a loop.Answer, sealed []loop.Seal) error {
	drawn := govern.Draw(r.spec, r.state.Base, r.opened.Onto, sealed)
	if r.state.Plan != nil {
		drawn.Plan = r.state.Plan.Hash
	}
	c, err := drawn.Amended(a.Amendment, sealed)
	if err != nil {
		return err
	}
	now := workflow.Now(ctx).UTC()
	r.emit(ctx, loop.Event{Type: loop.ContractAmended, By: a.By, Note: a.Note, Amendment: a.Amendment, Limits: govern.Limits(c.Spec), Contract: &loop.Contract{
		Hash: c.Hash(), Base: c.Base, Sealed: sealed, Tools: c.Tools, ApprovedBy: orElse(a.By, "a person"), ApprovedAt: &now,
	}})
	r.spec, r.opened.Contract, r.opened.Sealed = c.Spec, c.Hash(), sealed
	return r.record(ctx, "the contract is amended", false)
}

// propose makes what a completed loop has made a proposal and has it judged: by the reviewer where
// there is one, and by a person unless the spec leaves it to the reviewer (A7, E3). It changes
// nothing of the user's.
func (r *run) propose(ctx workflow.Context) error {
	if err := r.makeProposal(ctx); err != nil || r.state.Proposal == nil {
		return err
	}
	if _, reviewer := r.spec.Agent.Roles[spec.RoleReviewer]; reviewer {
		o, err := r.review(ctx)
		if err != nil {
			return err
		}
		switch {
		case o.Decision == govern.SaysRejected:
			r.rejected(ctx, spec.RoleReviewer, o.Note)
			return nil
		case o.Decision == govern.SaysApproved && r.spec.Approvals.Diff == spec.Auto:
			r.approved(ctx, spec.RoleReviewer, o.Note)
			return nil
		}
	}
	if r.spec.Approvals.Diff == spec.Auto {
		return nil // nobody has approved it: it stays open
	}
	_, _, _, err := r.askDiff(ctx)
	return err
}

// makeProposal makes the diff from base to head a proposal, unless it is one already.
func (r *run) makeProposal(ctx workflow.Context) error {
	base := r.state.Footing()
	if r.state.Head == base {
		return nil
	}
	if p := r.state.Proposal; p != nil && p.Head == r.state.Head {
		return nil
	}
	_, err := r.append(ctx, act.RecordName, "the proposal: "+short(base)+" to "+short(r.state.Head), []loop.Event{{Type: loop.ProposalMade}}, true, func(e act.Entry) any {
		return act.Settle{Entry: e, Idle: true, Base: base, Head: r.state.Head}
	})
	return err
}

// review asks the reviewer role for its word on exactly this proposal. An answer that is no decision
// is asked for again, as often as the spec allows reworks and the phase has time.
func (r *run) review(ctx workflow.Context) (govern.Opinion, error) {
	p := *r.state.Proposal
	why := ""
	for n := 1; ; n++ {
		s := r.agentStep(spec.RoleReviewer, string(r.state.Phase), "", r.state.Attempt, repairOf{reason: why})
		s.Key.Name, s.Agent.Attempt, s.Agent.Proposal = fmt.Sprintf("%s-%s-%d", spec.RoleReviewer, p.Hash[:12], n), n, &p
		out, err := r.step(ctx, r.inTime(s))
		if err != nil {
			return govern.Opinion{}, err
		}
		o := govern.Opinion{Why: orElse(agentFailure(out), "it said nothing"), TimedOut: out.TimedOut}
		if said := out.Opinion; said != nil && out.OK() {
			o = govern.Opinion{Decision: govern.Decision(said.Decision), Note: said.Note, Why: said.Why, Criteria: said.Criteria}
		}
		r.emit(ctx, loop.Event{Type: loop.ProposalReviewed, Role: spec.RoleReviewer, Reason: string(o.Decision), Note: orElse(o.Note, o.Why), Proposal: &p, Criteria: o.Criteria, EvidenceIDs: evidenceOf(out)})
		if o.Decision != govern.Undecided || o.TimedOut || n > r.spec.Limits.Reworks {
			return o, nil
		}
		why = "the answer was no decision: " + o.Why
	}
}

// askDiff is the diff gate: a person approves or rejects exactly this proposal, and has it applied at
// once where they wish that. A base that has moved makes another one, which wants another look.
func (r *run) askDiff(ctx workflow.Context) (approved bool, by, note string, err error) {
	for what := "the change as a whole"; ; what = "the change again, on top of what its base has become, where it was not measured" {
		p := r.state.Proposal
		a, err := r.hold(ctx, loop.Gate{
			Kind: loop.GateDiff, Hash: p.Hash,
			Summary: fmt.Sprintf("approve %s: %d files, +%d -%d, on %s", what, p.Files, p.Insertions, p.Deletions, r.state.Branch),
		})
		if err != nil {
			return false, "", "", err
		}
		if a.Message == "reject" {
			r.rejected(ctx, a.By, a.Note)
			return false, a.By, a.Note, nil
		}
		r.approved(ctx, a.By, a.Note)
		if a.Apply == "" {
			return true, a.By, a.Note, nil
		}
		if again, err := r.applyNow(ctx, a); err != nil || !again {
			return true, a.By, a.Note, err
		}
	}
}

// applyNow applies the proposal that was approved with the wish for that. It reports whether there is
// another one to look at, since the base has moved. What stands in the way is a warning: the
// proposal stays approved, and can be applied at any time.
func (r *run) applyNow(ctx workflow.Context, a loop.Answer) (again bool, err error) {
	// The ledger has the approval before anything of the user's changes.
	if err := r.record(ctx, "the proposal is approved", false); err != nil {
		return false, err
	}
	p := r.state.Proposal
	in := act.Apply{Loop: r.state.Loop, Hash: p.Hash, How: a.Apply, By: a.By, Time: workflow.Now(ctx).UTC(), Proposal: p, Ledger: r.state.Ledger}
	var out act.Applied
	err = r.execute(ctx, act.ApplyName, "apply "+short(p.Hash)+" ("+a.Apply+")", func() any {
		in.Ledger = r.state.Ledger
		return in
	}, &out)
	var refused *temporal.ApplicationError
	switch {
	case errors.As(err, &refused):
		what, advice, _ := strings.Cut(refused.Message(), "\n")
		r.emit(ctx, loop.Event{Type: loop.Warned, ErrorCode: refused.Type(), Reason: "the proposal is approved but not applied: " + what, Recovery: advice})
		return false, nil
	case err != nil:
		return false, err
	case out.Moved != nil:
		r.emit(ctx, loop.Event{
			Type: loop.ProposalMade, Proposal: out.Moved, Head: out.Moved.Head,
			Reason: out.Branch + " has moved since the proposal " + short(p.Hash) + " was made",
		})
		return true, nil
	}
	r.emit(ctx, loop.Event{Type: loop.ProposalApplied, By: a.By, How: a.Apply, Proposal: out.Proposal, Commit: out.Commit})
	return false, nil
}

func (r *run) approved(ctx workflow.Context, by, note string) {
	r.emit(ctx, loop.Event{Type: loop.ProposalApproved, By: by, Note: note, Proposal: decided(*r.state.Proposal, govern.Approved, by)})
}

func (r *run) rejected(ctx workflow.Context, by, note string) {
	r.emit(ctx, loop.Event{Type: loop.ProposalRejected, By: by, Note: note, Proposal: decided(*r.state.Proposal, govern.Rejected, by)})
}

// decided is a proposal after somebody's word on it.
func decided(p loop.Proposal, state, by string) *loop.Proposal {
	p.State, p.By = state, orElse(by, "a person")
	return &p
}
