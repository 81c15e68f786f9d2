package loop

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"pawl/internal/fault"
	"pawl/internal/fault/wire"
	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/internal/loop/rules"
	"pawl/internal/metric"
	"pawl/internal/spec"
)

// propose makes a proposal of a completed loop's result, and asks whoever the rules name to judge it (A7, E3).
func (r *run) propose(ctx workflow.Context, decisions loopRules) error {
	if err := r.makeProposal(ctx); err != nil || r.State().Proposal == nil {
		return err
	}
	m := decisions.AfterProposal()
	for asked := 1; m.Do == rules.AskReviewer; asked++ {
		o, err := r.opinion(ctx, asked, m.Reason)
		if err != nil {
			return err
		}
		m = decisions.AfterOpinion(asked, o)
		r.note(ctx, o, m)
	}
	if m.Do != rules.AskPerson {
		return nil
	}
	_, err := r.askDiff(ctx)
	return err
}

// note records a reviewer's decision on the proposal.
func (r *run) note(ctx workflow.Context, o rules.Opinion, m rules.Move) {
	if rejected := o.Decision == rules.SaysRejected; rejected || m.Approved {
		r.decided(ctx, !rejected, spec.RoleReviewer, o.Note)
	}
}

// decided records somebody's decision on the proposal.
func (r *run) decided(ctx workflow.Context, approved bool, approver, note string) {
	event, p := loop.ProposalApproved, *r.State().Proposal
	p.State, p.By = rules.Approved, cmp.Or(approver, "a person")
	if !approved {
		event, p.State = loop.ProposalRejected, rules.Rejected
	}
	r.Emit(ctx, loop.Event{Type: event, By: approver, Note: note, Proposal: &p})
}

// makeProposal makes the diff from base to head a proposal, unless it is one already.
func (r *run) makeProposal(ctx workflow.Context) error {
	s, base := r.State(), r.State().Footing()
	if s.Head == base || r.nothingKept() || s.Proposal != nil && s.Proposal.Head == s.Head {
		return nil
	}
	return r.append(ctx, api.ProposeName, "the proposal: "+short(base)+" to "+short(s.Head), []loop.Event{{Type: loop.ProposalMade}}, func(e api.Entry) any {
		return api.Propose{Entry: e, Base: base, Head: r.State().Head, Anew: r.State().Moved != ""}
	})
}

// opinion asks the reviewer role once, for the n-th time; why says why the previous answer was no decision.
func (r *run) opinion(ctx workflow.Context, n int, cause string) (rules.Opinion, error) {
	state := r.State()
	p := *state.Proposal
	if len(r.eligible(spec.RoleReviewer)) == 0 { // after an amendment
		cause := "no reviewer is of another vendor than " + strings.Join(state.Writers, ", ") + ", whose models have written"
		return rules.Opinion{Failed: cause, Why: cause}, nil
	}
	c := r.newCall(spec.RoleReviewer, string(state.Phase), state.Attempt)
	c.Repair, c.Evidence = "", ""
	if cause != "" {
		c.Repair = "the answer was no decision: " + cause
	}
	c.Key.Name, c.Attempt, c.Proposal = fmt.Sprintf("%s-%s-%d", spec.RoleReviewer, p.Hash[:12], n), n, &p
	r.inTime(&c.Step)
	out, err := r.callAgent(ctx, c)
	if err != nil {
		return rules.Opinion{}, err
	}
	o := rules.Opinion{Failed: agentFailure(out), Why: cmp.Or(agentFailure(out), "it said nothing"), TimedOut: out.TimedOut}
	if said := out.Opinion; said != nil && out.OK() {
		o = rules.Opinion{Decision: rules.Decision(said.Decision), Note: said.Note, Why: said.Why, Criteria: said.Criteria}
	}
	r.Emit(ctx, loop.Event{Type: loop.ProposalReviewed, Role: spec.RoleReviewer, Reason: string(o.Decision), Note: cmp.Or(o.Note, o.Why), Proposal: &p, Criteria: o.Criteria, EvidenceIDs: evidenceOf(out.Outcome)})
	return o, nil
}

// askDiff is the diff gate: a person approves or rejects exactly this proposal, and may have it applied at once. If the
// base has moved, there is a new proposal, which needs a new review.
func (r *run) askDiff(ctx workflow.Context) (loop.Answer, error) {
	for subject := "the change as a whole"; ; subject = "the same change on top of the new base, where it was not measured" {
		p := r.State().Proposal
		gate := loop.Gate{
			Kind: loop.GateDiff, Hash: p.Hash,
			Summary: fmt.Sprintf("approve %s: %s, +%d -%d, on %s", subject, metric.Counted(p.Files, "file"), p.Insertions, p.Deletions, r.State().Branch),
		}
		gate.Points = rules.MarkedPoints(r.State())
		if len(gate.Points) > 0 {
			gate.Summary += " " + strings.Join(gate.Points, "; ")
		}
		a, err := r.wait(ctx, gate)
		if err != nil {
			return a, err
		}
		r.decided(ctx, a.Message != loop.MessageReject, a.By, a.Note)
		if a.Apply == "" { // only an approval has it
			return a, nil
		}
		if retry, err := r.applyNow(ctx, a); err != nil || !retry {
			return a, err
		}
	}
}

// applyNow applies a proposal that was approved with apply. It reports whether there is another proposal to review,
// since the base has moved. An obstacle is a warning: the proposal stays approved, and can be applied at any time.
func (r *run) applyNow(ctx workflow.Context, a loop.Answer) (retry bool, err error) {
	// The ledger has the approval before anything in the user's repository changes.
	if err := r.record(ctx, "the proposal is approved", false); err != nil {
		return false, err
	}
	p := r.State().Proposal
	input := api.Apply{Loop: r.State().Loop, Hash: p.Hash, How: a.Apply, By: a.By, Time: workflow.Now(ctx).UTC()}
	var out api.Applied
	err = r.host.Execute(ctx, api.ApplyName, "apply "+short(p.Hash)+" ("+a.Apply+")", func() any {
		input.Running = &api.Running{Proposal: *p, Ledger: r.State().Ledger}
		return input
	}, &out)
	refused := wire.Decode(err)
	var failed *temporal.ApplicationError
	if refused == nil && errors.As(err, &failed) { // the machine's fault, after all its retries
		refused = fault.New(fault.InfrastructureError, "%s", failed.Message())
	}
	switch {
	case refused != nil:
		r.Emit(ctx, loop.Event{
			Type: loop.Warned, ErrorCode: string(refused.Code), Reason: "the proposal is approved but not applied: " + refused.What, Recovery: refused.Advice(),
		})
		return false, nil
	case err != nil:
		return false, err
	case out.Moved != nil:
		r.Emit(ctx, loop.Event{
			Type: loop.ProposalMade, Proposal: out.Moved, Head: out.Moved.Head,
			Reason: out.MovedReason(short(p.Hash)), Rewritten: out.Rewritten,
		})
		return true, nil
	}
	r.Emit(ctx, loop.Event{Type: loop.ProposalApplied, By: a.By, How: a.Apply, Proposal: out.Proposal, Commit: out.Commit})
	return false, nil
}
