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

// urgency is in which order activities start where more wait than a worker has slots for: 1 is
// first, 3 what Temporal takes where nothing is said. Before a new loop is taken up those under way
// go on, what takes milliseconds before what takes minutes, and last of all agents.
var urgency = map[string]int{
	act.CheckName: 1, act.CommitName: 2, act.SettleName: 2, act.RecordName: 2, act.CloseName: 2,
	act.StepName: 3, act.OpenName: 4, act.PlaceName: 1,
}

const agentUrgency = 4

// start schedules an activity where it belongs: Open on the shared queue, unless the spec names
// a host, everything else on the loop's host, agents in slots of their own where it has such. asked
// counts how often the host was asked for after it had left this untaken.
func (r *run) start(ctx workflow.Context, name, summary string, input any, asked int) workflow.Future {
	r.show(ctx) // people look while something runs or waits, not in between
	o := workflow.ActivityOptions{
		TaskQueue: r.opened.Queue, ScheduleToStartTimeout: r.patience(asked), StartToCloseTimeout: bookkeeping, HeartbeatTimeout: heartbeat,
		RetryPolicy: retries, WaitForCancellation: true, Summary: summary, Priority: temporal.Priority{PriorityKey: urgency[name]},
	}
	switch name {
	case act.OpenName, act.PlaceName:
		o.TaskQueue, o.ScheduleToStartTimeout = act.TaskQueue, 0
		if r.spec.Repo.Host != "" {
			o.TaskQueue = act.HostQueue(r.spec.Repo.Host)
		}
	case act.StepName:
		o.StartToCloseTimeout = stepBound
		if s, ok := input.(act.Step); ok && s.Agent != nil {
			o.TaskQueue, o.Priority.PriorityKey = orElse(r.opened.Agents, r.opened.Queue), agentUrgency
		}
	case act.CheckName:
		o.ScheduleToCloseTimeout, o.StartToCloseTimeout, o.ScheduleToStartTimeout = checkBound, checkBound, 0
	}
	return workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, o), name, input)
}

// execute runs an activity to its end, on another host where the loop's own is gone. The input is made
// anew for each.
func (r *run) execute(ctx workflow.Context, name, summary string, input func() any, output any) error {
	for asked := 0; ; asked++ {
		err := r.start(ctx, name, summary, input(), asked).Get(ctx, output)
		if _, is := untaken(err); !is {
			return err
		}
		moved, err := r.follow(ctx)
		switch {
		case err != nil:
			return err
		case moved && name == act.CommitName:
			return errLost // with the desk
		case moved:
			asked = -1
		}
	}
}
