package loop

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"pawl/internal/agent/adapter"
	"pawl/internal/fault"
	"pawl/internal/fault/wire"
	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/internal/loop/rules"
	"pawl/internal/metric"
	"pawl/internal/spec"
	"pawl/workflows/placement"
)

// asked is the input of a step: an api.Step, with more fields.
type asked interface {
	Core() *api.Step
	Asks() *api.Call
}

// came is the result of a step: an api.Outcome, with more fields.
type came[O any] interface {
	*O
	Core() *api.Outcome
	Said() api.Called
	Cut(spent loop.Usage)
}

// step is the envelope around one command or agent call. It waits while the loop is paused, checks the clock and the
// budgets first (E2), runs the step under its limit, interrupts it for pause and halt, and books its cost. An
// interrupted step is run again from its start.
func step[O any, P came[O]](ctx workflow.Context, r *run, activity, command string, in asked) (O, error) {
	var none O
	s, limit, is := in.Core(), in.Core().LimitMs, api.Of(activity)
	role := ""
	if call := in.Asks(); call != nil {
		role = call.Role
	}
	refusals, tried := 0, relay{} // in a row, of this call
	for {
		if err := r.waitIfPaused(ctx, loop.PauseStep); err != nil {
			return none, err
		}
		if spent := rules.StepExhausted(r.free(r.State()), is.Agent); spent != "" {
			if err := r.exhausted(ctx, rules.BudgetEndOf(r.State(), spent)); err != nil {
				return none, err
			}
			continue
		}
		if is.Agent && r.State().Underway() && r.State().IterationSteps >= r.spec.Limits.Steps {
			return none, stop(rules.StepsEnd(r.spec.Limits.Steps))
		}
		if s.AsIs && r.host.Uprooted {
			return none, placement.ErrLost
		}
		s.Ref, s.Head, s.Key.Repeat, s.LimitMs = r.host.Opened.Ref, cmp.Or(s.At, r.State().Head), r.repeats, limit
		bound := loop.Resource("")
		if !is.OwnLimit {
			bound = r.within(ctx, s)
		}
		told, recorded := int64(0), 0
		if call := in.Asks(); call != nil {
			if call.Guidance = r.State().Guidance; len(call.Guidance) > 0 { // also what people have said during a pause
				told = call.Guidance[len(call.Guidance)-1].Seq
			}
			recorded = r.recordWith(ctx, call)
			r.hand(ctx, call, tried)
			own := r.caller(call)
			command = commandOf(own)
			call.Budget, call.SilenceMs = r.left(own), r.spec.Silence().Milliseconds()
		}
		out, err := runStep[O, P](ctx, r, activity, command, in)
		o, called := P(&out).Core(), P(&out).Said()
		if f := wire.Decode(err); f != nil && f.Code == fault.PermissionDenied {
			r.Emit(ctx, loop.Event{Type: loop.PermissionDenied, Step: s.Key.Name, Role: role, Attempt: s.Key.Attempt, Reason: f.What, ErrorCode: string(f.Code)})
			return out, stop(rules.NotPermitted.Of(f))
		}
		if errors.Is(err, placement.ErrLost) || errors.Is(err, errApart) { // but its cost was spent
			r.Emit(ctx, r.signed(r.ended(s, role, *o, called.Usage), in.Asks()))
		}
		if failed := r.setupFailed(err); failed != nil {
			if err := r.afterSetup(ctx, failed, !s.Scratch); err != nil {
				return out, err
			}
			continue
		}
		if err != nil {
			return out, err
		}
		r.setups = setups{passed: true}
		if called.Ledger != "" {
			r.Recorded(recorded, called.Ledger)
		}
		if o.TimedOut { // by the budget that limits the step, if one does
			o.Exhausted = cmp.Or(o.Exhausted, bound)
		}
		refused := o.Refused
		if refused != nil { // it does not count as a call, and its wait does not count as time
			o.ElapsedMs, called.Usage.AgentCalls = 0, 0
		}
		done := r.signed(r.ended(s, role, *o, called.Usage), in.Asks())
		denied := ""
		if call := in.Asks(); call != nil && !o.Interrupted && o.Exhausted == "" && refused == nil {
			denied = rules.AfterDenial(r.spec, call.Role, call.Phase, called.Withheld)
			if denied == "" { // otherwise the call may be made again, from the same files, with the same guidance
				done.Told = told
			}
		}
		r.Emit(ctx, done)
		r.spend(*o)
		if called.Denied != "" {
			r.Emit(ctx, loop.Event{Type: loop.PermissionDenied, Step: s.Key.Name, Role: role, Attempt: s.Key.Attempt, Reason: called.Denied, ErrorCode: string(fault.PermissionDenied)})
		}
		if o.Warning != "" {
			r.noteForContract(ctx, s.Key.Name, o.Warning)
		}
		if o.Exhausted != "" { // the agent's unfinished work is undone
			if err := r.exhausted(ctx, rules.BudgetEnd(o.Exhausted)); err != nil {
				return out, err
			}
			o.Interrupted = true
		}
		if refused != nil && !o.Interrupted {
			if !r.passOn(ctx, in.Asks(), &tried, o) {
				refusals++
				if err := r.refused(ctx, in.Asks(), *o, &refusals); err != nil {
					return out, err
				}
			}
			o.Interrupted = true
		}
		if denied != "" && !o.Interrupted {
			if o.Interrupted, err = r.denied(ctx, denied); err != nil {
				return out, err
			}
		}
		if !o.Interrupted { // else its time counts against no phase, since it is run again from its start, with all of its time
			if o.Recalled.IsZero() {
				r.iteration.phaseSpent += o.ElapsedMs
			}
			r.host.Uprooted = r.host.Uprooted && (!is.MakesDesk || s.Desk != 0)
			return out, nil
		}
		r.repeats++ // also if the machine needed its worker back, and nobody asked for a pause
	}
}

