package loop

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"go.temporal.io/sdk/workflow"

	"pawl/internal/fault"
	"pawl/internal/lib/list"
	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/internal/loop/rules"
	"pawl/internal/metric"
	"pawl/internal/spec"
	"pawl/internal/spec/phase"
	"pawl/workflows/placement"
)

// errApart ends the work on one candidate when the loop has to see to something that concerns all of them: a pause, a
// budget, a provider that refuses work, a host that may be gone. The loop does so once all candidates rest. Then the
// unfinished ones continue with the step that was under way.
var errApart = errors.New("all candidates come to rest")

// apart says why work on a candidate stopped, and how far its idea is.
type apart struct {
	exhausted *rules.End
	call      *api.Call // the refused call, and its answer
	refused   api.Outcome
	untaken   bool
	setup     *fault.Error // setup.command failed, on the candidate's desk
	idea      rules.Move
	held      phase.Phase // the phase at whose breakpoint it stopped
	passed    phase.Phase // the last phase at which it was held
}

// aside is a run for one candidate: it has an iteration of its own, and shares everything else with the loop's run.
func (l *improve) aside(c loop.Candidate) *improve {
	return &improve{claimed: l.claimed, run: &run{
		Journal: l.Journal, keeper: l.keeper, host: l.host, kind: l.kind, spec: l.spec, machine: l.machine, rules: l.rules, reserve: l.reserve,
		iteration: iteration{reworked: map[string]int{}, phaseMs: map[string]int64{}, idea: c.Idea}, candidate: &c,
	}}
}

// ahead makes candidates, as many at once as the spec wants, and tries them (limits.parallel). The candidates are in
// the state, so a run that was cut off continues where it was.
func (l *improve) ahead(ctx workflow.Context) (bool, error) {
	begun := l.beginCandidates(ctx)
	made, err := l.makeCandidates(ctx)
	if err != nil {
		return true, err
	}
	tried, err := l.tryCandidates(ctx)
	return begun || made || tried, err
}

// beginCandidates begins as many candidates as should exist at once, with the queued ideas. Their numbers are those of
// the next iterations, whatever the order in which these take them.
func (l *improve) beginCandidates(ctx workflow.Context) bool {
	s := l.State()
	n := rules.Candidates(l.spec.AtOnce(), s)
	for i := range n {
		c := loop.Candidate{N: s.Iteration + i + 1, Desk: i + 1, Of: n, Base: s.Head}
		if queued := l.State().Ideas; len(queued) > 0 {
			c.Idea = queued[0]
			l.Emit(ctx, loop.Event{Type: loop.IdeaTaken, Idea: c.Idea})
		}
		l.Emit(ctx, loop.Event{Type: loop.CandidateBegun, Idea: c.Idea, Candidate: &c})
	}
	return n > 0
}

// makeCandidates lets the agents make all candidates that are not made, at once, and reports whether there were any.
func (l *improve) makeCandidates(ctx workflow.Context) (bool, error) {
	var left []*improve
	for _, c := range l.State().Candidates {
		if !c.Made {
			side := l.aside(c)
			side.apart = &apart{idea: rules.Move{Do: rules.Enter, To: phase.Ideate}}
			left = append(left, side)
		}
	}
	anyLeft := len(left) > 0
	for refusals := 0; len(left) > 0; {
		may, err := l.mayWork(ctx)
		if err != nil || !may {
			return anyLeft, err
		}
		rest, err := l.atWork(ctx, left)
		if err != nil {
			return anyLeft, err
		}
		if len(rest) < len(left) {
			refusals, l.setups = 0, setups{passed: true}
		}
		left = rest
		if err := l.atRest(ctx, left, &refusals); err != nil {
			return anyLeft, err
		}
	}
	return anyLeft, nil
}

