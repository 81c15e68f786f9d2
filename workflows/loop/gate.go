package loop

import (
	"slices"

	"go.temporal.io/sdk/workflow"

	"pawl/internal/loop"
	"pawl/internal/loop/rules"
	"pawl/internal/steward/task"
)

// wait opens a gate and waits until a person answers it, the only way of waiting for people. A halt ends the loop.
func (r *run) wait(ctx workflow.Context, g loop.Gate) (loop.Answer, error) {
	if g.Pauses() {
		paused := loop.Event{Type: loop.AutonomyPaused, Reason: string(g.Kind)}
		if g.Kind == loop.GatePause {
			paused.By = r.State().PausedBy
		}
		r.Emit(ctx, paused)
	}
	a, answered, err := r.keeper.Wait(ctx, g)
	if err != nil {
		return loop.Answer{}, err
	}
	if !answered {
		return loop.Answer{}, stop(rules.Interrupted.Because(r.State().HaltRequested))
	}
	if g.Pauses() {
		r.Emit(ctx, loop.Event{Type: loop.AutonomyResumed, By: a.By})
	}
	r.report(ctx, task.ChildAnswered)
	r.publishSoon(ctx)
	return a, nil
}

// waitIfPaused waits if a requested pause begins here or sooner, and ends the loop if somebody asked for that.
func (r *run) waitIfPaused(ctx workflow.Context, pausePoint string) error {
	s := r.State()
	if r.apart != nil && (s.HaltRequested != "" || rules.PauseDue(s, pausePoint)) {
		return errApart
	}
	if s.HaltRequested != "" {
		return stop(rules.Interrupted.Because(s.HaltRequested))
	}
	if !rules.PauseDue(s, pausePoint) {
		return nil
	}
	_, err := r.wait(ctx, loop.Gate{Kind: loop.GatePause, Summary: "paused at " + string(s.Phase)})
	return err
}

// parkable reports whether everything in the trees is in git, so that a loop that waits for long may remove them. A
// change that waits for a person's answer or fix is on the desk only.
func (r *run) parkable() bool {
	s := r.State()
	onDesk := s.Gate != nil && (s.Gate.Kind == loop.GateGuard || s.Gate.Kind == loop.GateNewFiles)
	uncommitted := slices.ContainsFunc(s.Candidates, func(c loop.Candidate) bool { return c.Lies })
	return !onDesk && !uncommitted && !r.machine.Row(s.Phase).OnDesk
}
