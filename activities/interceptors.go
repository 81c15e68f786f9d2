package activities

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"

	"pawl/internal/lib/fsutil/dirfd"
	"pawl/internal/loop/api"
)

// Interceptors returns the interceptors for every activity of a worker.
func (a *Activities) Interceptors() []interceptor.WorkerInterceptor {
	return []interceptor.WorkerInterceptor{&around{does: a.reported}, &around{does: a.Beating}, &around{does: a.mended}}
}

// around is an interceptor that does something around each activity. Each activity gets a copy of it.
type around struct {
	interceptor.WorkerInterceptorBase
	interceptor.ActivityInboundInterceptorBase
	does func(context.Context, *interceptor.ExecuteActivityInput, interceptor.ActivityInboundInterceptor) (any, error)
}

// InterceptActivity returns the interceptor of one activity.
func (a *around) InterceptActivity(_ context.Context, next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	in := *a
	in.Next = next
	return &in
}

// ExecuteActivity runs the activity with what is done around it.
func (a *around) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	return a.does(ctx, in, a.Next)
}

// reported logs how an activity ends, with loop, iteration and phase, which the SDK's own log lines lack.
func (a *Activities) reported(ctx context.Context, in *interceptor.ExecuteActivityInput, next interceptor.ActivityInboundInterceptor) (any, error) {
	began := time.Now()
	out, err := next.ExecuteActivity(ctx, in)
	err = known(err)
	level, text := slog.LevelDebug, "activity done"
	if err != nil {
		text = "activity failed"
		if !expected(err) {
			level = slog.LevelWarn
		}
	}
	if !a.Logger.Enabled(ctx, level) {
		return out, err
	}
	info := activity.GetInfo(ctx)
	attrs := []slog.Attr{slog.String("loop", info.WorkflowExecution.ID)}
	for _, arg := range in.Args {
		if of, ok := arg.(api.Concern); ok {
			iteration, what, name := of.Concerns()
			attrs = append(attrs, slog.Int("iteration", iteration), slog.String(what, name))
		}
	}
	attrs = append(attrs, slog.String("activity", info.ActivityType.Name), slog.Int("attempt", int(info.Attempt)), slog.Duration("took", time.Since(began)))
	if err != nil {
		attrs = append(attrs, slog.Any("error", err))
	}
	a.Logger.LogAttrs(ctx, level, text, attrs...)
	return out, err
}

// known returns an error with paths that people know: `pawl show` shows it while the activity is tried again.
func known(err error) error {
	if err == nil {
		return nil
	}
	text := dirfd.Known(err.Error())
	if _, told := errors.AsType[*temporal.ApplicationError](err); told || text == err.Error() {
		return err
	}
	return temporal.NewApplicationErrorWithCause(text, "", err)
}

// expected reports whether an error is part of normal operation: a worker stops, or a step was interrupted.
func expected(err error) bool {
	if app, ok := errors.AsType[*temporal.ApplicationError](err); ok && app.Category() == temporal.ApplicationErrorCategoryBenign {
		return true
	}
	return temporal.IsCanceledError(err) || errors.Is(err, context.Canceled)
}

// mended repairs the damage that an activity found, and lets the activity try again.
func (a *Activities) mended(ctx context.Context, in *interceptor.ExecuteActivityInput, next interceptor.ActivityInboundInterceptor) (any, error) {
	out, err := next.ExecuteActivity(ctx, in)
	if err == nil || expected(err) || ctx.Err() != nil || len(in.Args) == 0 {
		return out, err
	}
	of, ok := in.Args[0].(interface{ Workspace() string })
	if !ok {
		return out, err
	}
	if a.MendAfter(ctx, of.Workspace(), err) {
		if out, err = next.ExecuteActivity(ctx, in); err == nil || expected(err) || ctx.Err() != nil {
			return out, err
		}
	}
	if needing, ok := in.Args[0].(api.Needing); ok {
		if lost := a.Lost(ctx, of.Workspace(), needing.Needs(), err); lost != nil {
			return nil, lost
		}
	}
	return out, err
}