// spend records a step's active time in its phase, and a loop-stop file that the step saw.
func (r *run) spend(out api.Outcome) {
	it := &r.iteration
	it.stopAsked = cmp.Or(it.stopAsked, out.Stop)
	if it.phaseMs != nil && out.Recalled.IsZero() {
		it.phaseMs[string(cmp.Or(it.phase, r.State().Phase))] += out.ElapsedMs
	}
}

// free returns the state with the budgets that steps may use, without the reserve for measurements at the end.
func (r *run) free(s loop.State) loop.State {
	s.Budget = s.Budget.Keeping(loop.ActiveTime, r.reserve())
	return s
}

// within limits a step to the loop's time (E2). It returns the budget that limits it, "" if its own limit does.
func (r *run) within(ctx workflow.Context, s *api.Step) (bound loop.Resource) {
	budget := r.free(r.State()).Clocked(workflow.Now(ctx))
	for _, of := range []loop.Resource{loop.ActiveTime, loop.WallClock} {
		remaining := budget[of].Remaining
		if remaining == nil {
			continue
		}
		if left := max(int64(remaining.Float()), time.Second.Milliseconds()); left < s.LimitMs {
			s.LimitMs, bound = left, of
		}
	}
	return bound
}

// phaseLeft returns the rest of the phase's time, 0 if it is used up (L10).
func (r *run) phaseLeft() time.Duration {
	return max(r.spec.Limits.PhaseTimeout.D()-time.Duration(r.iteration.phaseSpent)*time.Millisecond, 0)
}

// inTime gives a step no more time than its phase has left (L10).
func (r *run) inTime(s *api.Step) {
	s.LimitMs = min(s.LimitMs, max(r.phaseLeft(), time.Second).Milliseconds())
}

// recordWith records that the role has its permission, and lets an agent call bring the pending events to the ledger
// first. It returns how many they are. If the call can't report its result they stay pending: an append then finds that
// the ledger has them.
func (r *run) recordWith(ctx workflow.Context, c *api.Call) int {
	if rules.PermitPhase(r.spec, c.Role, c.Phase) == nil { // activities report refusals
		r.Emit(ctx, loop.Event{Type: loop.PermissionGranted, Phase: r.iteration.phase, Step: c.Key.Name, Role: c.Role, Attempt: c.Key.Attempt, Idea: r.iteration.idea, Reason: strings.Join(rules.Needs(c.Phase), ", ")})
	}
	if c.Ledger = r.State().Ledger; r.apart == nil { // otherwise others are at work, and the events were recorded before
		c.Events = r.Pending()
	}
	return len(c.Events)
}

// left returns what the budgets leave for an agent call, if its program or pawl's meter reports spending while it
// works. Crossing one of these budgets ends the call at once (A2).
func (r *run) left(own spec.Agent) map[loop.Resource]metric.Decimal {
	adapter, _ := adapter.Lookup(own.Use)
	told := adapter.Live
	if row, _ := own.Row(); row.Metering.Meterable() && own.Metered() {
		told = []loop.Resource{loop.ToolCalls, loop.Tokens, loop.CostUSD}
	}
	left := map[loop.Resource]metric.Decimal{}
	for _, resource := range told {
		if remaining := r.State().Budget[resource].Remaining; remaining != nil {
			left[resource] = *remaining
		}
	}
	return left
}

// runStep runs a step on the loop's host. A step that ran on a host that is gone counts as interrupted: what it has
// spent stays spent, and it is run again from its start.
func runStep[O any, P came[O]](ctx workflow.Context, r *run, activity, command string, in asked) (O, error) {
	for again := 0; ; again++ {
		out, err := runOnce[O, P](ctx, r, activity, command, in, again)
		spent, is := placement.Untaken(err)
		if !is {
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
func runOnce[O any, P came[O]](ctx workflow.Context, r *run, activity, command string, in asked, again int) (O, error) {
	s := *in.Core()
	activityCtx, interrupt := workflow.WithCancel(ctx)
	future := r.host.Start(activityCtx, activity, r.summary("%s `%s`", s.Key.Name, loop.Clip(command, 120)), in, again)
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
func (r *run) progress(ctx workflow.Context, s api.Step, limit time.Duration) (again time.Duration, overdue bool) {
	var c api.Spent
	err := r.host.Execute(ctx, api.ProgressName, "check on "+s.Key.Name, func() any { return api.Progress{Ref: s.Ref, Key: s.Key} }, &c)
	if err != nil {
		return timerSlack, false
	}
	left := limit - time.Duration(c.Ms)*time.Millisecond
	return max(left, 0) + timerSlack, c.Running && left < -timerSlack
}

// ended returns the event of a step that has ended, with its cost.
func (r *run) ended(s *api.Step, role string, out api.Outcome, u loop.Usage) loop.Event {
	if out.Recalled.IsZero() {
		u.ActiveMs = out.ElapsedMs
	}
	e := loop.Event{
		Type: loop.StepEnded, Phase: r.iteration.phase, Step: s.Key.Name, Role: role, Attempt: s.Key.Attempt, Reason: out.Ending(), Usage: &u,
		EvidenceIDs: evidenceOf(out), RateLimit: out.RateLimit, Outcome: string(out.Class),
	}
	if c := r.candidate; c != nil {
		e.Candidate = &loop.Candidate{N: c.N, Desk: c.Desk}
	}
	return e
}
