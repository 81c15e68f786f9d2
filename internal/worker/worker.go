package worker

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
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"pawl/activities"
	"pawl/activities/workspace"
	"pawl/config"
	"pawl/internal/client/launch"
	"pawl/internal/exec/sandbox"
	"pawl/internal/home"
	"pawl/internal/home/hostrecord"
	"pawl/internal/integrations/notify"
	"pawl/internal/integrations/schedule"
	"pawl/internal/integrations/trigger"
	"pawl/internal/lib/fsutil/durable"
	"pawl/internal/lib/toolpath"
	"pawl/internal/loop/api"
	"pawl/internal/spec/kind"
	"pawl/internal/telemetry"
	"pawl/workflows/display"
	loopworkflow "pawl/workflows/loop"
	stewardworkflow "pawl/workflows/steward"
)

// Options say which worker this is and where it works.
type Options struct {
	Home      home.Home
	Client    client.Client
	Namespace string
	Logger    *slog.Logger
	// Worker has the worker's settings. The zero value stands for the defaults.
	Worker config.Worker
	// Telemetry shows what the loops do; it may be nil.
	Telemetry *telemetry.Telemetry
	// Embedded says that the service is this host's own engine. Loops that it has lost are started again from their
	// ledgers.
	Embedded bool
	// Closed are the ports of a service that is not embedded. Commands of loops must not reach them.
	Closed []int
	// Services are the addresses of the service and of its UI.
	Services []string
	// Keys are files with what identifies this worker to the service.
	Keys []string
	// Ready is called once: with true when this process's worker polls, with false when another process is the host's
	// worker and this one waits to take over.
	Ready func(ours bool)
	// Triggers is called with the address of the stewards' triggers when this process begins to serve them, and with
	// "" when it stops. It may be nil.
	Triggers func(address string)
}

// Identity returns the name under which a host's worker takes tasks. It is the same in every process of the host, so
// that a new process can hand back the tasks of the last one.
func Identity(host string) string { return api.HostQueue(host) }

// SearchAttributes are the attributes of the contract with their types.
var SearchAttributes = func() map[string]enumspb.IndexedValueType {
	out := map[string]enumspb.IndexedValueType{}
	for _, a := range launch.Attributes {
		out[a.Name], _ = enumspb.IndexedValueTypeFromString(a.Type) // a test of launch checks that the type exists
	}
	return out
}()

// The worker's options that people can't set, if the SDK's default does not fit. config.Worker has those that people
// can set.
const (
	// Pause and halt reach a step with a heartbeat's answer, so that they arrive within a second.
	heartbeatThrottle = time.Second
	// A task that waits for a worker which has died is given to the next one after this time. The default is 5 s.
	stickyTimeout = time.Second
	// On a machine that builds and tests for several agents, a workflow goroutine may have to wait a second for a
	// processor. The SDK's default would call that a deadlock.
	deadlock = 20 * time.Second
)

// RunWorker runs the host's worker until ctx ends. If another process is the host's worker, it waits and takes over
// when that process is gone.
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
	if err := workspace.NoteEnvironment(o.Home); err != nil {
		return err
	}
	if err := whenItAnswers(ctx, func() error {
		_, err := o.Client.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: o.Namespace})
		return err
	}); err != nil {
		return err
	}
	// The host's own engine has no other host. So work on trees is done from the shared queue: there, a workflow task
	// brings its activity along, which saves the way through a second queue.
	queue := api.HostQueue(id)
	if o.Embedded {
		queue = api.TaskQueue
	}
	Pin()
	// The probe may take as long as starting a program, and no step should wait for it. A command that applies a
	// proposal runs nothing in a sandbox, and must not leave a probe behind.
	go sandbox.Probe()
	a := activities.New(o.Home, id, queue, o.Namespace, attributes(ctx, o))
	a.Logger, a.Telemetry = o.Logger, o.Telemetry
	a.Closed, a.Services, a.Keys = o.Closed, o.Services, o.Keys
	if !o.Embedded {
		a.MoveAfter = o.Worker.MoveAfter
	}
	if !o.Embedded || o.Worker.Agents > 0 {
		a.Agents = api.AgentQueue(id)
	}
	if err := whenItAnswers(ctx, func() error { return recoverLoops(ctx, o, id, a) }); err != nil {
		return err
	}
	a.Survey(ctx)
	return o.work(ctx, a, o.workers)
}

