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
	inner := *a
	inner.Next = next
	return &inner
}

// ExecuteActivity runs the activity with what is done around it.
func (a *around) ExecuteActivity(ctx context.Context, input *interceptor.ExecuteActivityInput) (any, error) {
	return a.does(ctx, input, a.Next)
}

// reported logs how an activity ends, with loop, iteration and phase, which the SDK's own log lines lack.
func (a *Activities) reported(ctx context.Context, input *interceptor.ExecuteActivityInput, next interceptor.ActivityInboundInterceptor) (any, error) {
	began := time.Now()
	out, err := next.ExecuteActivity(ctx, input)
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
	for _, arg := range input.Args {
		if concern, ok := arg.(api.Concern); ok {
			iteration, text, name := concern.Concerns()
			attrs = append(attrs, slog.Int("iteration", iteration), slog.String(text, name))
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
	if _, wrapped := errors.AsType[*temporal.ApplicationError](err); wrapped || text == err.Error() {
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
func (a *Activities) mended(ctx context.Context, input *interceptor.ExecuteActivityInput, next interceptor.ActivityInboundInterceptor) (any, error) {
	out, err := next.ExecuteActivity(ctx, input)
	if err == nil || expected(err) || ctx.Err() != nil || len(input.Args) == 0 {
		return out, err
	}
	holder, ok := input.Args[0].(interface{ Workspace() string })
	if !ok {
		return out, err
	}
	if a.MendAfter(ctx, holder.Workspace(), err) {
		if out, err = next.ExecuteActivity(ctx, input); err == nil || expected(err) || ctx.Err() != nil {
			return out, err
		}
	}
	if needing, ok := input.Args[0].(api.Needing); ok {
		if lost := a.Lost(ctx, holder.Workspace(), needing.Needs(), err); lost != nil {
			return nil, lost
		}
	}
	return out, err
}
