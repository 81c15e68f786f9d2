package loop

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.temporal.io/sdk/workflow"

	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/internal/loop/rules"
	"pawl/internal/spec"
)

// approveContract is the contract gate: autonomy starts only after it, and only if nothing else is missing (A1).
func (r *run) approveContract(ctx workflow.Context) error {
	if err := r.ready(); err != nil {
		return err
	}
	approver := rules.Approver(r.spec)
	if r.spec.Approvals.Plan != spec.Auto {
		noise := r.State().Noise
		if noise != "" {
			noise = " (" + noise + ")"
		}
		a, err := r.wait(ctx, loop.Gate{
			Kind:    loop.GateContract,
			Summary: fmt.Sprintf("approve the contract: %s%s", loop.Clip(r.spec.Goal, 200), noise),
			Hash:    r.host.Opened.Contract,
		})
		if err != nil {
			return err
		}
		if a.Message == loop.MessageReject {
			return stop(rules.Interrupted.Because("the contract was rejected by " + cmp.Or(a.By, "a person") + noteOf(a)))
		}
		approver = cmp.Or(a.By, "a person")
	}
	r.Emit(ctx, loop.Event{Type: loop.AutonomyStarted, By: approver})
	return r.record(ctx, "the loop begins", false)
}

// ready checks all preconditions of autonomy at once (A1).
func (r *run) ready() error {
	if missing := rules.Missing(r.State(), r.spec, r.host.IsOpen()); len(missing) > 0 {
		return notReady("the loop can't start without %s", strings.Join(missing, "; "))
	}
	return nil
}

// exhausted handles a used-up budget. The loop never continues in silence (A2): it ends, or it asks a person, whose
// extension is an amendment of the contract. It returns nil if there is more of the budget now.
func (r *run) exhausted(ctx workflow.Context, end rules.End) error {
	if r.apart != nil {
		r.apart.exhausted = &end
		return errApart
	}
	if r.spec.Limits.OnExhausted != spec.Ask {
		return stop(end)
	}
	r.Emit(ctx, loop.Event{Type: loop.BudgetExhausted, ExhaustedBudget: end.Budget})
	g := loop.Gate{
		Kind: loop.GateBudget, Budget: end.Budget,
		Summary: fmt.Sprintf("%s (%s): extend it, or reject and the loop ends", end.Reason, r.State().Budget.Spent(end.Budget)),
	}
	g.Hash = rules.AskHash(r.State().Contract, g, r.State().Budget)
	a, err := r.wait(ctx, g)
	if err != nil {
		return err
	}
	if a.Message == loop.MessageReject {
		end.Budget = "" // it is recorded already
		return stop(end.Because(end.Reason + ", and " + cmp.Or(a.By, "a person") + " did not extend it" + noteOf(a)))
	}
	return r.amended(ctx, a, r.State().Contract.Sealed)
}

// amend lets a person correct a command that is at fault. The amended contract has a new hash and is approved like the
// first. It reports whether it was approved.
func (r *run) amend(ctx workflow.Context, a loop.Answer) (bool, error) {
	next, err := r.spec.Amend(a.Amendment, slices.Concat(spec.Amendable, spec.Approvable))
	if err != nil {
		return false, err
	}
	var drawn api.Terms
	if err := r.host.Execute(ctx, api.AmendName, "the amended contract", func() any {
		return api.Amend{Ref: r.host.Opened.Ref, Base: r.State().Base, Spec: next}
	}, &drawn); err != nil {
		return false, err
	}
	answer, err := r.wait(ctx, loop.Gate{
		Kind:    loop.GateContract,
		Summary: fmt.Sprintf("approve the amended contract: %s", loop.Clip(string(a.Amendment), 300)),
		Hash:    drawn.Contract,
		Again:   rules.Repeated(r.State().Given, loop.MessageApprove, "", drawn.Contract) != nil,
	})
	if err != nil || answer.Message == loop.MessageReject {
		return false, err
	}
	answer.Amendment = a.Amendment
	return true, r.amended(ctx, answer, drawn.Sealed)
}

// amended puts an approved amendment in force.
func (r *run) amended(ctx workflow.Context, a loop.Answer, sealed []loop.Seal) error {
	drawn := rules.Draw(r.spec, r.State().Base, r.host.Opened.Onto, sealed)
	if r.State().Plan != nil {
		drawn.Plan = r.State().Plan.Hash
	}
	c, err := drawn.Amended(a.Amendment, sealed)
	if err != nil {
		return err
	}
	r.Emit(ctx, loop.Event{Type: loop.ContractAmended, By: a.By, Note: a.Note, Amendment: a.Amendment, Limits: rules.Limits(c.Spec), Contract: &loop.Contract{
		Hash: c.Hash(), Base: c.Base, Sealed: sealed, Tools: c.Tools, ApprovedBy: cmp.Or(a.By, "a person"), ApprovedAt: new(workflow.Now(ctx).UTC()),
	}})
	r.spec, r.host.Opened.Contract, r.host.Opened.Sealed = c.Spec, c.Hash(), sealed
	return r.record(ctx, "the contract is amended", false)
}

// denied asks a person about the tools that an agent was not allowed to use in a call, if the contract says so
// (`approvals.onDenied: ask`). It reports whether the call is made again because the contract now approves other tools.
func (r *run) denied(ctx workflow.Context, ask string) (retry bool, err error) {
	for {
		a, err := r.wait(ctx, loop.Gate{Kind: loop.GateQuestion, Summary: ask, Choices: []string{rules.GoOn, rules.HaltLoop}})
		switch {
		case err != nil:
			return false, err
		case a.Message == loop.MessageAnswer && a.Choice == rules.HaltLoop:
			return false, stop(rules.Interrupted.Because("halted by " + cmp.Or(a.By, "a person") + ": " + ask))
		case a.Message == loop.MessageAnswer:
			return false, nil
		}
		toolsBefore := r.spec.Approvals.Tools
		approved, err := r.amend(ctx, a)
		if err != nil {
			return false, err
		}
		if approved {
			return !slices.Equal(toolsBefore, r.spec.Approvals.Tools), nil
		}
	}
}
