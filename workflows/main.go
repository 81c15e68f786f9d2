package workflows

import (
	"go.temporal.io/sdk/workflow"

	"pawl/internal/govern"
	"pawl/internal/loop"
	"pawl/internal/phase"
	"pawl/internal/spec"
)

// protocol is what makes a kind of loop: the work of its phases and the rules by which it goes on.
// Everything else is shared.
type protocol interface {
	// prepare does what comes before the contract is approved. It may be called again after a
	// continue-as-new, and does only what is missing.
	prepare(workflow.Context) error
	// before decides whether another iteration starts.
	before(loop.State) govern.Move
	// approval has the rules by which what a completed loop has made is approved.
	approval() approvalRules
	// again returns the phase in which an iteration goes on that another run has begun, and that the ledger has
	// up to a state; false where it can't.
	again(loop.State) (phase.Phase, bool)
	// ahead does what comes before the iterations that may follow now, where its kind makes several changes at once. It
	// reports whether there was something to do.
	ahead(workflow.Context) (bool, error)
	// begin readies the protocol for an iteration that has just begun.
	begin()
	// resume readies it for one that goes on, after begin: since are the iteration's events up to now.
	resume(since []loop.Event)
	// leaving is asked before a move to another phase.
	leaving(workflow.Context, govern.Move) error
	// work is what a move asks for: the work of a phase, or of what is done within one.
	work(govern.Move) work
	// between is what happens after an iteration and before the next.
	between(workflow.Context) error
	// claim measures what a loop that is over has come to, where its kind does.
	claim(workflow.Context) error
}

// work is done once, brings what came of it to the rules, and returns their move. It is given the move
// that led to it.
type work func(workflow.Context, govern.Move) (govern.Move, error)

// main is the main line of every loop. It returns how the loop ended as a *stopped, or continues as
// new.
func (r *run) main(ctx workflow.Context, p protocol) error {
	if err := p.prepare(ctx); err != nil {
		return err
	}
	if r.State().Contract.ApprovedAt == nil {
		if err := r.approveContract(ctx); err != nil {
			return err
		}
	}
	if at := r.midway; at != phase.None {
		r.midway = phase.None
		p.begin()
		p.resume(r.iterationSince(r.since))
		r.since = nil
		if err := r.carryOut(ctx, at, p); err != nil {
			return err
		}
		if err := p.between(ctx); err != nil {
			return err
		}
	}
	for {
		next := p.before(r.State())
		if next.Do == govern.Stop {
			if err := r.conclude(ctx, *next.End, p); err != nil {
				return err
			}
			continue // a person has extended the budget
		}
		if err := r.continueAsNewIfLong(ctx); err != nil {
			return err
		}
		if done, err := p.ahead(ctx); err != nil {
			return err
		} else if done {
			continue
		}
		if err := r.iterate(ctx, next.To, p); err != nil {
			return err
		}
		if err := p.between(ctx); err != nil {
			return err
		}
	}
}

// conclude ends the loop that is over, unless a person extends the budget that it used up. What it claims is
// measured first; what a completed loop has made is proposed.
func (r *run) conclude(ctx workflow.Context, end govern.End, p protocol) error {
	if end.Budget != "" && r.spec.Limits.OnExhausted == spec.Ask {
		return r.exhausted(ctx, end)
	}
	if end.Status == loop.Completed {
		if err := r.enter(ctx, phase.Complete); err != nil {
			return err
		}
	}
	if err := p.claim(ctx); err != nil {
		return err
	}
	if end.Status == loop.Completed {
		if err := r.propose(ctx, p.approval()); err != nil {
			return err
		}
	}
	return stop(end)
}
