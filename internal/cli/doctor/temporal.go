package doctor

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/timestamppb"

	"pawl/config"
	"pawl/internal/fault"
	"pawl/internal/lib/list"
	"pawl/internal/loop/api"
	hostworker "pawl/internal/worker"
)

// temporal checks the engine, if it is pawl's own, and the service.
func (e *examination) temporal() {
	if e.o.TemporalErr != nil {
		e.failed("Temporal", "Correct the variables TEMPORAL_* or the file temporal.toml.", "its settings can't be used: %v", firstLine(e.o.TemporalErr))
		return
	}
	t := e.o.Temporal
	if !t.Explicit {
		if e.o.Engine == nil {
			e.failed("Temporal", "Set TEMPORAL_ADDRESS, or a profile in temporal.toml.", "no service is configured, and this program has no engine of its own")
			return
		}
		if e.o.HomeErr != nil {
			return // the engine would be in that folder
		}
		g, running := e.engine()
		if !running {
			return
		}
		t = t.At(g.Address, g.Pass, g.ID, func() string { return g.Address })
	}
	c, err := e.o.Dial(e.ctx, t)
	if err != nil {
		fix := "Start the engine with `pawl up`."
		if t.Explicit {
			fix = "Check TEMPORAL_ADDRESS and temporal.toml, and that the service runs: temporal operator cluster health --address " + t.Address + "."
		}
		e.failed("Temporal", fix, "%s", firstLine(err))
		return
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(e.ctx, 10*time.Second)
	defer cancel()
	server := "a server of unknown version"
	if info, err := c.WorkflowService().GetSystemInfo(ctx, &workflowservice.GetSystemInfoRequest{}); err == nil && info.GetServerVersion() != "" {
		server = "server " + info.GetServerVersion()
	}
	e.ok("Temporal", "%s, %s", t.Address, server)
	e.strangers(ctx, t)

	d, err := c.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: t.Namespace})
	_, unknown := errors.AsType[*serviceerror.NamespaceNotFound](err)
	switch {
	case unknown:
		e.failed("namespace", fmt.Sprintf("Create it: temporal operator namespace create --namespace %s, or set TEMPORAL_NAMESPACE.", t.Namespace), "%s does not exist", t.Namespace)
		return
	case err != nil:
		e.failed("namespace", "Check that this user may use the namespace (TEMPORAL_API_KEY, certificates).", "%s can't be used: %s", t.Namespace, firstLine(err))
		return
	}
	retention := d.GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration()
	if retention > 0 && retention < 7*24*time.Hour {
		e.note("namespace", fmt.Sprintf("Keep loops longer: temporal operator namespace update --namespace %s --retention 90d", t.Namespace),
			"%s; Temporal forgets ended loops after %s (their ledgers stay)", t.Namespace, retention)
	} else {
		e.ok("namespace", "%s, ended loops stay for %d days", t.Namespace, int(retention.Hours()/24))
	}
	e.attributes(ctx, c, t.Namespace)
	e.workers(ctx, c, t.Namespace)
	e.skew(c, t.Namespace)
}

// strangers checks whether the service requires a token. It sends a signal, as an approval does, without API key and
// certificate, to a loop that does not exist.
func (e *examination) strangers(ctx context.Context, t config.Temporal) {
	const name = "who may approve"
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	c, err := e.o.Dial(ctx, t.Stranger())
	if err == nil {
		defer c.Close()
		_, err = c.WorkflowService().SignalWorkflowExecution(ctx, &workflowservice.SignalWorkflowExecutionRequest{
			Namespace: t.Namespace, SignalName: "approve", WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: "pawl-doctor-" + rand.Text()},
		})
		if _, missing := errors.AsType[*serviceerror.NotFound](err); err == nil || missing {
			fix := "Have the service require an API key or a certificate (TEMPORAL_API_KEY, TEMPORAL_TLS_CLIENT_CERT_PATH), or keep its address out of reach."
			if !t.Explicit {
				fix = "Start the engine with `pawl up --auth`: it then requires a token."
			}
			e.note(name, fix, "everyone who reaches %s: it requires no token, API key or certificate", t.Address)
			return
		}
	}
	if !refused(ctx, err) {
		e.note(name, "Try again once the service answers.", "unknown: the signal without a token was neither taken nor refused: %s", firstLine(err))
		return
	}
	e.ok(name, "only those who have the token, API key or certificate: a signal without them was refused")
}

