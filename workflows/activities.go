package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"pawl/internal/act"
	"pawl/internal/fault"
)

// How activities are called. A verdict is a result; an error is the machine's fault, so retries
// are many and have nothing to do with attempts of the loop. Whatever is no fault of the
// machine is not retried.
var retries = &temporal.RetryPolicy{
	InitialInterval:    200 * time.Millisecond,
	BackoffCoefficient: 2,
	MaximumInterval:    30 * time.Second,
	MaximumAttempts:    100,
	NonRetryableErrorTypes: []string{
		string(fault.PreconditionFailed), string(fault.InvalidSpec), string(fault.LedgerAhead),
	},
}

const (
	// The bound for one attempt at a bookkeeping activity. Cloning a large repository is one.
	bookkeeping = 30 * time.Minute
	// A step's own limit is measured by its supervisor; the server's clock also runs while the
	// machine sleeps, so it is no judge of a step.
	stepBound = 30 * 24 * time.Hour
	// Shorter ones cancelled healthy agents when an engine restarted.
	heartbeat = 30 * time.Second
	// A host that doesn't answer a check in this time is down or asleep.
	checkBound = 10 * time.Second
)

// start schedules an activity where it belongs: Open on the shared queue, unless the spec names
// a host, everything else on the loop's host.
func (r *run) start(ctx workflow.Context, name, summary string, input any) workflow.Future {
	r.show(ctx) // people look while something runs or waits, not in between
	o := workflow.ActivityOptions{
		TaskQueue: r.opened.Queue, StartToCloseTimeout: bookkeeping, HeartbeatTimeout: heartbeat,
		RetryPolicy: retries, WaitForCancellation: true, Summary: summary,
	}
	switch name {
	case act.OpenName:
		o.TaskQueue = act.TaskQueue
		if r.spec.Repo.Host != "" {
			o.TaskQueue = act.HostQueue(r.spec.Repo.Host)
		}
	case act.StepName:
		o.StartToCloseTimeout = stepBound
	case act.CheckName:
		o.ScheduleToCloseTimeout, o.StartToCloseTimeout = checkBound, checkBound
	}
	return workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, o), name, input)
}

func (r *run) execute(ctx workflow.Context, name, summary string, input, output any) error {
	return r.start(ctx, name, summary, input).Get(ctx, output)
}