// mayWork waits while the loop is paused, and checks the budgets; if one is used up, it drops the unmade candidates, and
// returns false. Then the ledger has all pending events: no agent starts before that (A3).
func (l *improve) mayWork(ctx workflow.Context) (bool, error) {
	for {
		if err := l.waitIfPaused(ctx, loop.PauseIteration); err != nil {
			return false, err
		}
		spent := rules.StepExhausted(l.free(l.State()), true)
		if spent == "" {
			l.publishSoon(ctx)
			return true, l.recordMade(ctx, fmt.Sprintf("%d candidates", len(l.State().Candidates)))
		}
		if rules.Drops(l.free(l.State()), l.spec.Limits.OnExhausted) {
			l.dropUnmade(ctx, fmt.Sprintf("the budget %s is used up", spent))
			return false, nil
		}
		if err := l.exhausted(ctx, rules.BudgetEndOf(l.State(), spent)); err != nil {
			return false, err
		}
	}
}

// dropUnmade gives up the candidates that are not made.
func (l *improve) dropUnmade(ctx workflow.Context, cause string) {
	for _, c := range l.State().Candidates {
		if !c.Made {
			l.Emit(ctx, loop.Event{Type: loop.CandidateDropped, Idea: c.Idea, Reason: cause, Candidate: &loop.Candidate{N: c.N}})
		}
	}
}

// recordMade appends what is pending while agents are at work.
func (l *improve) recordMade(ctx workflow.Context, summary string) error {
	return l.append(ctx, api.RecordName, summary, nil, func(e api.Entry) any {
		return api.Record{Entry: e, Working: true}
	})
}

// atWork runs an agent for each candidate that is not made, and returns when all have stopped. A finished candidate is
// recorded at once. An error of one candidate ends the others.
func (l *improve) atWork(ctx workflow.Context, sides []*improve) (rest []*improve, err error) {
	working, made := len(sides), 0
	sidesCtx, cancel := workflow.WithCancel(ctx)
	defer cancel()
	fail := func(cause error) {
		if err == nil {
			err = cause
			cancel()
		}
	}
	for _, side := range sides {
		workflow.Go(sidesCtx, func(ctx workflow.Context) {
			defer func() { working-- }()
			switch failed := side.make(ctx); {
			case failed == nil:
				made++
			case !errors.Is(failed, errApart):
				fail(failed)
			}
		})
	}
	for waiting := workflowWaiting(ctx); working > 0 || made > 0; {
		if failed := workflow.Await(waiting, func() bool { return working == 0 || made > 0 }); failed != nil {
			return nil, failed
		}
		if made > 0 {
			n := made
			made = 0
			if failed := l.recordMade(ctx, fmt.Sprintf("candidates made: %d", n)); failed != nil {
				fail(failed)
			}
		}
	}
	return list.Filter(sides, func(side *improve) bool { return !side.candidate.Made }), err
}

// atRest handles whatever the candidates stopped for.
func (l *improve) atRest(ctx workflow.Context, sides []*improve, refusals *int) error {
	stopped, held := l.collectStops(sides)
	if stopped.untaken {
		_, err := l.host.MoveIfGone(ctx)
		isLost := errors.Is(err, placement.ErrLost) || errors.Is(err, placement.ErrRecorded)
		if err != nil && !isLost {
			return err
		}
	}
	if stopped.exhausted != nil && !rules.Drops(l.free(l.State()), l.spec.Limits.OnExhausted) {
		return l.exhausted(ctx, *stopped.exhausted)
	}
	if stopped.setup != nil {
		if err := l.afterSetup(ctx, stopped.setup, true); err != nil {
			return err
		}
	}
	if stopped.call != nil {
		*refusals++
		if err := l.refused(ctx, stopped.call, stopped.refused, refusals); err != nil {
			return err
		}
	}
	if stopped.held == phase.None {
		return nil
	}
	return l.waitAtBreakpoint(ctx, stopped.held, held[stopped.held])
}