// refused reports whether a service has turned a stranger away: it says so, or does not speak without a certificate.
func refused(ctx context.Context, err error) bool {
	if ctx.Err() != nil {
		return false
	}
	if fault.CodeOf(err) != "" { // there was no connection
		return true
	}
	return slices.Contains([]codes.Code{codes.PermissionDenied, codes.Unauthenticated}, serviceerror.ToStatus(err).Code())
}

// attributes checks that the contract's search attributes are registered.
func (e *examination) attributes(ctx context.Context, c client.Client, namespace string) {
	const name = "search attributes"
	registered, err := c.OperatorService().ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: namespace})
	if err != nil {
		e.note(name, "Loops run without them if the worker can't list them either.", "they can't be listed: %s", firstLine(err))
		return
	}
	var lacking, wrong []string
	for _, attribute := range slices.Sorted(maps.Keys(hostworker.SearchAttributes)) {
		switch have, ok := registered.GetCustomAttributes()[attribute]; {
		case !ok:
			lacking = append(lacking, attribute)
		case have != hostworker.SearchAttributes[attribute]:
			wrong = append(wrong, attribute)
		}
	}
	switch {
	case len(wrong) > 0:
		e.note(name, "Remove them; a worker then registers them again. Until then loops run without them.", "of another type than pawl's: %s", strings.Join(wrong, ", "))
	case len(lacking) > 0:
		e.note(name, "A worker registers them when it starts, if it may. Otherwise run: temporal operator search-attribute create --namespace "+namespace+" …",
			"not registered: %s", strings.Join(lacking, ", "))
	default:
		e.ok(name, "all %d are registered", len(hostworker.SearchAttributes))
	}
}

// workers checks whether a worker would run a loop.
func (e *examination) workers(ctx context.Context, c client.Client, namespace string) {
	d, err := c.WorkflowService().DescribeTaskQueue(ctx, &workflowservice.DescribeTaskQueueRequest{
		Namespace: namespace, TaskQueue: &taskqueuepb.TaskQueue{Name: api.TaskQueue}, TaskQueueType: enumspb.TASK_QUEUE_TYPE_WORKFLOW,
	})
	switch {
	case err != nil:
		e.note("worker", "Check that this user may use the namespace.", "the task queue %s can't be read: %s", api.TaskQueue, firstLine(err))
	case len(d.GetPollers()) == 0:
		e.note("worker", "`pawl up` and `pawl run` start one.", "none takes tasks from the queue %s", api.TaskQueue)
	default:
		names := list.Map(d.GetPollers(), func(p *taskqueuepb.PollerInfo) string { return p.GetIdentity() })
		e.ok("worker", "%s", strings.Join(slices.Compact(slices.Sorted(slices.Values(names))), ", "))
	}
}

// A difference between the clocks is fine up to smallSkew, and a failure above largeSkew. Budgets and escalations use
// the server's time, and the use of a step is measured with this machine's time.
const (
	smallSkew = 2 * time.Second
	largeSkew = time.Minute
)

