package workflows

import (
	"errors"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"pawl/internal/act"
	"pawl/internal/govern"
	"pawl/internal/loop"
	"pawl/internal/spec"
	"pawl/internal/task"
)

// Telling somebody is bounded, since a loop that ends waits for it: an attempt has half a minute in
// the activity itself, and a host that is away has no more than all of it.
const (
	notifyAttempt = 40 * time.Second
	notifyBound   = 3 * time.Minute
)

var notifyRetries = &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumAttempts: 3}

// notifier tells people and waits for nobody.
type notifier struct{ underway int }

func (t notifier) quiet() bool { return t.underway == 0 }

// notify tells whom the spec names. Where that fails it is a warning: it never holds the loop up. A
// pause was asked for by a person, who need not be told.
func (r *run) notify(ctx workflow.Context, event loop.Type, reason string) {
	if event == loop.GateOpened {
		r.report(ctx, task.ChildAsks)
	}
	s := r.State()
	g := s.Gate
	if g != nil && g.Kind == loop.GatePause {
		return
	}
	notice := act.Notice{
		Loop: s.Loop, Kind: s.Kind, Event: event, Status: s.Status, How: []act.How{},
		Reason: loop.Clip(reason, 1000), Time: workflow.Now(ctx).UTC(),
	}
	if g != nil {
		notice.Gate = &act.NoticeGate{ID: g.ID, Kind: g.Kind, Summary: g.Summary, Hash: g.Hash, Answers: g.Answers}
		for _, w := range govern.Ways(s.Loop, *g, s.Budget) {
			notice.How = append(notice.How, act.How{Answer: w.Message, Payload: w.Payload, Command: w.Command})
		}
	}
	ctx, _ = workflow.NewDisconnectedContext(ctx) // the end is told also after Cancel
	for _, to := range r.spec.Notify {
		r.notifier.underway++
		workflow.Go(ctx, func(ctx workflow.Context) {
			defer func() { r.notifier.underway-- }()
			r.notified(ctx, to, r.notifyOne(ctx, to, notice))
		})
	}
}

// notifyOne tells one of them.
func (r *run) notifyOne(ctx workflow.Context, to string, notice act.Notice) error {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue: r.host.Queue(), StartToCloseTimeout: notifyAttempt, ScheduleToCloseTimeout: notifyBound, RetryPolicy: notifyRetries,
		Summary: string(notice.Event) + ": tell " + spec.Addressee(to),
	})
	return workflow.ExecuteActivity(ctx, act.NotifyName, act.Notify{Ref: r.host.Opened.Ref, To: to, Notice: notice}).Get(ctx, nil)
}

// notified says who could not be told, and why.
func (r *run) notified(ctx workflow.Context, to string, err error) {
	if err == nil {
		return
	}
	why := err.Error()
	var app *temporal.ApplicationError
	var late *temporal.TimeoutError
	switch {
	case errors.As(err, &app):
		why = app.Message()
	case errors.As(err, &late):
		why = "no host took it in time"
	}
	_ = r.Turn(ctx, func() {
		r.Emit(ctx, loop.Event{Type: loop.Warned, Reason: loop.Clip(spec.Addressee(to)+" could not be told: "+why, 500)})
	})
}

// notifyEnd notifies of the loop's end and waits for all that is being told. Who could not be told goes into
// the ledger after the end, where that was recorded.
func (r *run) notifyEnd(ctx workflow.Context, end govern.End, recorded bool) {
	if len(r.spec.Notify) == 0 {
		return
	}
	r.notify(ctx, end.Event(r.State().Usage).Type, end.Reason)
	_ = workflow.Await(ctx, func() bool { return r.notifier.quiet() })
	if len(r.Pending()) == 0 || !recorded {
		return
	}
	if err := r.record(ctx, "who could not be told", false); err != nil {
		workflow.GetLogger(ctx).Warn("who could not be told is not in the ledger", "error", err)
	}
}