// work runs the workers of all queues until ctx ends or the service refuses them for good.
func (o Options) work(ctx context.Context, a *activities.Activities, made func(*activities.Activities, func(error)) []worker.Worker) error {
	polling, refuse := context.WithCancelCause(ctx)
	defer refuse(nil)
	workers := made(a, refuse)
	for i, w := range slices.Backward(workers) {
		if err := w.Start(); err != nil {
			stop(workers[i+1:])
			return fmt.Errorf("starting the worker: %w", err)
		}
	}
	o.ready(true)
	var serving sync.WaitGroup
	serving.Go(func() {
		trigger.Run(polling, trigger.Options{ // S5
			Stewards: &trigger.Temporal{Client: o.Client, Namespace: o.Namespace, Host: a.Host, Now: time.Now},
			Home:     o.Home, Logger: o.Logger, Address: o.Worker.Triggers, Serving: o.Triggers,
		})
	})
	sweep(polling, o, a)
	lastLook(ctx, o, a)
	serving.Wait()
	// Workflow tasks first, so that nothing new is scheduled while steps are being ended.
	workers[0].Stop()
	stop(workers[1:])
	a.Stop()
	if ctx.Err() == nil { // permanent: the namespace, or the access to it, is gone
		return fmt.Errorf("the service refuses the worker: %w", context.Cause(polling))
	}
	return nil
}

// workers returns a worker for each queue. The first one is for workflow tasks.
func (o Options) workers(a *activities.Activities, fatal func(error)) []worker.Worker {
	options := worker.Options{
		Identity: Identity(a.Host), WorkerStopTimeout: o.Worker.StopTimeout,
		MaxHeartbeatThrottleInterval: heartbeatThrottle, DefaultHeartbeatThrottleInterval: heartbeatThrottle,
		MaxConcurrentActivityExecutionSize: o.Worker.Activities, DeadlockDetectionTimeout: deadlock, StickyScheduleToStartTimeout: stickyTimeout,
		OnFatalError: fatal, Interceptors: o.interceptors(a),
	}
	if o.Worker.Deployment != "" {
		options.DeploymentOptions = worker.DeploymentOptions{
			UseVersioning: true,
			Version:       worker.WorkerDeploymentVersion{DeploymentName: o.Worker.Deployment, BuildID: o.Worker.BuildID},
			// A loop lives for days, and each new worker may continue it: the rules have versions of their own.
			DefaultVersioningBehavior: workflow.VersioningBehaviorAutoUpgrade,
		}
	}
	shared := worker.New(o.Client, api.TaskQueue, options)
	Register(shared)
	a.RegisterShared(shared)
	if o.Embedded {
		a.RegisterTrees(shared)
	}
	options.DisableWorkflowWorker = true
	trees := worker.New(o.Client, api.HostQueue(a.Host), options)
	a.RegisterShared(trees)
	a.RegisterTrees(trees)
	// This queue is served even if loops no longer use it, because older loops may still send their calls there.
	options.MaxConcurrentActivityExecutionSize = cmp.Or(o.Worker.Agents, config.DefaultAgents)
	agents := worker.New(o.Client, api.AgentQueue(a.Host), options)
	a.RegisterAgents(agents)
	return []worker.Worker{shared, trees, agents}
}