// skew compares the server's time with this machine's. No call returns the server's time, but the server records when
// a poller came. So skew polls a queue of its own for a moment and reads that record.
func (e *examination) skew(c client.Client, namespace string) {
	const name = "clock of the server"
	ctx, cancel := context.WithTimeout(e.ctx, 3*time.Second)
	defer cancel()
	queue := &taskqueuepb.TaskQueue{Name: "pawl-doctor"}
	identity := fmt.Sprintf("pawl-doctor-%d", time.Now().UnixNano())
	start := time.Now()
	go func() {
		_, _ = c.WorkflowService().PollWorkflowTaskQueue(ctx, &workflowservice.PollWorkflowTaskQueueRequest{Namespace: namespace, TaskQueue: queue, Identity: identity})
	}()
	for {
		d, err := c.WorkflowService().DescribeTaskQueue(ctx, &workflowservice.DescribeTaskQueueRequest{Namespace: namespace, TaskQueue: queue, TaskQueueType: enumspb.TASK_QUEUE_TYPE_WORKFLOW})
		if err != nil {
			e.note(name, "Compare the two clocks by hand.", "its time can't be read: %s", firstLine(err))
			return
		}
		for _, p := range d.GetPollers() {
			if p.GetIdentity() == identity {
				e.skewed(name, apart(p.GetLastAccessTime(), start, time.Now()))
				return
			}
		}
		time.Sleep(20 * time.Millisecond) // the service may be somebody's cluster
	}
}

// apart returns how far a time is outside of an interval.
func apart(stamp *timestamppb.Timestamp, start, end time.Time) time.Duration {
	switch t := stamp.AsTime(); {
	case t.Before(start):
		return t.Sub(start)
	case t.After(end):
		return t.Sub(end)
	}
	return 0
}

func (e *examination) skewed(name string, offset time.Duration) {
	const fix = "Let both machines take their time from the network (timedatectl set-ntp true)."
	switch abs := offset.Abs(); {
	case abs <= smallSkew:
		e.ok(name, "agrees with this machine's")
	case abs <= largeSkew:
		e.note(name, fix, "it differs from this machine's by %s", offset.Round(100*time.Millisecond))
	default:
		e.failed(name, fix, "it differs from this machine's by %s", offset.Round(time.Second))
	}
}

// engine checks the embedded engine.
func (e *examination) engine() (g Engine, running bool) {
	g, err := e.o.Engine(e.ctx, e.o.Home.Engine())
	if err != nil {
		e.failed("engine", "Check the folder "+e.o.Home.Engine()+".", "it can't be read: %s", firstLine(err))
		return g, false
	}
	switch {
	case g.Damaged:
		e.note("engine's database", "The next `pawl up` moves it aside; this host's loops continue from their ledgers.", "%s is damaged", g.Database)
	case g.Unread != "":
		e.failed("engine's database", "The engine repairs it when it starts: stop the running `pawl up`, and start it again. Loops continue from their ledgers.", "%s has rows that can't be read: %s", g.Database, g.Unread)
	case g.Version == "" && g.Running:
		e.failed("engine's database", fmt.Sprintf("End process %d and start `pawl up` again; this host's loops continue from their ledgers.", g.Owner),
			"%s was deleted while the engine runs, so what the engine records is lost when it ends", g.Database)
	case g.Version == "":
		e.ok("engine's database", "there is none yet; the first start creates it")
	case g.Version != g.Wanted:
		e.note("engine's database", "The next `pawl up` moves it aside; this host's loops continue from their ledgers.", "schema %s, and this pawl writes %s", g.Version, g.Wanted)
	default:
		e.ok("engine's database", "%s, %s, schema %s", g.Database, bytes(g.Size), g.Version)
	}
	switch {
	case g.Running:
		e.ok("engine", "runs in process %d; UI %s", g.Owner, g.UI)
	case g.Held:
		e.failed("engine", fmt.Sprintf("If it does not come back, end process %d; the next `pawl up` takes over.", g.Owner), "process %d holds its lock, but the engine does not answer", g.Owner)
	default:
		e.note("engine", "`pawl up` and `pawl run` start it.", "is not running")
	}
	if !g.Running && len(g.Taken) > 0 {
		e.note("ports", "The engine takes the next free ports and says so. If your own Temporal listens there, set TEMPORAL_ADDRESS.", "other programs listen on %s", strings.Join(g.Taken, " and "))
	} else if !g.Running {
		e.ok("ports", "Temporal's default ports are free")
	}
	return g, g.Running
}

// firstLine returns the first line of an error.
func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}
