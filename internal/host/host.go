// Package host is this machine's worker: one process at a time, under a lock, with an identity
// that outlives it. Before it polls, it recovers what its predecessor left: it makes damaged records
// again (mend.go), gives activities back (recover.go) and starts loops again that the engine has lost
// (carry.go). It never decides anything about a loop. Start at RunWorker, then recover.go.
package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"pawl/activities"
	"pawl/activities/hosted"
	"pawl/config"
	"pawl/internal/act"
	"pawl/internal/durable"
	"pawl/internal/home"
	"pawl/internal/kind"
	"pawl/internal/launch"
	"pawl/internal/notify"
	"pawl/internal/pin"
	"pawl/internal/sandbox"
	"pawl/internal/schedule"
	"pawl/internal/telemetry"
	"pawl/internal/trigger"
	"pawl/internal/workspace"
	"pawl/workflows"
	"pawl/workflows/stewarding"
)

// Options say whose worker this is and where it works.
type Options struct {
	Home      home.Home
	Client    client.Client
	Namespace string
	Logger    *slog.Logger
	// Worker is how the worker works; without it, as by default.
	Worker config.Worker
	// Telemetry shows what the loops do, nil for nobody.
	Telemetry *telemetry.Telemetry
	// Embedded says that the service is this host's own engine: loops that it has lost are
	// started again from their ledgers.
	Embedded bool
	// Closed are the ports of a service that is not embedded: what loops run must not reach them.
	Closed []int
	// Services are the addresses of the service and of its UI.
	Services []string
	// Ready is called once: with true when this process's worker polls, with false when another
	// process is the host's worker and this one stands by.
	Ready func(ours bool)
	// Triggers is called with the address of the stewards' triggers when this process begins to serve
	// them, and with "" when it ends. nil for nobody.
	Triggers func(address string)
}

// Identity is the name under which a host's worker takes tasks. It is the same in every process
// of the host, so that a new one can answer for what the last one had taken.
func Identity(host string) string { return act.HostQueue(host) }

// SearchAttributes are the attributes of the contract with their types.
var SearchAttributes = func() map[string]enumspb.IndexedValueType {
	out := map[string]enumspb.IndexedValueType{}
	for _, a := range launch.Attributes {
		out[a.Name], _ = enumspb.IndexedValueTypeFromString(a.Type) // launch's tests hold it to a type that exists
	}
	return out
}()

// The worker's options that are nobody's choice, where the SDK's default is not right. Those that
// people choose are config.Worker.
const (
	// Pause and halt reach a step with a heartbeat's answer, so that they arrive within a second.
	heartbeatThrottle = time.Second
	// A task that was put aside for a worker which then died is given to the next one after this
	// time. The default is 5 s.
	stickyTimeout = time.Second
	// A machine that builds and tests for several agents may well leave a workflow goroutine
	// without a processor for a second, which is the SDK's idea of a deadlock.
	deadlock = 20 * time.Second
)

// options are what the workers of all queues have in common.
func (o Options) options(id string, fatal func(error)) worker.Options {
	options := worker.Options{
		Identity: Identity(id), WorkerStopTimeout: o.Worker.StopTimeout,
		MaxHeartbeatThrottleInterval: heartbeatThrottle, DefaultHeartbeatThrottleInterval: heartbeatThrottle,
		MaxConcurrentActivityExecutionSize: o.Worker.Activities, DeadlockDetectionTimeout: deadlock, StickyScheduleToStartTimeout: stickyTimeout,
		OnFatalError: fatal,
	}
	if o.Worker.Deployment != "" {
		options.DeploymentOptions = worker.DeploymentOptions{
			UseVersioning: true,
			Version:       worker.WorkerDeploymentVersion{DeploymentName: o.Worker.Deployment, BuildID: o.Worker.BuildID},
			// A loop lives for days, and each new worker can go on with it: rules are versioned inside.
			DefaultVersioningBehavior: workflow.VersioningBehaviorAutoUpgrade,
		}
	}
	return options
}