// collectStops returns for what the candidates stopped, taken together, and which of them a breakpoint holds. Of several
// refused calls the one counts that is refused longest.
func (l *improve) collectStops(sides []*improve) (stopped apart, held map[phase.Phase][]*improve) {
	held = map[phase.Phase][]*improve{}
	for _, side := range sides {
		reasons := *side.apart
		if reasons.exhausted != nil || reasons.call != nil { // the host has the result of this call, and another one is made
			side.repeats++
		}
		*side.apart = apart{idea: reasons.idea, passed: reasons.passed}

		held[reasons.held] = append(held[reasons.held], side)
		stopped.held = cmp.Or(stopped.held, reasons.held)
		stopped.untaken = stopped.untaken || reasons.untaken
		stopped.exhausted = cmp.Or(stopped.exhausted, reasons.exhausted)
		stopped.setup = cmp.Or(stopped.setup, reasons.setup)
		if reasons.call == nil {
			continue
		}
		if stopped.call == nil || reasons.refused.Refused.Until.After(stopped.refused.Refused.Until) {
			stopped.call, stopped.refused = reasons.call, reasons.refused
		}
	}
	return stopped, held
}

// waitAtBreakpoint waits at a breakpoint for all candidates that it holds.
func (l *improve) waitAtBreakpoint(ctx workflow.Context, held phase.Phase, sides []*improve) error {
	summary := fmt.Sprintf("breakpoint at %s (%s)", held, metric.Counted(len(sides), "candidate"))
	_, err := l.wait(ctx, loop.Gate{Kind: loop.GateBreakpoint, Summary: summary})
	for _, side := range sides {
		side.apart.passed = held
	}
	return err
}

// holdAt ends the work on a candidate at a breakpoint, once: the loop waits there once all candidates rest.
func (l *improve) holdAt(p phase.Phase) error {
	if l.apart.passed == p || !slices.Contains(l.spec.Breakpoints, string(p)) {
		return nil
	}
	l.apart.held = p
	return errApart
}

// make makes a candidate on its desk: an idea if one is asked for, then the change, then a commit that is on no branch.
// A change that can't be committed stays on the desk, for the iteration that takes the candidate.
func (l *improve) make(ctx workflow.Context) error {
	c, iter := l.candidate, &l.iteration
	if c.Idea == "" && l.spec.Agent.OffersIdeas() {
		iter.phase = phase.Ideate
		if l.apart.passed == phase.None {
			if err := l.holdAt(iter.phase); err != nil {
				return err
			}
		}
		for m := &l.apart.idea; m.To != phase.Modify; {
			iter.phaseSpent, iter.why = 0, m.Reason
			next, err := l.ideate(ctx, *m)
			if err != nil {
				return err
			}
			if *m = next; m.Do == rules.Finish {
				return l.made(ctx, iter.description, api.Committed{})
			}
		}
		c.Idea = iter.idea
		l.Emit(ctx, loop.Event{Type: loop.CandidateBegun, Idea: c.Idea, Candidate: new(*l.candidate)})
	}
	if err := l.holdAt(phase.Modify); err != nil {
		return err
	}
	iter.phase, iter.phaseSpent, iter.why, c.Base = phase.Modify, 0, "", l.State().Head
	m, err := l.modify(ctx, rules.Move{Do: rules.Enter, To: phase.Modify})
	if err != nil {
		return err
	}
	if m.Do == rules.Finish {
		return l.made(ctx, cmp.Or(iter.note, iter.description), api.Committed{})
	}
	input := api.Commit{
		Ref: l.host.Opened.Ref, Ledger: l.State().Ledger, Head: c.Base, Iteration: c.N, Attempt: 1, Desk: c.Desk, Aside: true,
		Description: iter.description, OneChange: l.spec.Atomic() == spec.Rework, Leftovers: l.State().Leftovers, Time: workflow.Now(ctx).UTC(),
	}
	var out api.Committed
	err = l.host.Complete(ctx, api.CommitName, l.summary("commit %q, on no branch", loop.Clip(input.Description, 80)), input, 0, &out)
	if _, late := placement.Untaken(err); late {
		l.apart.untaken = true
		return errApart
	}
	if err != nil {
		return err
	}
	l.tellLeftOut(ctx, out)
	if leftOutText := leftOut(out); out.NoChange && leftOutText != "" {
		iter.description = leftOutText + ": " + iter.description
	}
	return l.made(ctx, "", out)
}

