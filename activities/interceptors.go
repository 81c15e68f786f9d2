package activities

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"

	"pawl/activities/recording"
	"pawl/internal/act"
	"pawl/internal/held"
)

// Interceptors returns the interceptors for every activity of a worker.
func (a *Activities) Interceptors() []interceptor.WorkerInterceptor {
	return []interceptor.WorkerInterceptor{&reporter{logger: a.Logger}, a.Heartbeats(), &mender{a: a.Mender}}
}

// reporter logs how activities end, with loop, iteration and phase, which the SDK's own log lines lack.
type reporter struct {
	interceptor.WorkerInterceptorBase
	logger *slog.Logger
}

func (r *reporter) InterceptActivity(_ context.Context, next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	in := &logged{logger: r.logger}
	in.Next = next
	return in
}

type logged struct {
	interceptor.ActivityInboundInterceptorBase
	logger *slog.Logger
}

// ExecuteActivity runs the activity and logs the result.
func (r *logged) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	began := time.Now()
	out, err := r.Next.ExecuteActivity(ctx, in)
	err = known(err)
	level, text := slog.LevelDebug, "activity done"
	if err != nil {
		text = "activity failed"
		if !expected(err) {
			level = slog.LevelWarn
		}
	}
	if !r.logger.Enabled(ctx, level) {
		return out, err
	}
	info := activity.GetInfo(ctx)
	attrs := []slog.Attr{slog.String("loop", info.WorkflowExecution.ID)}
	for _, arg := range in.Args {
		if of, ok := arg.(act.Concern); ok {
			iteration, what, name := of.Concerns()
			attrs = append(attrs, slog.Int("iteration", iteration), slog.String(what, name))
		}
	}
	attrs = append(attrs, slog.String("activity", info.ActivityType.Name), slog.Int("attempt", int(info.Attempt)), slog.Duration("took", time.Since(began)))
	if err != nil {
		attrs = append(attrs, slog.Any("error", err))
	}
	r.logger.LogAttrs(ctx, level, text, attrs...)
	return out, err
}

// known returns an error with the paths that people know, because `pawl show` shows it while the activity is tried
// again.
func known(err error) error {
	if err == nil {
		return nil
	}
	text := held.Known(err.Error())
	if _, told := errors.AsType[*temporal.ApplicationError](err); told || text == err.Error() {
		return err
	}
	return temporal.NewApplicationErrorWithCause(text, "", err)
}

// expected reports whether an error belongs to normal operation: a worker that stops, or a step that was interrupted
// on purpose.
func expected(err error) bool {
	if app, ok := errors.AsType[*temporal.ApplicationError](err); ok && app.Category() == temporal.ApplicationErrorCategoryBenign {
		return true
	}
	return temporal.IsCanceledError(err) || errors.Is(err, context.Canceled)
}

// mender repairs the damage that an activity found, and lets the activity try again.
type mender struct {
	interceptor.WorkerInterceptorBase
	a *recording.Mender
}

func (m *mender) InterceptActivity(_ context.Context, next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	in := &mended{a: m.a}
	in.Next = next
	return in
}

type mended struct {
	interceptor.ActivityInboundInterceptorBase
	a *recording.Mender
}

// ExecuteActivity runs the activity, and again after a repair.
func (m *mended) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	out, err := m.Next.ExecuteActivity(ctx, in)
	if err == nil || expected(err) || ctx.Err() != nil || len(in.Args) == 0 {
		return out, err
	}
	of, ok := in.Args[0].(interface{ Workspace() string })
	if !ok {
		return out, err
	}
	if m.a.MendAfter(ctx, of.Workspace(), err) {
		if out, err = m.Next.ExecuteActivity(ctx, in); err == nil || expected(err) || ctx.Err() != nil {
			return out, err
		}
	}
	if needing, ok := in.Args[0].(act.Needing); ok {
		if lost := m.a.Lost(ctx, of.Workspace(), needing.Needs(), err); lost != nil {
			return nil, lost
		}
	}
	return out, err
}
