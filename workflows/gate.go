package workflows

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	"pawl/internal/act"
	"pawl/internal/govern"
	"pawl/internal/loop"
)

// hold opens a gate and waits until a person answers it: the one way in which a loop waits for
// anybody. A halt ends the waiting and the loop. Nobody answering in time is no answer: it is
// told again and goes on waiting.
func (r *run) hold(ctx workflow.Context, g loop.Gate) (loop.Answer, error) {
	g.ID = fmt.Sprintf("%s-%d", g.Kind, r.state.Seq+1)
	g.OpenedAt, g.Answers = workflow.Now(ctx).UTC(), govern.Answers(g.Kind)
	pause := g.Kind == loop.GatePause || g.Kind == loop.GateBreakpoint
	if pause {
		r.emit(ctx, loop.Event{Type: loop.AutonomyPaused, Reason: string(g.Kind)})
	}
	r.emit(ctx, loop.Event{Type: loop.GateOpened, Gate: &g, Reason: g.Summary})
	if err := r.record(ctx, "gate "+g.ID+": "+g.Summary, false); err != nil {
		return loop.Answer{}, err
	}
	if r.waitsAt(g.ID) {
		r.tell(ctx, loop.GateOpened, g.Summary)
	}
	if err := r.awaitAnswer(ctx, g.ID); err != nil {
		return loop.Answer{}, err
	}
	if r.state.HaltRequested != "" {
		return loop.Answer{}, stop(govern.Interrupted.Because(r.state.HaltRequested))
	}
	if pause {
		r.emit(ctx, loop.Event{Type: loop.AutonomyResumed, By: r.state.Answered.By})
	}
	r.keepUp(ctx)
	return *r.state.Answered, nil
}

// awaitAnswer waits for the gate to close, on a durable timer that tells somebody again.
func (r *run) awaitAnswer(ctx workflow.Context, id string) error {
	open := func() bool { return r.waitsAt(id) }
	for open() {
		timerCtx, stop := workflow.WithCancel(ctx)
		timer := workflow.NewTimerWithOptions(timerCtx, r.escalateAfter(), workflow.TimerOptions{Summary: "waiting for an answer to " + id})
		err := workflow.Await(ctx, func() bool { return !open() || timer.IsReady() })
		stop()
		if err != nil {
			return err
		}
		if open() {
			reason := "nobody answered for " + r.escalateAfter().String()
			r.emit(ctx, loop.Event{Type: loop.GateEscalated, Gate: r.state.Gate, Reason: reason})
			if err := r.record(ctx, "nobody answered "+id+" yet", r.parkable()); err != nil {
				return err
			}
			if open() {
				r.tell(ctx, loop.GateEscalated, reason)
			}
		}
	}
	return nil
}

// waitsAt reports whether the gate is open and the loop is not being ended.
func (r *run) waitsAt(id string) bool {
	return r.state.Gate != nil && r.state.Gate.ID == id && r.state.HaltRequested == ""
}

// parkable reports whether the trees hold nothing that is not in git: then a loop that waits long
// gives them up, and they are made again when it goes on. A change that a person is asked about, or
// is to mend, is on the desk and nowhere else.
func (r *run) parkable() bool {
	g := r.state.Gate
	onDesk := g != nil && (g.Kind == loop.GateGuard || g.Kind == loop.GateNewFiles)
	return !onDesk && !r.machine.Row(r.state.Phase).OnDesk
}

func (r *run) escalateAfter() time.Duration { return r.spec.Approvals.EscalateAfter.D() }

// holdIfPaused waits where somebody asked for a pause, and ends the loop where somebody asked
// for that.
func (r *run) holdIfPaused(ctx workflow.Context) error {
	if r.state.HaltRequested != "" {
		return stop(govern.Interrupted.Because(r.state.HaltRequested))
	}
	if !r.state.PauseRequested {
		return nil
	}
	_, err := r.hold(ctx, loop.Gate{Kind: loop.GatePause, Summary: "paused at " + string(r.state.Phase)})
	return err
}

// record appends what happened between iterations and shows it to the world. The loop's processes
// are given up meanwhile, with park its trees too.
func (r *run) record(ctx workflow.Context, summary string, park bool) error {
	r.publish(ctx)
	if r.opened.Ref == "" {
		return nil
	}
	_, err := r.append(ctx, act.RecordName, summary, nil, true, func(e act.Entry) any {
		return act.Settle{Entry: e, Idle: true, Park: park}
	})
	return err
}