// RunWorker runs the host's worker until ctx ends. While another process is the host's worker it
// waits and takes over when that one is gone.
func RunWorker(ctx context.Context, o Options) error {
	if o.Worker == (config.Worker{}) {
		o.Worker = config.DefaultWorker()
	}
	id, err := o.Home.HostID()
	if err != nil {
		return err
	}
	lock, err := durable.TryLock(o.Home.WorkerLock())
	if errors.Is(err, durable.ErrLocked) {
		o.ready(false)
		lock, err = durable.Lock(ctx, o.Home.WorkerLock())
	}
	if err != nil {
		return fmt.Errorf("taking the worker's lock: %w", err)
	}
	defer lock.Close()
	if err := hosted.NoteEnvironment(o.Home); err != nil {
		return err
	}
	if err := whenItAnswers(ctx, func() error { return answers(ctx, o) }); err != nil {
		return err
	}
	// The host's own engine has no other host: there the work on trees is done from the shared
	// queue, where a workflow task brings its activity along and saves the way through a second one.
	queue := act.HostQueue(id)
	if o.Embedded {
		queue = act.TaskQueue
	}
	Pin()
	// It may take as long as starting a program, and no step should wait for it. A command that applies a
	// proposal runs nothing in a sandbox, and starts no probe that it would leave behind.
	go sandbox.Probe()
	a := activities.New(o.Home, id, queue, o.Namespace, attributes(ctx, o))
	a.Logger, a.Telemetry = o.Logger, o.Telemetry
	a.Closed, a.Services = o.Closed, o.Services
	if !o.Embedded {
		a.MoveAfter = o.Worker.MoveAfter
	}
	if !o.Embedded || o.Worker.Agents > 0 {
		a.Agents = act.AgentQueue(id)
	}
	if err := whenItAnswers(ctx, func() error { return recoverLoops(ctx, o, id, a) }); err != nil {
		return err
	}
	a.Survey(ctx)
	refused := make(chan error, 1)
	workers := o.workers(id, a, func(err error) {
		select {
		case refused <- err:
		default:
		}
	})
	for i, w := range slices.Backward(workers) {
		if err := w.Start(); err != nil {
			stop(workers[i+1:])
			return fmt.Errorf("starting the worker: %w", err)
		}
	}
	o.ready(true)
	serving, endServing := context.WithCancel(ctx)
	defer endServing()
	var served sync.WaitGroup
	served.Go(func() { o.serveTriggers(serving, id) })
	sweep(ctx, o, a)
	select {
	case <-ctx.Done():
	case err = <-refused: // for good: the namespace is gone, or access to it
		err = fmt.Errorf("the service refuses the worker: %w", err)
	}
	endServing()
	served.Wait()
	// Workflow tasks first: nothing new is scheduled while steps are being ended.
	workers[0].Stop()
	stop(workers[1:])
	a.Stop()
	return err
}

// workers are a worker for each queue, that of workflow tasks first.
func (o Options) workers(id string, a *activities.Activities, fatal func(error)) []worker.Worker {
	options := o.options(id, fatal)
	options.Interceptors = a.Interceptors()
	shared := worker.New(o.Client, act.TaskQueue, options)
	Register(shared)
	a.RegisterShared(shared)
	if o.Embedded {
		a.RegisterTrees(shared)
	}
	options.DisableWorkflowWorker = true
	trees := worker.New(o.Client, act.HostQueue(id), options)
	a.RegisterShared(trees)
	a.RegisterTrees(trees)
	// There also where no loop is sent to it any more: one that was is known by that queue.
	options.MaxConcurrentActivityExecutionSize = cmp.Or(o.Worker.Agents, config.DefaultAgents)
	agents := worker.New(o.Client, act.AgentQueue(id), options)
	a.RegisterAgents(agents)
	return []worker.Worker{shared, trees, agents}
}

// stop stops workers at once, since each waits for its steps.
func stop(workers []worker.Worker) {
	var ending sync.WaitGroup
	for _, w := range workers {
		ending.Go(w.Stop)
	}
	ending.Wait()
}

