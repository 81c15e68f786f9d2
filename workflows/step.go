package workflows

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"pawl/internal/act"
	"pawl/internal/agent/stream"
	"pawl/internal/evidence"
	"pawl/internal/fault"
	"pawl/internal/govern"
	"pawl/internal/loop"
	"pawl/workflows/hosting"
)

// step is the envelope around one thing that runs: it waits while the loop is paused, checks
// the clock and the budgets before (E2), lets the thing run under its limit, interrupts it for
// pause and halt, and books what it cost. An interrupted step is run again from its start.
func (r *run) step(ctx workflow.Context, s act.Step) (act.Stepped, error) {
	for {
		if err := r.holdIfPaused(ctx); err != nil {
			return act.Stepped{}, err
		}
		if spent := govern.StepExhausted(r.State(), s.Agent != nil); spent != "" {
			if err := r.exhausted(ctx, govern.BudgetEnd(spent)); err != nil {
				return act.Stepped{}, err
			}
			continue
		}
		if s.Agent != nil && r.State().Underway() && r.State().IterationSteps >= r.spec.Limits.Steps {
			return act.Stepped{}, stop(govern.StepsEnd(r.spec.Limits.Steps))
		}
		if s.AsIs && r.host.Uprooted {
			return act.Stepped{}, hosting.ErrLost
		}
		s.Ref, s.Head, s.Key.Repeat = r.host.Opened.Ref, r.State().Head, r.repeats
		s, bound := r.within(ctx, s)
		told := r.guide(&s)
		recorded := r.recordWith(ctx, &s)
		s.Budget = r.left(s)
		out, err := r.perform(ctx, s)
		if denied := refusal(err, fault.PermissionDenied); denied != "" {
			r.Emit(ctx, loop.Event{Type: loop.PermissionDenied, Step: s.Key.Name, Role: roleOf(s), Attempt: s.Key.Attempt, Reason: denied, ErrorCode: string(fault.PermissionDenied)})
			return out, stop(govern.NotPermitted.Because(denied))
		}
		if errors.Is(err, hosting.ErrLost) { // but what it cost was spent
			r.Emit(ctx, r.ended(s, out))
		}
		if err != nil {
			return out, err
		}
		if out.Ledger != "" {
			r.Recorded(recorded, out.Ledger)
		}
		out.Exhausted = cmp.Or(out.Exhausted, boundBy(out, bound))
		done := r.ended(s, out)
		if !out.Interrupted && out.Exhausted == "" {
			done.Told = told
		}
		r.Emit(ctx, done)
		r.spend(out)
		if out.Denied != "" {
			r.Emit(ctx, loop.Event{Type: loop.PermissionDenied, Step: s.Key.Name, Role: roleOf(s), Attempt: s.Key.Attempt, Reason: out.Denied, ErrorCode: string(fault.PermissionDenied)})
		}
		if out.Warning != "" {
			r.Emit(ctx, loop.Event{Type: loop.Warned, Step: s.Key.Name, Reason: out.Warning})
		}
		if out.Exhausted != "" { // what the agent had begun is undone
			if err := r.exhausted(ctx, govern.BudgetEnd(out.Exhausted)); err != nil {
				return out, err
			}
			out.Interrupted = true
		}
		if !out.Interrupted {
			r.host.Uprooted = r.host.Uprooted && s.Tree != act.Desk
			return out, nil
		}
		r.repeats++ // also where the machine wanted its worker back, and nobody asked for a pause
	}
}

// spend books a step's active time on its phase (L10), and notes a loop-stop file that it saw.
func (r *run) spend(out act.Stepped) {
	it := &r.iteration
	it.phaseSpent += out.ElapsedMs
	it.stopAsked = orElse(it.stopAsked, out.Stop)
	if it.phaseMs != nil {
		it.phaseMs[string(r.State().Phase)] += out.ElapsedMs
	}
}

