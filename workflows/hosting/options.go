package hosting

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"pawl/internal/act"
	"pawl/internal/fault"
)

// Retries are those of every activity that touches a store or a tree. A verdict is a result; an
// error is the machine's fault, so retries are many and have nothing to do with attempts of the
// loop. Whatever is no fault of the machine is not retried.
var Retries = &temporal.RetryPolicy{
	InitialInterval:    200 * time.Millisecond,
	BackoffCoefficient: 2,
	MaximumInterval:    30 * time.Second,
	MaximumAttempts:    100,
	NonRetryableErrorTypes: []string{
		string(fault.PreconditionFailed), string(fault.InvalidSpec), string(fault.LedgerAhead),
	},
}

const (
	// Bookkeeping bounds one attempt at an activity that runs nothing of the spec's. Cloning a large
	// repository is one.
	Bookkeeping = 30 * time.Minute
	// Heartbeat is how long an activity may be silent. Shorter ones cancelled healthy agents when an
	// engine restarted.
	Heartbeat = 30 * time.Second
	// A step's own limit is measured by its supervisor; the server's clock also runs while the
	// machine sleeps, so it is no judge of a step.
	stepBound = 30 * 24 * time.Hour
	// A host that doesn't answer a check in this time is down or asleep.
	checkBound = 10 * time.Second
)

// urgency is in which order activities start where more wait than a worker has slots for: 1 is
// first, 3 what Temporal takes where nothing is said. Before a new loop is taken up those under way
// go on, what takes milliseconds before what takes minutes, and last of all agents.
var urgency = map[string]int{
	act.ProgressName: 1, act.PlaceName: 1,
	act.CommitName: 2, act.SettleName: 2, act.RecordName: 2, act.ProposeName: 2, act.CloseName: 2,
	act.CheckName: 3, act.VerifyName: 3, act.GuardName: 3, act.TestName: 3,
	act.OpenName: 4, act.CallName: 4,
}

// Start schedules an activity where it belongs: Open on the shared queue, unless the spec names a
// host, everything else on the loop's host, agents in slots of their own where it has such. asked
// counts how often the host was asked for after it had left this untaken.
func (h *Host) Start(ctx workflow.Context, name, summary string, input any, asked int) workflow.Future {
	h.show(ctx) // people look while something runs or waits, not in between
	o := workflow.ActivityOptions{
		TaskQueue: h.Opened.Queue, ScheduleToStartTimeout: h.patience(asked), StartToCloseTimeout: Bookkeeping, HeartbeatTimeout: Heartbeat,
		RetryPolicy: Retries, WaitForCancellation: true, Summary: summary, Priority: temporal.Priority{PriorityKey: urgency[name]},
	}
	switch name {
	case act.OpenName, act.PlaceName:
		o.TaskQueue, o.ScheduleToStartTimeout = act.TaskQueue, 0
		if host := h.spec().Repo.Host; host != "" {
			o.TaskQueue = act.HostQueue(host)
		}
	case act.CallName:
		o.StartToCloseTimeout = stepBound
		if h.Opened.Agents != "" {
			o.TaskQueue = h.Opened.Agents
		}
	case act.CheckName, act.VerifyName, act.GuardName, act.TestName:
		o.StartToCloseTimeout = stepBound
	case act.ProgressName:
		o.ScheduleToCloseTimeout, o.StartToCloseTimeout, o.ScheduleToStartTimeout = checkBound, checkBound, 0
	}
	return workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, o), name, input)
}