// made records the result: why the agent failed, or what was committed.
func (l *improve) made(ctx workflow.Context, failed string, out api.Committed) error {
	c, iter := l.candidate, l.iteration
	c.Made, c.Failed, c.Description, c.Called, c.Withheld = true, failed, iter.description, iter.called, iter.withheld
	c.PhaseMs, c.Evidence, c.Agents = maps.Clone(iter.phaseMs), iter.evidence, iter.agents
	if c.Commit = out.Commit; c.Commit != "" {
		c.Tree = out.Tree
	} else {
		c.Lies = failed == "" && !out.NoChange
	}
	l.Emit(ctx, loop.Event{Type: loop.CandidateMade, Phase: iter.phase, Idea: c.Idea, Reason: failed, Commit: c.Commit, Candidate: new(*l.candidate)})
	return nil
}

// takeNext hands the next waiting candidate to the current iteration, and reports whether there is one.
func (l *improve) takeNext(ctx workflow.Context) bool {
	s := l.State()
	if s.Taken != nil {
		return true
	}
	next := rules.NextCandidate(l.spec.Verify.Direction, s.Candidates)
	if next != nil {
		l.Emit(ctx, loop.Event{Type: loop.CandidateTaken, Idea: next.Idea, Candidate: next})
	}
	return next != nil
}

// takeUp brings a candidate's change onto the desk, on top of the head. If they conflict, its idea is queued again.
func (l *improve) takeUp(ctx workflow.Context, c loop.Candidate) (rules.Move, error) {
	iter := &l.iteration
	*iter = iteration{
		reworked: iter.reworked, phaseMs: iter.phaseMs, phaseSpent: iter.phaseSpent, stopAsked: iter.stopAsked,
		idea: c.Idea, description: c.Description, evidence: c.Evidence, called: c.Called, withheld: c.Withheld, agents: c.Agents,
	}
	maps.Copy(iter.phaseMs, c.PhaseMs)
	if c.Failed != c.Description {
		iter.note = c.Failed
	}
	if c.Failed == "" && !c.Lies {
		s, now := l.State(), workflow.Now(ctx).UTC()
		if c.Base == s.Root() {
			c.Base = s.Head // which has its tree
		}
		if c.Commit == "" { // nothing was changed
			c.Commit, c.Base = s.Head, s.Head
		}
		var out api.Taken
		summary := l.summary("take the candidate %d: %s", c.N, loop.Clip(c.Description, 80))
		err := l.setUp(ctx, func() error {
			return l.host.Execute(ctx, api.TakeName, summary, func() any {
				return api.Take{Ref: l.host.Opened.Ref, Iteration: s.Iteration, Head: s.Head, Base: c.Base, Commit: c.Commit, Time: now}
			}, &out)
		})
		if err != nil {
			return rules.Move{}, err
		}
		if out.Conflict != "" {
			iter.note = "it and what was kept since both change " + out.Conflict
			l.Emit(ctx, loop.Event{Type: loop.CandidateConflicted, Idea: cmp.Or(c.Idea, c.Description), Reason: out.Conflict, Candidate: &loop.Candidate{N: c.N}})
			return l.law().AfterConflict(), nil
		}
		l.host.Uprooted = false // the desk was made anew with that
	}
	return l.law().AfterWriter(c.Failed != ""), nil
}

// liesOn returns the desk that has the iteration's change: a candidate's that could not be committed, else 0.
func (r *run) liesOn() int {
	if c := r.State().Taken; c != nil && c.Lies {
		return c.Desk
	}
	return 0
}