// within bounds a step by the time that the loop has left (E2), and says which budget bounds it, ""
// where the step's own limit does. A measurement keeps its own: what the last of the time has made
// is still judged.
func (r *run) within(ctx workflow.Context, s act.Step) (act.Step, loop.Resource) {
	var bound loop.Resource
	if s.Measure != nil {
		return s, bound
	}
	for _, t := range []struct {
		of   loop.Resource
		used float64
	}{
		{loop.ActiveTime, r.State().Budget[loop.ActiveTime].Used.Float()},
		{loop.WallClock, float64(workflow.Now(ctx).Sub(r.State().StartedAt).Milliseconds())},
	} {
		limit := r.State().Budget[t.of].Limit
		if limit == nil {
			continue
		}
		if left := max(int64(limit.Float()-t.used), time.Second.Milliseconds()); left < s.LimitMs {
			s.LimitMs, bound = left, t.of
		}
	}
	return s, bound
}

// phaseLeft is how much of the phase's time is left, nothing where it is used up (L10).
func (r *run) phaseLeft() time.Duration {
	return max(r.spec.Limits.PhaseTimeout.D()-time.Duration(r.iteration.phaseSpent)*time.Millisecond, 0)
}

// inTime gives a step no more time than its phase has left (L10).
func (r *run) inTime(s act.Step) act.Step {
	s.LimitMs = min(s.LimitMs, max(r.phaseLeft(), time.Second).Milliseconds())
	return s
}

// recordWith lets an agent call take what is pending to the ledger first, and returns how many
// events that are. Where the call can't say what came of it they stay pending: an append finds
// that the ledger has them.
func (r *run) recordWith(ctx workflow.Context, s *act.Step) int {
	if s.Agent == nil {
		return 0
	}
	r.permitted(ctx, *s)
	s.Entry = &act.Entry{Ref: r.host.Opened.Ref, Ledger: r.State().Ledger, Events: r.Pending()}
	return len(s.Entry.Events)
}

// permitted records what a role was let do; a refusal is recorded when the gateway has refused it.
func (r *run) permitted(ctx workflow.Context, s act.Step) {
	if govern.PermitPhase(r.spec, s.Agent.Role, s.Agent.Phase) == nil {
		r.Emit(ctx, loop.Event{Type: loop.PermissionGranted, Step: s.Key.Name, Role: s.Agent.Role, Attempt: s.Key.Attempt, Reason: strings.Join(govern.Needs(s.Agent.Phase), ", ")})
	}
}

// boundBy says which budget of time ended a step, "" where a limit of its own did or nothing.
func boundBy(out act.Stepped, bound loop.Resource) loop.Resource {
	if out.TimedOut {
		return bound
	}
	return ""
}

// left is what the budgets leave for an agent call, where its program tells what it spends while
// it works: crossing one of them then ends the call at once (A2).
func (r *run) left(s act.Step) map[loop.Resource]evidence.Decimal {
	if s.Agent == nil {
		return nil
	}
	adapter, _ := stream.Lookup(r.spec.Agent.For(s.Agent.Role).Use)
	var left map[loop.Resource]evidence.Decimal
	for _, resource := range adapter.Live {
		if remaining := r.State().Budget[resource].Remaining; remaining != nil {
			if left == nil {
				left = map[loop.Resource]evidence.Decimal{}
			}
			left[resource] = *remaining
		}
	}
	return left
}

// refusal returns what an activity's refusal says, "" where err is none of that code.
func refusal(err error, code fault.Code) string {
	var app *temporal.ApplicationError
	if errors.As(err, &app) && app.Type() == string(code) {
		return app.Message()
	}
	return ""
}

// guide gives an agent call what people have said up to now, and returns the event of the last of
// it. Asked again for each repetition: a pause is when people say something.
func (r *run) guide(s *act.Step) (told int64) {
	if s.Agent == nil || len(r.State().Guidance) == 0 {
		return 0
	}
	agent := *s.Agent
	agent.Guidance = r.State().Guidance
	s.Agent = &agent
	return agent.Guidance[len(agent.Guidance)-1].Seq
}

// perform runs a step, wherever the loop's host is. One that was at work on a host that is gone counts
// as interrupted: what it has spent stays spent, and it is run again from its start.
func (r *run) perform(ctx workflow.Context, s act.Step) (act.Stepped, error) {
	for asked := 0; ; asked++ {
		out, err := r.attend(ctx, s, asked)
		spent, is := hosting.Untaken(err)
		if !is {
			return out, err
		}
		moved, err := r.host.Follow(ctx)
		if moved && err == nil && s.Agent == nil { // an agent's call records it by itself
			err = r.record(ctx, "on the host "+r.host.Opened.Host, false) // which fences the one that may not be gone
		}
		if moved || err != nil {
			return act.Stepped{Interrupted: true, Usage: spent.Usage, ElapsedMs: spent.Usage.ActiveMs}, err
		}
	}
}