// interceptors stand between the service and every workflow and activity.
func (o Options) interceptors(a *activities.Activities) []interceptor.WorkerInterceptor {
	return append(a.Interceptors(), o.diffs().Interceptor(), &untold{options: o, host: a.Host})
}

// diffs reads what the activities of this host have kept of diffs that people are asked about.
func (o Options) diffs() display.Diffs {
	return func(ref, hash, all string) string {
		diff, ok := hostrecord.Diff(o.Home, ref, hash)
		if !ok {
			return ""
		}
		return diff.Markdown(all)
	}
}

// stop stops workers at the same time, because each waits for its steps.
func stop(workers []worker.Worker) {
	var ending sync.WaitGroup
	for _, w := range workers {
		ending.Go(w.Stop)
	}
	ending.Wait()
}

func (o Options) ready(ours bool) {
	if o.Ready != nil {
		o.Ready(ours)
	}
}

// Workflows has the workflow functions of all kinds, by the name of the kind.
var Workflows = func() map[string]any {
	all := maps.Clone(loopworkflow.ByKind)
	all[kind.Steward.Name] = stewardworkflow.Steward
	return all
}()

// Register registers the workflows of all kinds, those for proposals after a loop's end, and the one that submits a
// task.
func Register(r worker.WorkflowRegistry) {
	r.RegisterWorkflowWithOptions(loopworkflow.Review, workflow.RegisterOptions{Name: "Review"})
	r.RegisterWorkflowWithOptions(loopworkflow.Apply, workflow.RegisterOptions{Name: "Apply"})
	r.RegisterWorkflowWithOptions(stewardworkflow.Submit, workflow.RegisterOptions{Name: schedule.SubmitWorkflow})
	for _, k := range kind.All {
		r.RegisterWorkflowWithOptions(Workflows[k.Name], workflow.RegisterOptions{Name: k.Workflow})
	}
}

// servicePoll is the time between two tries to reach a service that does not answer.
const servicePoll = 50 * time.Millisecond

// whenItAnswers repeats do until the service can be reached. A worker that takes over from another process may have
// taken over the engine too, which then is still starting.
func whenItAnswers(ctx context.Context, do func() error) error {
	for {
		err := do()
		if _, away := errors.AsType[*serviceerror.Unavailable](err); !away {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(servicePoll):
		}
	}
}

// attributes reports whether the namespace knows all search attributes. It registers missing ones if that is allowed;
// otherwise loops work without them.
func attributes(ctx context.Context, o Options) bool {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	missing := func() map[string]enumspb.IndexedValueType {
		// GetSearchAttributes of the workflow service does not know the custom names of a namespace.
		known, err := o.Client.OperatorService().ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: o.Namespace})
		if err != nil {
			o.Logger.Debug("search attributes can't be listed", "error", err)
			return SearchAttributes
		}
		out := maps.Clone(SearchAttributes)
		maps.DeleteFunc(out, func(name string, kind enumspb.IndexedValueType) bool {
			return known.GetCustomAttributes()[name] == kind
		})
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
		o.Logger.Info("the namespace lacks pawl's search attributes, and they can't be added; loops work without them", "error", err)
		return false
	}
	return len(missing()) == 0
}

// ActiveLoops returns the IDs of this host's loops that are not over.
func ActiveLoops(ctx context.Context, h home.Home, c client.Client, namespace string) ([]string, error) {
	records, err := hostrecord.List(h)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, r := range records {
		if r.Closed || r.Namespace != namespace {
			continue
		}
		d, err := describe(ctx, c, namespace, r.Loop)
		if err == nil && !over(d.GetWorkflowExecutionInfo(), r) { // a loop that the service does not know any more is over
			out = append(out, r.Loop)
		}
	}
	return out, nil
}

// Pin finds the programs that pawl runs for itself, once for this process. A program calls it at its start; RunWorker
// calls it too.
func Pin() { toolpath.Down(append([]string{"git", "ssh", "bwrap"}, notify.Programs...)...) }
