package loop

import (
	"go.temporal.io/sdk/workflow"

	"pawl/internal/loop"
	"pawl/internal/loop/rules"
	"pawl/internal/spec"
	"pawl/internal/spec/phase"
)

// protocol is what makes a kind of loop: the work of its phases, and its rules. Everything else is shared.
type protocol interface {
	// prepare does everything between opening the loop and the approval of the contract. It may be called again after
	// a continue-as-new, and does only what is missing.
	prepare(workflow.Context) error
	// decisions are those of its rules that every kind has.
	decisions() loopRules
	// again returns the phase in which another run's iteration, recorded up to a state, continues; false if it can't.
	again(loop.State) (phase.Phase, bool)
	// ahead prepares several iterations at once, if its kind does that, and reports whether there was one to prepare.
	ahead(workflow.Context) (bool, error)
	// begin readies the protocol for an iteration that has just begun, or that continues: since are its events so far.
	begin(events []loop.Event)
	// leaving is called before a move to another phase.
	leaving(workflow.Context, rules.Move) error
	// work returns the work for a move: that of a phase, or of a part of one.
	work(rules.Move) work
	// between does the work after an iteration and before the next one.
	between(workflow.Context) error
	// reproduce judges the head of a loop that is over from scratch, if that is still due. The loop ends if it fails.
	reproduce(workflow.Context) error
	// claim measures the result of a loop that is over, if its kind does.
	claim(workflow.Context) error
}

// work does the work of a move, which is its argument, and returns what the rules make of its result.
type work func(workflow.Context, rules.Move) (rules.Move, error)

// main is the main line of every loop. It returns its end as a *stopped, or continues as new.
func (r *run) main(ctx workflow.Context, p protocol) error {
	if !r.host.IsOpen() { // not continued as new
		if err := r.enter(ctx, r.machine.Phases()[0]); err != nil {
			return err
		}
		if err := r.open(ctx, p); err != nil {
			return err
		}
	}
	if err := p.prepare(ctx); err != nil {
		return err
	}
	if r.State().Contract.ApprovedAt == nil {
		if err := r.approveContract(ctx); err != nil {
			return err
		}
	}
	if midway := r.midway; midway != phase.None {
		r.midway = phase.None
		r.iterationSince(r.since)
		p.begin(r.since)
		r.since = nil
		if err := r.carryOut(ctx, midway, p); err != nil {
			return err
		}
	}
	for {
		next := p.decisions().Before(r.State())
		if next.Do == rules.Stop {
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
	}
}

// conclude ends a loop that is over, unless a person extends the budget that it used up. It first judges the head from
// scratch, measures the claim, and makes a proposal of the result of a completed loop.
func (r *run) conclude(ctx workflow.Context, end rules.End, p protocol) error {
	if end.Budget != "" && r.spec.Limits.OnExhausted == spec.Ask {
		return r.exhausted(ctx, end)
	}
	if err := p.reproduce(ctx); err != nil {
		return err
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
		if err := r.propose(ctx, p.decisions()); err != nil {
			return err
		}
	}
	return stop(end)
}
