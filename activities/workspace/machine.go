// Package workspace has what this host keeps of a loop or a steward: its trees, the sandbox, layers and variables around
// its commands, and the way to its repository. It records nothing and calls no agent. Start at Workspace.
package workspace

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	sdk "go.temporal.io/sdk/client"

	"pawl/internal/fault"
	"pawl/internal/fault/wire"
	"pawl/internal/home"
	"pawl/internal/lib/safego"
	"pawl/internal/telemetry"
)

// Machine is what this host's activities know about the host.
type Machine struct {
	Home home.Home
	// Main is $PAWL_HOME, with the engine and what people put there. Home is the same, but for `pawl validate`, whose
	// loop has a home of its own inside.
	Main      home.Home
	Host      string // this host's id
	Queue     string // the task queue for work on this host's trees
	Namespace string
	// Agents is the task queue for agents, "" if they share that of the trees.
	Agents string
	// MoveAfter is how long this host may leave an activity untaken. After that, a loop that other hosts could
	// continue asks whether this host is gone. With 0 its loops stay.
	MoveAfter time.Duration
	// Attributes says whether the namespace knows pawl's search attributes.
	Attributes bool
	// Logger logs what the loops do. Telemetry shows it; it may be nil.
	Logger    *slog.Logger
	Telemetry *telemetry.Telemetry
	// Closed are the ports of an external service that commands must not reach. The embedded engine's are on disk.
	Closed []int
	// Services are the addresses of the Temporal service and of its UI.
	Services []string
	// Keys are files with what identifies this worker to that service.
	Keys []string

	sums       sums           // the sums of files outside of repositories
	Client     sdk.Client     // nil for the connection of the activity; tests set their own
	background sync.WaitGroup // background work, which only Stop waits for
}

// Workspaces has the workspaces of the loops and stewards for which this worker works.
type Workspaces struct {
	*Machine

	Registering sync.Mutex // held while a loop gets its name on this host, or is given up

	mu         sync.Mutex
	workspaces map[string]*Workspace // by the name in refs
	late       map[string]*latePush  // by the name in refs
}

// New returns the workspaces of a worker that has just started.
func New(h home.Home, host, queue, namespace string, attributes bool) *Workspaces {
	return &Workspaces{
		Machine: &Machine{
			Home: h, Main: h, Host: host, Queue: queue, Namespace: namespace, Attributes: attributes, Logger: slog.New(slog.DiscardHandler),
		},
		workspaces: map[string]*Workspace{}, late: map[string]*latePush{},
	}
}

// Keep makes the workspace the one of its loop. If an earlier attempt had opened another one, its processes end.
func (a *Workspaces) Keep(ws *Workspace) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if earlier := a.workspaces[ws.Ref]; earlier != nil && earlier != ws {
		earlier.EndProcesses()
	}
	a.workspaces[ws.Ref] = ws
}

// Here returns the workspace of a loop for which this worker works, nil for another loop.
func (a *Workspaces) Here(ref string) *Workspace {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.workspaces[ref]
}

// Stop ends everything that runs for any loop, and forgets the workspaces. The next worker repeats what was interrupted.
func (a *Workspaces) Stop() {
	a.mu.Lock()
	workspaces := slices.Collect(maps.Values(a.workspaces))
	clear(a.workspaces)
	a.mu.Unlock()
	for _, ws := range workspaces {
		ws.EndProcesses()
		ws.pushDueNow()
	}
	a.background.Wait()
}

// InBackground does work for which no activity waits.
func (m *Machine) InBackground(do func()) {
	m.background.Go(func() {
		if err := safego.Caught(func() error { do(); return nil }); err != nil {
			m.Logger.Error("work in the background failed", "error", err)
		}
	})
}

// Refuse turns a fault into an activity error that is not retried, with the code as its type.
func Refuse(f *fault.Error) error {
	return wire.Encode(f, nil)
}

// Refusal turns a person's mistake into an error that is not retried.
func Refusal(err error) error {
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return Refuse(f)
	}
	return err
}

// Temporal returns the connection of the activity.
func (m *Machine) Temporal(ctx context.Context) sdk.Client {
	if m.Client != nil {
		return m.Client
	}
	return activity.GetClient(ctx)
}
