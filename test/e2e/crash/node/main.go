//go:build crashtest

// Command node is one process of pawl for the end-to-end tests: the engine, the worker of $PAWL_HOME, or both, until it
// is stopped or killed. It exists because only programs that are built with the tag crashtest have the crash hooks. It
// prints "engine ADDRESS" when the engine answers, and "worker" when the worker polls.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"pawl/config"
	"pawl/internal/agent/acp"
	"pawl/internal/engine"
	"pawl/internal/exec/supervisor"
	"pawl/internal/home"
	"pawl/internal/lib/crashpoint"
	"pawl/internal/steward/task"
	"pawl/internal/telemetry"
	hostworker "pawl/internal/worker"
)

func main() {
	acp.Main()
	supervisor.Main()
	port := flag.Int("port", 0, "the engine's preferred port")
	address := flag.String("address", "", "the engine, where it is another process")
	runEngine := flag.Bool("engine", false, "run the engine")
	long := flag.Int("long", 0, "how many events make a history so long that it goes on as a new run")
	runWorker := flag.Bool("worker", false, "run the worker")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *runEngine, *runWorker, *port, *long, *address); err != nil {
		fmt.Fprintln(os.Stderr, "node:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, runEngine, runWorker bool, port, long int, address string) error {
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelInfo}))
	h, err := home.Open()
	if err != nil {
		return err
	}
	if runEngine {
		e, err := engine.Share(ctx, engine.Options{Dir: h.Engine(), Port: port, LongHistory: long, Logger: logger, SearchAttributes: hostworker.SearchAttributes})
		if err != nil {
			return err
		}
		defer e.Close()
		address = e.Endpoint().Address
		fmt.Println("engine", address)
	}
	if !runWorker {
		<-ctx.Done()
		return nil
	}
	id, err := h.HostID()
	if err != nil {
		return err
	}
	settings, err := config.Telemetry()
	if err != nil {
		return err
	}
	shown, err := telemetry.Start(ctx, settings, hostworker.Identity(id), logger)
	if err != nil {
		return err
	}
	defer shown.Shutdown(context.Background())
	c, err := dial(ctx, address, hostworker.Identity(id), logger, shown)
	if err != nil {
		return err
	}
	defer c.Close()
	return hostworker.RunWorker(ctx, hostworker.Options{
		Home: h, Client: c, Namespace: config.DefaultNamespace, Logger: logger, Telemetry: shown,
		Embedded: runEngine, // else the worker treats the service as another host's
		Ready: func(ours bool) {
			if ours {
				fmt.Println("worker")
			}
		},
	})
}

// dial is config.Dial with an interceptor, which the client passes on to its workers.
func dial(ctx context.Context, address, identity string, logger *slog.Logger, shown *telemetry.Telemetry) (client.Client, error) {
	o := client.Options{
		HostPort: address, Namespace: config.DefaultNamespace, Identity: identity, Logger: log.NewStructuredLogger(logger),
		Interceptors: []interceptor.ClientInterceptor{&hooks{}},
		ConnectionOptions: client.ConnectionOptions{DialOptions: []grpc.DialOption{
			grpc.WithNoProxy(),
			grpc.WithConnectParams(grpc.ConnectParams{
				Backoff:           backoff.Config{BaseDelay: 20 * time.Millisecond, Multiplier: 1.5, MaxDelay: 500 * time.Millisecond},
				MinConnectTimeout: time.Second,
			}),
		}},
	}
	shown.Equip(&o)
	return client.DialContext(ctx, o)
}

// hooks are the crash points that no activity can have. Those inside a workflow task come before it asks for an
// activity, starts a child, tells another workflow something or asks for a new run; phases without activities (review,
// decide, log) are there, too. The others are between an activity's end and its report.
type hooks struct {
	interceptor.ClientInterceptorBase
	interceptor.WorkerInterceptorBase
}

func (*hooks) InterceptWorkflow(_ workflow.Context, next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	in := &inbound{}
	in.Next = next
	return in
}

func (*hooks) InterceptActivity(_ context.Context, next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	in := &activityInbound{}
	in.Next = next
	return in
}

type inbound struct {
	interceptor.WorkflowInboundInterceptorBase
}

func (i *inbound) Init(next interceptor.WorkflowOutboundInterceptor) error {
	out := &outbound{}
	out.Next = next
	return i.Next.Init(out)
}

type outbound struct {
	interceptor.WorkflowOutboundInterceptorBase
}

func (o *outbound) ExecuteActivity(ctx workflow.Context, name string, args ...any) workflow.Future {
	if !workflow.IsReplaying(ctx) {
		crashpoint.At("task." + name)
	}
	return o.Next.ExecuteActivity(ctx, name, args...)
}

func (o *outbound) ExecuteChildWorkflow(ctx workflow.Context, kind string, args ...any) workflow.ChildWorkflowFuture {
	if !workflow.IsReplaying(ctx) {
		crashpoint.At("task." + kind)
	}
	return o.Next.ExecuteChildWorkflow(ctx, kind, args...)
}

func (o *outbound) SignalExternalWorkflow(ctx workflow.Context, workflowID, runID, signal string, arg any) workflow.Future {
	if !workflow.IsReplaying(ctx) && signal != task.ChildSignal {
		crashpoint.At("task.Tell")
	}
	return o.Next.SignalExternalWorkflow(ctx, workflowID, runID, signal, arg)
}

func (o *outbound) NewContinueAsNewError(ctx workflow.Context, kind any, args ...any) error {
	if !workflow.IsReplaying(ctx) {
		crashpoint.At("task.ContinueAsNew")
	}
	return o.Next.NewContinueAsNewError(ctx, kind, args...)
}

type activityInbound struct {
	interceptor.ActivityInboundInterceptorBase
}

func (a *activityInbound) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	out, err := a.Next.ExecuteActivity(ctx, in)
	if err == nil {
		crashpoint.At("report." + activity.GetInfo(ctx).ActivityType.Name)
	}
	return out, err
}
