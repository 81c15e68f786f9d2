package worker

import (
	"context"
	"errors"
	"fmt"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"

	"pawl/internal/home/hostrecord"
)

// A person may halt a loop on this host while its engine does not answer: this process, or the engine's, was stopped, or
// the disk was full. Then the end is noted with the message, and the worker sends the message when the engine answers.

// tellEnds sends the messages that people left on this host. A failure is logged, and the next look tries again.
func tellEnds(ctx context.Context, o Options, host string) {
	records, err := hostrecord.List(o.Home)
	if err != nil {
		o.Logger.Warn("this host's loops can't be listed", "error", err)
	}
	for _, r := range records {
		if r.Namespace != o.Namespace {
			continue
		}
		if err := tellEnd(ctx, o, host, r); err != nil {
			o.Logger.Warn("a loop that was halted here can't be told yet", "loop", r.Loop, "error", err)
		}
	}
	announced, err := hostrecord.Announced(o.Home)
	if err != nil {
		o.Logger.Warn("the loops that were being opened can't be listed", "error", err)
	}
	for _, r := range announced {
		if !r.Closed || r.Namespace != o.Namespace {
			continue
		}
		if err := endUnopened(ctx, o, r); err != nil {
			o.Logger.Warn("a loop that was halted here before it began can't be ended yet", "loop", r.Loop, "error", err)
		}
	}
}

// tellEnd sends a run the message that ended it here, if it has yet to get it.
func tellEnd(ctx context.Context, o Options, host string, r hostrecord.Record) error {
	end, noted := hostrecord.NotedEnd(o.Home, r)
	if !noted || end.Untold == nil || r.Closed {
		return nil
	}
	d, err := describe(ctx, o.Client, o.Namespace, r.Loop)
	if _, notFound := errors.AsType[*serviceerror.NotFound](err); err != nil && !notFound {
		return fmt.Errorf("asking about the loop: %w", err)
	}
	info := d.GetWorkflowExecutionInfo()
	runs := err == nil && !over(info, r)
	switch {
	case runs && elsewhere(info, host):
		return hostrecord.DropEnd(o.Home, r)
	case runs:
		end.Run = info.GetExecution().GetRunId()
		if err := o.Client.SignalWorkflow(ctx, r.Loop, end.Run, end.Untold.Name, end.Untold.Payload); err != nil {
			return fmt.Errorf("sending %s: %w", end.Untold.Name, err)
		}
		o.Logger.Info("a loop that was halted here while the engine did not answer is told", "loop", r.Loop)
	}
	end.Untold = nil
	return hostrecord.NoteEnd(o.Home, r, end)
}

// endUnopened ends the run of a loop or a steward that was halted here before a worker had opened it.
func endUnopened(ctx context.Context, o Options, r hostrecord.Record) error {
	d, err := describe(ctx, o.Client, o.Namespace, r.Loop)
	_, notFound := errors.AsType[*serviceerror.NotFound](err)
	if err != nil && !notFound {
		return err
	}
	info := d.GetWorkflowExecutionInfo()
	isSame := info.GetFirstRunId() == r.FirstRun
	if isSame && info.GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		if err := o.Client.TerminateWorkflow(ctx, r.Loop, "", "halted"); err != nil {
			return err
		}
	}
	hostrecord.Retract(o.Home, r)
	return nil
}

// untold sends a message that a loop has yet to get before anything of the loop begins, and before the loop gets the
// result of what a halt has ended: so it never goes on.
type untold struct {
	interceptor.WorkerInterceptorBase
	interceptor.ActivityInboundInterceptorBase
	options Options
	host    string
}

// InterceptActivity returns the interceptor of one activity.
func (u *untold) InterceptActivity(_ context.Context, next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	fresh := *u
	fresh.Next = next
	return &fresh
}

// ExecuteActivity runs the activity between two looks for such a message.
func (u *untold) ExecuteActivity(ctx context.Context, input *interceptor.ExecuteActivityInput) (any, error) {
	if err := u.tell(ctx, input); err != nil {
		return nil, err
	}
	out, err := u.Next.ExecuteActivity(ctx, input)
	if failed := u.tell(context.WithoutCancel(ctx), input); failed != nil {
		return nil, failed
	}
	return out, err
}

func (u *untold) tell(ctx context.Context, input *interceptor.ExecuteActivityInput) error {
	r, ok := u.record(ctx, input)
	if !ok {
		return nil
	}
	return tellEnd(ctx, u.options, u.host, r)
}

// record returns the record of the loop or the steward that an activity works for.
func (u *untold) record(ctx context.Context, input *interceptor.ExecuteActivityInput) (hostrecord.Record, bool) {
	if len(input.Args) > 0 {
		if concern, ok := input.Args[0].(interface{ Workspace() string }); ok {
			r, err := hostrecord.Read(u.options.Home, concern.Workspace())
			return r, err == nil
		}
	}
	return hostrecord.Latest(u.options.Home, activity.GetInfo(ctx).WorkflowExecution.ID)
}
