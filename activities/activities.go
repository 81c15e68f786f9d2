// Package activities touches the world for a loop, over the store, the trees, the ledger and the
// supervisor. Each activity is idempotent: a retry finds what the attempt before it did, and does the
// rest. Activities decide nothing about the loop: a verdict is a result, an error is the machine's.
//
// Start at Activities, then loopWorkspace in workspace.go: all that a loop has on this host. By subject:
// trees.go; open.go, contract.go and resume.go (how a loop comes to this host); journal.go and push.go
// (what is recorded, here and in the user's repository); steps.go and step.go (what runs in a tree),
// sandbox.go and layers.go (what is around it), tests.go; call.go, prompt.go, stream.go and collect.go (agents); commit.go; proposal.go and apply.go.
package activities

import (
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	sdk "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"

	"pawl/internal/act"
	"pawl/internal/fault"
	"pawl/internal/home"
	"pawl/internal/telemetry"
	"pawl/internal/wire"
)

// Activities are this host's activities. One value serves all loops of a worker.
type Activities struct {
	*machine
	steps *steps

	registering sync.Mutex // held while a loop is given its name on this host, or is given up

	mu         sync.Mutex
	workspaces map[string]*loopWorkspace

	mending  menders
	underway underway
}

// machine is what this host's activities know about the host.
type machine struct {
	Home      home.Home
	Host      string // this host's id
	Queue     string // where the work on this host's trees is taken from
	Namespace string
	// Agents is the task queue for agents, "" if they share that of the trees.
	Agents string
	// MoveAfter is how long this host may leave an activity untaken before a loop that other hosts could continue asks
	// whether this host is gone; 0: its loops stay.
	MoveAfter time.Duration
	// Attributes says whether the namespace knows pawl's search attributes.
	Attributes bool
	// Logger is told what the loops do, and Telemetry, nil for nobody, shows it.
	Logger    *slog.Logger
	Telemetry *telemetry.Telemetry
	// Closed are the ports of an external service that a loop's commands must not reach. The embedded engine's are
	// found on disk.
	Closed []int
	// Services are the addresses of the Temporal service and of its UI.
	Services []string
	// Asks reports that the embedded engine of another home, whose ports Closed has, requires a token.
	Asks bool

	sums       sums           // of files outside of repositories
	connected  sdk.Client     // nil: the one that an activity came by; tests have one of their own
	background sync.WaitGroup // what nobody waits for but Stop
}

// New returns the activities of the host.
func New(h home.Home, host, queue, namespace string, attributes bool) *Activities {
	return &Activities{
		machine: &machine{
			Home: h, Host: host, Queue: queue, Namespace: namespace, Attributes: attributes, Logger: slog.New(slog.DiscardHandler),
		},
		workspaces: map[string]*loopWorkspace{},
		mending:    menders{looked: map[string]time.Time{}},
		steps:      &steps{running: map[string]*running{}, orphaned: make(chan struct{}, 1)},
	}
}

// register registers activities by name.
func register(r worker.ActivityRegistry, all map[string]any) {
	for name, f := range all {
		r.RegisterActivityWithOptions(f, activity.RegisterOptions{Name: name})
	}
}

// RegisterShared registers what any host may do: take up a loop, find one, tell somebody of it, say
// whether another host is gone.
func (a *Activities) RegisterShared(r worker.ActivityRegistry) {
	register(r, map[string]any{
		act.OpenName: a.Open, act.OpenStewardName: a.OpenSteward, act.FindName: a.Find, act.PlaceName: a.Place, act.NotifyName: a.Notify,
		act.ReadChildName: a.ReadChild,
	})
}

// RegisterAgents registers what runs agents.
func (a *Activities) RegisterAgents(r worker.ActivityRegistry) {
	register(r, map[string]any{act.CallName: a.CallAgent, act.PlanTaskName: a.PlanTask})
}

// RegisterTrees registers the work on this host's trees.
func (a *Activities) RegisterTrees(r worker.ActivityRegistry) {
	a.RegisterAgents(r)
	register(r, map[string]any{
		act.CheckName: a.Check, act.VerifyName: a.Verify, act.GuardName: a.Guard, act.TestName: a.Test, act.CanaryName: a.Canary, act.ProgressName: a.Progress,
		act.CommitName: a.Commit, act.TakeName: a.Take, act.SettleName: a.Settle, act.RecordName: a.Record, act.ProposeName: a.Propose, act.CloseName: a.Close,
		act.AmendName: a.Amend, act.ReviewName: a.Review, act.ApplyName: a.Apply, act.RecordTasksName: a.RecordTasks,
		act.JoinName: a.Join, act.ValidateName: a.Validate,
	})
}

// Stop ends everything that runs for any loop; the next worker runs it again.
func (a *Activities) Stop() {
	a.mu.Lock()
	workspaces := slices.Collect(maps.Values(a.workspaces))
	a.mu.Unlock()
	for _, ws := range workspaces {
		ws.endProcesses()
		ws.pushDueNow()
	}
	a.background.Wait()
}

// refuse turns a fault into an activity error that is not retried, with the code as its type.
func refuse(f *fault.Error) error {
	return wire.Encode(f, nil)
}

// stopping is what an activity returns when its worker stops: the next worker does it again.
func stopping() error {
	return temporal.NewApplicationErrorWithOptions("the worker is stopping", "WorkerStopping", temporal.ApplicationErrorOptions{
		NextRetryDelay: time.Millisecond, Category: temporal.ApplicationErrorCategoryBenign,
	})
}

// refusal turns a person's mistake into an error that is not retried.
func refusal(err error) error {
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return refuse(f)
	}
	return err
}
