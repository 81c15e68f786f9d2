package loop

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/internal/loop/rules"
	"pawl/workflows/placement"
)

// runStep runs a step on the loop's host. A step that ran on a host that is gone counts as interrupted: what it has
// spent stays spent, and it is run again from its start.
func runStep[O any, P stepResult[O]](ctx workflow.Context, r *run, activity, command string, input stepInput) (O, error) {
	for retry := 0; ; retry++ {
		out, err := runOnce[O, P](ctx, r, activity, command, input, retry)
		spent, ok := placement.Untaken(err)
		if !ok {
			return out, err
		}
		if r.apart != nil {
			r.apart.untaken = true
			var cut O
			P(&cut).Cut(spent.Usage)
			return cut, errApart
		}
		moved, err := r.host.MoveIfGone(ctx)
		if moved && err == nil && !api.Of(activity).Agent { // an agent's call records it by itself
			err = r.record(ctx, "on the host "+r.host.Opened.Host, false) // fences off the old host, which may be alive
		}
		if moved || err != nil {
			var cut O
			P(&cut).Cut(spent.Usage)
			return cut, err
		}
	}
}

// runOnce runs the activity of a step and watches for interruptions: a pause, a halt, and the phase's durable timer.
// The timer triggers a check and not a verdict, since an outage or a sleeping laptop is not the step's fault.
func runOnce[O any, P stepResult[O]](ctx workflow.Context, r *run, activity, command string, input stepInput, retry int) (O, error) {
	s := *input.Core()
	activityCtx, interrupt := workflow.WithCancel(ctx)
	future := r.host.Start(activityCtx, activity, r.summary("%s `%s`", s.Key.Name, loop.Clip(command, 120)), input, retry)
	limit := time.Duration(s.LimitMs) * time.Millisecond
	timerCtx, stopTimer := workflow.WithCancel(ctx)
	defer stopTimer()
	timer := r.phaseTimer(timerCtx, s, limit+timerSlack)
	wanted := func() bool { return r.State().HaltRequested != "" || rules.PauseDue(r.State(), loop.PauseNow) }
	interruptedBy := false
	for !future.IsReady() {
		err := workflow.Await(ctx, func() bool { return future.IsReady() || timer.IsReady() || (wanted() && !interruptedBy) })
		if err != nil || ctx.Err() != nil { // the workflow was cancelled, and with it activity and timer
			break
		}
		switch {
		case future.IsReady():
		case wanted() && !interruptedBy:
			interruptedBy = true
			interrupt()
		case timer.IsReady():
			left, overdue := r.progress(ctx, s, limit)
			if overdue {
				interruptedBy = true
				interrupt()
			}
			timer = r.phaseTimer(timerCtx, s, left)
		}
	}
	var out O
	err := future.Get(workflowWaiting(ctx), &out)
	if err == nil || !(interruptedBy || temporal.IsCanceledError(err) || ctx.Err() != nil) {
		return out, err
	}
	// The activity was cancelled before it began, or its worker died or stopped before it could report. The service
	// does not retry an activity that was asked to cancel.
	if cancelled := ctx.Err(); cancelled != nil && r.State().HaltRequested == "" {
		return out, cancelled
	}
	var cut O
	P(&cut).Cut(loop.Usage{})
	return cut, nil
}

// workflowWaiting returns a context in which the result of a cancelled activity is still awaited.
func workflowWaiting(ctx workflow.Context) workflow.Context {
	d, _ := workflow.NewDisconnectedContext(ctx)
	return d
}

// timerSlack is how much longer than the limit the durable timer waits. The supervisor measures what a step really
// spends, and should be the first to end it.
const timerSlack = 30 * time.Second

func (r *run) phaseTimer(ctx workflow.Context, s api.Step, d time.Duration) workflow.Future {
	return workflow.NewTimerWithOptions(ctx, d, workflow.TimerOptions{Summary: fmt.Sprintf("phase limit of %s (%s)", s.Key.Name, r.State().Phase)})
}

// progress asks the host what a step has really spent. If the host does not answer, the step is not overdue.
func (r *run) progress(ctx workflow.Context, s api.Step, limit time.Duration) (wait time.Duration, overdue bool) {
	var c api.Spent
	err := r.host.Execute(ctx, api.ProgressName, "check on "+s.Key.Name, func() any { return api.Progress{Ref: s.Ref, Key: s.Key} }, &c)
	if err != nil {
		return timerSlack, false
	}
	left := limit - time.Duration(c.Ms)*time.Millisecond
	return max(left, 0) + timerSlack, c.Running && left < -timerSlack
}
