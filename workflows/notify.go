package workflows

import (
	"cmp"

	"go.temporal.io/sdk/workflow"

	"pawl/internal/act"
	"pawl/internal/govern"
	"pawl/internal/loop"
	"pawl/internal/spec"
	"pawl/internal/task"
	"pawl/workflows/notices"
)

// notify notifies the people whom the spec names. A failure is only a warning and never delays the loop. Nobody is
// notified about a pause, because a person asked for it.
func (r *run) notify(ctx workflow.Context, event loop.Type, reason string) {
	if event == loop.GateOpened {
		r.report(ctx, task.ChildAsks)
	}
	s := r.State()
	g := s.Gate
	if g != nil && g.Kind == loop.GatePause {
		return
	}
	var ways []govern.Way
	if g != nil {
		ways = govern.Ways(s.Loop, *g, s.Budget)
	}
	notice := notices.About(act.Notice{
		Loop: s.Loop, Kind: s.Kind, Event: event, Status: s.Status, Reason: loop.Clip(reason, 1000), Time: workflow.Now(ctx).UTC(),
	}, g, ways)
	r.notifier.Tell(ctx, r.host.Queue(), r.host.Opened.Ref, r.spec.Notify, notice, func(ctx workflow.Context, warning string) {
		_ = r.Turn(ctx, func() { r.Emit(ctx, loop.Event{Type: loop.Warned, Reason: warning}) })
	})
}

// notifyEnd notifies people about the end, and waits. Failures go into the ledger after the end, if that was recorded.
func (r *run) notifyEnd(ctx workflow.Context, end govern.End, recorded bool) {
	if len(r.spec.Notify) == 0 {
		return
	}
	r.notify(ctx, end.Event(r.State().Usage).Type, end.Reason)
	_ = workflow.Await(ctx, func() bool { return r.notifier.Quiet() })
	if len(r.Pending()) == 0 || !recorded {
		return
	}
	if err := r.record(ctx, "failed notifications", false); err != nil {
		workflow.GetLogger(ctx).Warn("failed notifications are not in the ledger", "error", err)
	}
}

// reports are the events that a loop still has to send to its steward, in order, without waiting for that.
type reports struct {
	unsent  []task.ChildEvent
	sending bool
	asked   *task.ChildGate // the open gate that the steward knows of
}

// quiet reports whether the steward was told everything.
func (c *reports) quiet() bool { return !c.sending }

// report tells the loop's steward, if it has one, where the loop stands. A steward that is gone, or accepts no more, is
// not told: it reads its children when it continues.
func (r *run) report(ctx workflow.Context, event string) {
	steward := cmp.Or(r.State().Steward, r.spec.Session[spec.SessionSteward])
	if steward == "" {
		return
	}
	e := govern.Child(r.State(), event)
	switch c := &r.reports; event {
	case task.ChildAsks:
		c.asked = e.Gate
	case task.ChildAnswered:
		if e.Gate, c.asked = c.asked, nil; e.Gate == nil { // somebody answered before the report that the gate is open
			return
		}
	}
	r.reports.unsent = append(r.reports.unsent, e)
	if r.reports.sending {
		return
	}
	r.reports.sending = true
	ctx, _ = workflow.NewDisconnectedContext(ctx) // the end is reported even after Cancel
	workflow.Go(ctx, func(ctx workflow.Context) {
		defer func() { r.reports.sending = false }()
		for len(r.reports.unsent) > 0 {
			next := r.reports.unsent[0]
			r.reports.unsent = r.reports.unsent[1:]
			if err := workflow.SignalExternalWorkflow(ctx, steward, "", task.ChildSignal, next).Get(ctx, nil); err != nil {
				workflow.GetLogger(ctx).Warn("the steward was not told", "steward", steward, "event", next.Event, "error", err)
			}
		}
	})
}
