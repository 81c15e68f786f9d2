package hosting

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"pawl/internal/act"
	"pawl/internal/fault"
	"pawl/internal/markdown"
)

// Retries apply to every activity that touches a store or a tree. A verdict is a result; an error is the machine's
// fault. So there are many retries, and they have nothing to do with attempts of the loop. An error that is not the
// machine's fault is not retried.
var Retries = &temporal.RetryPolicy{
	InitialInterval:    200 * time.Millisecond,
	BackoffCoefficient: 2,
	MaximumInterval:    30 * time.Second,
	MaximumAttempts:    100,
	NonRetryableErrorTypes: []string{
		string(fault.PreconditionFailed), string(fault.InvalidSpec), string(fault.LedgerAhead), string(fault.LedgerDamaged),
	},
}

const (
	// Bookkeeping limits one attempt at an activity that runs no command of the spec, such as cloning a large
	// repository.
	Bookkeeping = 30 * time.Minute
	// Heartbeat is how long an activity may be silent. Shorter limits cancelled healthy agents when an engine
	// restarted.
	Heartbeat = 30 * time.Second
	// The supervisor measures a step's own limit. The server's clock also runs while the machine sleeps, so it must
	// not end a step.
	stepBound = 30 * 24 * time.Hour
	// A host that doesn't answer a check in this time is down or asleep.
	checkBound = 10 * time.Second
)

// Start schedules an activity on the queue where it belongs (act.Attributes): the shared queue, the queue of the host
// that the spec names, or that of the loop's host. Agents have their own queue if they have their own slots. asked
// counts how often the host has left this activity untaken.
func (h *Host) Start(ctx workflow.Context, name, summary string, input any, asked int) workflow.Future {
	h.show(ctx) // people look while something runs or waits, not in between
	is := act.Of(name)
	o := workflow.ActivityOptions{
		TaskQueue: h.Opened.Queue, ScheduleToStartTimeout: h.patience(asked), StartToCloseTimeout: Bookkeeping, HeartbeatTimeout: Heartbeat,
		RetryPolicy: Retries, WaitForCancellation: true, Summary: markdown.Text(summary), Priority: temporal.Priority{PriorityKey: is.Urgency},
	}
	if is.Step {
		o.StartToCloseTimeout = stepBound
	}
	switch {
	case is.AnyHost:
		o.TaskQueue, o.ScheduleToStartTimeout = h.anyHost(), 0
	case is.Agent && h.Opened.Agents != "":
		o.TaskQueue = h.Opened.Agents
	case is.Brief:
		o.ScheduleToCloseTimeout, o.StartToCloseTimeout, o.ScheduleToStartTimeout = checkBound, checkBound, 0
	}
	return workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, o), name, input)
}
