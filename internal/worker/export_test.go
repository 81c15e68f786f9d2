package worker

import (
	"context"

	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/worker"

	"pawl/activities"
)

// Recover does what a worker does before it polls.
func Recover(ctx context.Context, o Options, a *activities.Activities) error {
	return recoverLoops(ctx, o, a.Host, a)
}

// Sweep looks once for loops that were ended without this worker.
func Sweep(ctx context.Context, o Options, a *activities.Activities) { sweepOnce(ctx, o, a) }

// TellEnds sends the messages that people left on this host.
func TellEnds(ctx context.Context, o Options, host string) { tellEnds(ctx, o, host) }

// Interceptors are those of a worker.
func Interceptors(o Options, a *activities.Activities) []interceptor.WorkerInterceptor {
	return o.interceptors(a)
}

// LastLook is the look of a worker that leaves.
func LastLook(ctx context.Context, o Options, a *activities.Activities) { lastLook(ctx, o, a) }

// Attributes reports whether the namespace has the search attributes.
func Attributes(ctx context.Context, o Options) bool { return attributes(ctx, o) }

// Work is the part of RunWorker after the recovery, with the test's own workers. They call fatal if the service refuses
// them.
func Work(ctx context.Context, o Options, a *activities.Activities, workers func(fatal func(error)) []worker.Worker) error {
	return o.work(ctx, a, func(_ *activities.Activities, fatal func(error)) []worker.Worker { return workers(fatal) })
}
