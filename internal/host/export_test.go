package host

import (
	"context"

	"pawl/activities"
)

// Recover does what a worker does before it polls.
func Recover(ctx context.Context, o Options, a *activities.Activities) error {
	return recoverLoops(ctx, o, a.Host, a)
}

// Sweep looks once for loops that were ended without this worker.
func Sweep(ctx context.Context, o Options, a *activities.Activities) { sweepOnce(ctx, o, a) }

// Attributes reports whether the namespace has the search attributes.
func Attributes(ctx context.Context, o Options) bool { return attributes(ctx, o) }
