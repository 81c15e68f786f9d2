package display

import (
	"errors"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"pawl/internal/lib/text/markdown"
	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/internal/loop/rules"
	"pawl/internal/spec"
)

// Bound is how long a notification may take in all, because a workflow that ends waits for it. An attempt has half a
// minute in the activity itself; if the host is away, there is no more time than Bound.
const (
	Bound   = 3 * time.Minute
	attempt = 40 * time.Second
)

var retries = &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumAttempts: 3}

// Notifier notifies people without waiting.
type Notifier struct{ underway int }

// Quiet reports whether no notification is under way.
func (n *Notifier) Quiet() bool { return n.underway == 0 }

// About adds to a notice its gate, if it has one, and the ways to answer it.
func About(notice api.Notice, g *loop.Gate, ways func(loop.Gate) []rules.Way) api.Notice {
	notice.How = []api.How{}
	if g == nil {
		return notice
	}
	notice.Gate = &api.NoticeGate{ID: g.ID, Kind: g.Kind, Summary: g.Summary, Hash: g.Hash, Answers: g.Answers}
	for _, w := range ways(*g) {
		notice.How = append(notice.How, api.How{Answer: w.Message, Payload: w.Payload, Command: w.Command})
	}
	return notice
}

// Tell sends the notice to each of targets, even after Cancel. failed gets a warning for each that could not be told.
func (n *Notifier) Tell(ctx workflow.Context, queue, ref string, targets []string, notice api.Notice, failed func(workflow.Context, string)) {
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	for _, target := range targets {
		n.underway++
		workflow.Go(ctx, func(ctx workflow.Context) {
			defer func() { n.underway-- }()
			options := workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
				TaskQueue: queue, StartToCloseTimeout: attempt, ScheduleToCloseTimeout: Bound, RetryPolicy: retries,
				Summary: string(notice.Event) + ": tell " + markdown.Text(spec.Addressee(target)),
			})
			if err := workflow.ExecuteActivity(options, api.NotifyName, api.Notify{Ref: ref, To: target, Notice: notice}).Get(ctx, nil); err != nil {
				failed(ctx, loop.Clip(spec.Addressee(target)+" could not be notified: "+Plain(err), 500))
			}
		})
	}
}

// Plain returns the error of an activity in words, without what Temporal wraps around it.
func Plain(err error) string {
	var app *temporal.ApplicationError
	var late *temporal.TimeoutError
	switch {
	case errors.As(err, &app):
		return app.Message()
	case errors.As(err, &late):
		return "no host took the notification in time"
	}
	return err.Error()
}
