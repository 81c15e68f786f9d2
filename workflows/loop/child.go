package loop

import (
	"cmp"

	"go.temporal.io/sdk/workflow"

	"pawl/internal/loop/rules"
	"pawl/internal/spec"
	"pawl/internal/steward/task"
)

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
	e := rules.Child(r.State(), event)
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