// serveTriggers serves the stewards' triggers until ctx ends (S5).
func (o Options) serveTriggers(ctx context.Context, id string) {
	trigger.Run(ctx, trigger.Options{
		Stewards: &trigger.Temporal{Client: o.Client, Namespace: o.Namespace, Host: id, Now: time.Now},
		Home:     o.Home, Logger: o.Logger, Address: o.Worker.Triggers, Serving: o.Triggers,
	})
}

func (o Options) ready(ours bool) {
	if o.Ready != nil {
		o.Ready(ours)
	}
}

// Workflows are the workflow functions of all kinds, by the name of their kind.
var Workflows = func() map[string]any {
	all := maps.Clone(workflows.ByKind)
	all[kind.Steward.Name] = stewarding.Steward
	return all
}()

// Register registers all kinds of workflows, what is done with the proposals of loops after their end,
// and what hands a task in.
func Register(r worker.WorkflowRegistry) {
	r.RegisterWorkflowWithOptions(workflows.Review, workflow.RegisterOptions{Name: "Review"})
	r.RegisterWorkflowWithOptions(workflows.Apply, workflow.RegisterOptions{Name: "Apply"})
	r.RegisterWorkflowWithOptions(stewarding.Submit, workflow.RegisterOptions{Name: schedule.SubmitWorkflow})
	for _, k := range kind.All {
		r.RegisterWorkflowWithOptions(Workflows[k.Name], workflow.RegisterOptions{Name: k.Workflow})
	}
}

// servicePoll is how often a service that is not there is asked again.
const servicePoll = 50 * time.Millisecond

// answers asks the service for its namespace.
func answers(ctx context.Context, o Options) error {
	_, err := o.Client.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: o.Namespace})
	return err
}

// whenItAnswers repeats do until the service is reachable. A worker that takes over from another
// process may have taken over the engine too, which is then still starting.
func whenItAnswers(ctx context.Context, do func() error) error {
	for {
		err := do()
		var away *serviceerror.Unavailable
		if !errors.As(err, &away) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(servicePoll):
		}
	}
}

// attributes reports whether the namespace knows all search attributes. It registers those that are
// missing where that is allowed; where it is not, loops do without them.
func attributes(ctx context.Context, o Options) bool {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	missing := func() map[string]enumspb.IndexedValueType {
		// Not the workflow service's GetSearchAttributes: that doesn't know a namespace's own names.
		known, err := o.Client.OperatorService().ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: o.Namespace})
		if err != nil {
			o.Logger.Debug("search attributes can't be listed", "error", err)
			return SearchAttributes
		}
		out := map[string]enumspb.IndexedValueType{}
		for name, kind := range SearchAttributes {
			if known.GetCustomAttributes()[name] != kind {
				out[name] = kind
			}
		}
		return out
	}
	lacking := missing()
	if len(lacking) == 0 {
		return true
	}
	_, err := o.Client.OperatorService().AddSearchAttributes(ctx, &operatorservice.AddSearchAttributesRequest{
		SearchAttributes: lacking, Namespace: o.Namespace,
	})
	if err != nil {
		o.Logger.Info("the namespace lacks pawl's search attributes and they can't be added; loops do without", "error", err)
		return false
	}
	return len(missing()) == 0
}

// ActiveLoops returns the IDs of the loops of this host that are not over.
func ActiveLoops(ctx context.Context, h home.Home, c client.Client, namespace string) ([]string, error) {
	records, err := workspace.List(h)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, r := range records {
		if r.Closed || r.Namespace != namespace {
			continue
		}
		d, err := c.WorkflowService().DescribeWorkflowExecution(ctx, &workflowservice.DescribeWorkflowExecutionRequest{
			Namespace: namespace, Execution: execution(r.Loop),
		})
		if err != nil {
			continue // it is gone from the service, so it is over
		}
		info := d.GetWorkflowExecutionInfo()
		if !over(info, r) {
			out = append(out, r.Loop)
		}
	}
	return out, nil
}

// Pin finds the programs that pawl runs for itself, once for this process. A program calls it at its start; RunWorker does, too.
func Pin() { pin.Down(append([]string{"git", "ssh", "bwrap"}, notify.Programs...)...) }