// attend runs the activity of a step and watches for what may interrupt it: a pause, a halt,
// and the phase's durable timer, which triggers a check and not a verdict, since an outage or a
// laptop asleep is no fault of the step.
func (r *run) attend(ctx workflow.Context, s act.Step, asked int) (act.Stepped, error) {
	activityCtx, interrupt := workflow.WithCancel(ctx)
	future := r.host.Start(activityCtx, act.StepName, r.stepSummary(s), s, asked)
	limit := time.Duration(s.LimitMs) * time.Millisecond
	timerCtx, stopTimer := workflow.WithCancel(ctx)
	defer stopTimer()
	timer := r.phaseTimer(timerCtx, s, limit+timerSlack)
	wanted := func() bool { return r.State().HaltRequested != "" || r.State().PauseRequested }
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
			left, overdue := r.check(ctx, s, limit)
			if overdue {
				interruptedBy = true
				interrupt()
			}
			timer = r.phaseTimer(timerCtx, s, left)
		}
	}
	var out act.Stepped
	err := future.Get(workflowWaiting(ctx), &out)
	if err == nil || !(interruptedBy || temporal.IsCanceledError(err) || ctx.Err() != nil) {
		return out, err
	}
	// Cancelled before it began, or its worker died or stopped before it could say what came of it:
	// the service does not try an activity again that it was asked to cancel.
	if cancelled := ctx.Err(); cancelled != nil && r.State().HaltRequested == "" {
		return out, cancelled
	}
	return act.Stepped{Interrupted: true}, nil
}

// workflowWaiting returns a context in which the result of a cancelled activity is still awaited.
func workflowWaiting(ctx workflow.Context) workflow.Context {
	d, _ := workflow.NewDisconnectedContext(ctx)
	return d
}

// timerSlack is what the durable timer grants beyond the limit: the supervisor, which measures
// what a step really spends, is to be the first to end it.
const timerSlack = 30 * time.Second

func (r *run) phaseTimer(ctx workflow.Context, s act.Step, d time.Duration) workflow.Future {
	return workflow.NewTimerWithOptions(ctx, d, workflow.TimerOptions{Summary: fmt.Sprintf("phase limit of %s (%s)", s.Key.Name, r.State().Phase)})
}

// check asks the host what a step has really spent. A host that doesn't answer is down: the
// step is not overdue, it waits.
func (r *run) check(ctx workflow.Context, s act.Step, limit time.Duration) (again time.Duration, overdue bool) {
	var c act.Checked
	err := r.host.Execute(ctx, act.CheckName, "check on "+s.Key.Name, func() any { return act.Check{Ref: s.Ref, Key: s.Key} }, &c)
	if err != nil {
		return timerSlack, false
	}
	left := limit - time.Duration(c.SpentMs)*time.Millisecond
	return max(left, 0) + timerSlack, c.Running && left < -timerSlack
}

// ended is the event of a step that came to an end, with what it cost.
func (r *run) ended(s act.Step, out act.Stepped) loop.Event {
	u := out.Usage
	u.ActiveMs = out.ElapsedMs
	return loop.Event{
		Type: loop.StepEnded, Step: s.Key.Name, Role: roleOf(s), Attempt: s.Key.Attempt, Reason: howItEnded(out), Usage: &u,
		EvidenceIDs: evidenceOf(out),
	}
}

func roleOf(s act.Step) string {
	if s.Agent != nil {
		return s.Agent.Role
	}
	return ""
}

// summary is what the Temporal UI shows for the activity.
func (r *run) stepSummary(s act.Step) string {
	command := s.Command
	if len(command) == 3 && command[0] == "sh" && command[1] == "-c" {
		command = command[2:]
	}
	return r.summary("%s `%s`", s.Key.Name, loop.Clip(strings.Join(command, " "), 120))
}
