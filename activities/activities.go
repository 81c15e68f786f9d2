// Package activities touches the world for a loop, over the store, the trees, the ledger and the
// supervisor. Each is idempotent by
// construction: a retry finds what an attempt before it did and makes the rest so. They decide
// nothing about the loop: a verdict is a result, an error is the machine's. Start at Activities,
// then Step in step.go.
package activities

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"

	"pawl/internal/act"
	"pawl/internal/fault"
	"pawl/internal/git"
	"pawl/internal/home"
	"pawl/internal/ledger"
	"pawl/internal/proc"
	"pawl/internal/store"
	"pawl/internal/telemetry"
	"pawl/internal/trees"
	"pawl/internal/wire"
	"pawl/internal/workspace"
)

// Activities are this host's activities. One value serves all loops of a worker.
type Activities struct {
	*machine
	steps *steps

	registering sync.Mutex // held while a loop is given its name on this host, or is given up

	mu     sync.Mutex
	workspaces map[string]*loopWorkspace
}

// machine is this host, as everything that works on it knows it.
type machine struct {
	Home      home.Home
	Host      string // this host's id
	Queue     string // where the work on this host's trees is taken from
	Namespace string
	// Agents is where agents run, "" for where all the work on trees does.
	Agents string
	// MoveAfter is how long this host may leave something untaken until a loop that others could go
	// on with asks whether it is gone; 0: its loops stay.
	MoveAfter time.Duration
	// Attributes says whether the namespace knows pawl's search attributes.
	Attributes bool
	// Logger is told what the loops do, and Telemetry, nil for nobody, shows it.
	Logger    *slog.Logger
	Telemetry *telemetry.Telemetry
	// Closed are the ports of a service that is not embedded, which what runs in a loop must not
	// reach. The embedded engine's are found on disk.
	Closed []int

	background sync.WaitGroup // what nobody waits for but Stop
}

// New returns the activities of the host.
func New(h home.Home, host, queue, namespace string, attributes bool) *Activities {
	return &Activities{
		machine: &machine{
			Home: h, Host: host, Queue: queue, Namespace: namespace, Attributes: attributes, Logger: slog.New(slog.DiscardHandler),
		},
		workspaces: map[string]*loopWorkspace{},
		steps:  &steps{running: map[string]*running{}, orphaned: make(chan struct{}, 1)},
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
	register(r, map[string]any{act.OpenName: a.Open, act.FindName: a.Find, act.PlaceName: a.Place, act.NotifyName: a.Notify})
}

// RegisterAgents registers what runs agents.
func (a *Activities) RegisterAgents(r worker.ActivityRegistry) {
	register(r, map[string]any{act.CallName: a.CallAgent})
}

// RegisterTrees registers the work on this host's trees.
func (a *Activities) RegisterTrees(r worker.ActivityRegistry) {
	a.RegisterAgents(r)
	register(r, map[string]any{
		act.CheckName: a.Check, act.VerifyName: a.Verify, act.GuardName: a.Guard, act.TestName: a.Test, act.ProgressName: a.Progress,
		act.CommitName: a.Commit, act.SettleName: a.Settle, act.RecordName: a.Record, act.ProposeName: a.Propose, act.CloseName: a.Close,
		act.AmendName: a.Amend, act.ReviewName: a.Review, act.ApplyName: a.Apply,
	})
}

// Stop ends everything that runs for any loop; what was running is run again by the next worker.
func (a *Activities) Stop() {
	a.mu.Lock()
	workspaces := make([]*loopWorkspace, 0, len(a.workspaces))
	for _, ws := range a.workspaces {
		workspaces = append(workspaces, ws)
	}
	a.mu.Unlock()
	for _, ws := range workspaces {
		ws.rest()
		if ws.pushNow() {
			a.background.Go(func() { ws.pushAhead() })
		}
	}
	a.background.Wait()
}

// place is a loop's handles on this host. They are a cache of what the workspace record says.
type loopWorkspace struct {
	workspace.Record
	machine *machine
	store   *store.Store
	ledger  *ledger.Ledger
	desk    *tree
	judge   *tree

	pushing   sync.Mutex // one push at a time
	branchDue bool       // with a URL: the branch is not yet in the repository as the ledger has it
	awayUntil time.Time  // with a URL: until when a repository that did not answer is left alone

	mu         sync.Mutex
	supervisor *proc.Supervisor
	refused    string // why the last push was refused, until it is told
	untaken    string // with a URL: why the last push was refused, until one is taken
	pushDue    *time.Timer
	pushed     time.Time // when the last keep was pushed
	same       [2]string // two commits with one tree: a revert, and what it went back to
	env        []string  // what commands inherit, once it is known
	turn       int       // counts what has run in the trees
}

// place returns the handles of the loop named ref.
func (a *Activities) workspace(ctx context.Context, ref string) (*loopWorkspace, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if ws := a.workspaces[ref]; ws != nil {
		return ws, nil
	}
	record, err := workspace.Read(a.Home, ref)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, refuse(fault.New(fault.PreconditionFailed, "this host has no workspace for the loop %s any more", ref).
			Advise("Start the loop again from its ledger."))
	}
	if err != nil {
		return nil, err
	}
	ws, err := a.openWorkspace(ctx, record)
	if err != nil {
		return nil, err
	}
	a.workspaces[ref] = ws
	return ws, nil
}

func (m *machine) openWorkspace(ctx context.Context, r workspace.Record) (*loopWorkspace, error) {
	store, err := store.Open(ctx, r.Store)
	if err != nil {
		return nil, fmt.Errorf("opening the store: %w", err)
	}
	return &loopWorkspace{
		Record: r, machine: m, store: store, ledger: ledger.Open(store),
		desk:  &tree{Tree: trees.At(store, workspace.Desk(m.Home, r.Ref), workspace.Admin(m.Home, r.Ref, "desk"), branchName(r))},
		judge: &tree{Tree: trees.At(store, workspace.Judge(m.Home, r.Ref), workspace.Admin(m.Home, r.Ref, "judge"), branchName(r))},
	}, nil
}

// branchName is the branch as people name it.
func branchName(r workspace.Record) string { return strings.TrimPrefix(r.Branch, "refs/heads/") }

func (ws *loopWorkspace) author() git.Identity { return git.Identity{Name: ws.Name, Email: ws.Email} }

// supervise returns the loop's supervisor, starting one where there is none. What an earlier
// one may have left is ended first.
func (ws *loopWorkspace) supervise() (*proc.Supervisor, error) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.supervisor != nil {
		return ws.supervisor, nil
	}
	s, err := proc.StartFor(ws.Token(), ws.means())
	if err != nil {
		return nil, fmt.Errorf("starting the supervisor: %w", err)
	}
	ws.supervisor = s
	return s, nil
}

// rest gives up the loop's processes: the loop waits, or is over.
func (ws *loopWorkspace) rest() {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.supervisor != nil {
		ws.supervisor.Close()
		ws.supervisor = nil
	}
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
