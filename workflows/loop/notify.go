package loop

import (
	"go.temporal.io/sdk/workflow"

	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/internal/loop/rules"
	"pawl/internal/steward/task"
	"pawl/workflows/display"
)

// notify notifies the people whom the spec names. A failure is only a warning and never delays the loop. Nobody is
// notified about a pause, because a person asked for it.
func (r *run) notify(ctx workflow.Context, event loop.Type, reason string) {
	if event == loop.GateOpened {
		r.report(ctx, task.ChildAsks)
	}
	s := r.State()
	if s.Gate != nil && s.Gate.Kind == loop.GatePause {
		return
	}
	notice := display.About(api.Notice{
		Loop: s.Loop, Kind: s.Kind, Event: event, Status: s.Status, Reason: loop.Clip(reason, 1000), Time: workflow.Now(ctx).UTC(),
	}, s.Gate, func(g loop.Gate) []rules.Way { return rules.Ways(s.Loop, g, s.Budget) })
	r.notifier.Tell(ctx, r.host.Queue(), r.host.Opened.Ref, r.spec.Notify, notice, func(ctx workflow.Context, warning string) {
		_ = r.Turn(ctx, func() { r.Emit(ctx, loop.Event{Type: loop.Warned, Reason: warning}) })
	})
}

// notifyEnd notifies people about the end, and waits. Failures go into the ledger after the end, if that was recorded.
func (r *run) notifyEnd(ctx workflow.Context, end rules.End, recorded bool) {
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
