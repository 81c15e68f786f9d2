package loop

import (
	"cmp"
	"errors"
	"strings"
	"time"

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

// stepInput is the input of a step: an api.Step, with more fields.
type stepInput interface {
	Core() *api.Step
	Asks() *api.Call
}

// stepResult is the result of a step: an api.Outcome, with more fields.
type stepResult[O any] interface {
	*O
	Core() *api.Outcome
	Said() api.Called
	Cut(spent loop.Usage)
}

// step is the envelope around one command or agent call. An interrupted step is run again from its start.
func step[O any, P stepResult[O]](ctx workflow.Context, r *run, activity, command string, input stepInput) (O, error) {
	e := newEnvelope(r, activity, command, input)
	for {
		var out O
		if err := e.awaitPermission(ctx); err != nil {
			return out, err
		}

		e.prepare(ctx)
		out, err := runStep[O, P](ctx, r, activity, e.command, input)
		outcome, called := P(&out).Core(), P(&out).Said()
		if err != nil {
			if err := e.afterFailure(ctx, *outcome, called, err); err != nil {
				return out, err
			}
			continue
		}

		denied := e.book(ctx, outcome, called)
		if err := e.settle(ctx, outcome, denied); err != nil {
			return out, err
		}
		if !outcome.Interrupted {
			e.finish(*outcome)
			return out, nil
		}
		r.repeats++ // also if the machine needed its worker back, and nobody asked for a pause
	}
}

// envelope is what a step needs from its first try to its last.
type envelope struct {
	r       *run
	step    *api.Step
	call    *api.Call // nil for a command
	traits  api.Attributes
	command string // as it is shown
	role    string // of the call
	limitMs int64  // the step's own limit, whatever the budgets leave

	refusals int // of this call, in a row
	tried    relay

	// Of the present try.
	bound    loop.Resource // the budget that limits it, "" if its own limit does
	guided   int64         // the last note of a person in the prompt
	recorded int           // events that the call brings to the ledger
}

func newEnvelope(r *run, activity, command string, input stepInput) *envelope {
	e := &envelope{r: r, step: input.Core(), call: input.Asks(), traits: api.Of(activity), command: command, limitMs: input.Core().LimitMs}
	if e.call != nil {
		e.role = e.call.Role
	}
	return e
}

// awaitPermission waits until the loop is not paused and has budget for the step (E2).
func (e *envelope) awaitPermission(ctx workflow.Context) error {
	r := e.r
	for {
		if err := r.waitIfPaused(ctx, loop.PauseStep); err != nil {
			return err
		}
		spent := rules.StepExhausted(r.free(r.State()), e.traits.Agent)
		if spent == "" {
			break
		}
		if err := r.exhausted(ctx, rules.BudgetEndOf(r.State(), spent)); err != nil {
			return err
		}
	}

	if e.traits.Agent && r.State().Underway() && r.State().IterationSteps >= r.spec.Limits.Steps {
		return stop(rules.StepsEnd(r.spec.Limits.Steps))
	}
	if e.step.AsIs && r.host.Uprooted {
		return placement.ErrLost
	}
	return nil
}

// prepare fills in what differs from try to try: the head, the limit, and what an agent is told.
func (e *envelope) prepare(ctx workflow.Context) {
	r, s := e.r, e.step
	s.Ref, s.Head, s.Key.Repeat, s.LimitMs = r.host.Opened.Ref, cmp.Or(s.At, r.State().Head), r.repeats, e.limitMs
	e.bound, e.guided, e.recorded = "", 0, 0
	if !e.traits.OwnLimit {
		e.bound = r.within(ctx, s)
	}
	if e.call != nil {
		e.prepareCall(ctx)
	}
}

// prepareCall gives an agent the notes of people, also those of a pause, the pending events and its budgets.
func (e *envelope) prepareCall(ctx workflow.Context) {
	r, call := e.r, e.call
	call.Guidance = r.State().Guidance
	if last := len(call.Guidance) - 1; last >= 0 {
		e.guided = call.Guidance[last].Seq
	}
	e.recorded = r.recordWith(ctx, call)
	r.hand(ctx, call, e.tried)

	agent := r.caller(call)
	e.command = commandOf(agent)
	call.Budget, call.SilenceMs = r.left(agent), r.spec.Silence(agent.Use).Milliseconds()
}

// afterFailure handles a step that has no outcome. After nil the step runs again.
func (e *envelope) afterFailure(ctx workflow.Context, o api.Outcome, called api.Called, err error) error {
	r := e.r
	if f := wire.Decode(err); f != nil && f.Code == fault.PermissionDenied {
		e.emitDenied(ctx, f.What)
		return stop(rules.NotPermitted.Of(f))
	}
	if errors.Is(err, placement.ErrLost) || errors.Is(err, errApart) { // but its cost was spent
		r.Emit(ctx, e.ended(o, called.Usage))
	}
	if failed := r.setupFailed(err); failed != nil {
		return r.afterSetup(ctx, failed, !e.step.Scratch)
	}
	return err
}

// book records the step with its cost. It returns the question about tools that were denied to its agent, "" for none.
func (e *envelope) book(ctx workflow.Context, o *api.Outcome, called api.Called) (denied string) {
	r := e.r
	r.setups = setups{passed: true}
	if called.Ledger != "" {
		r.Recorded(e.recorded, called.Ledger)
	}
	if o.TimedOut {
		o.Exhausted = cmp.Or(o.Exhausted, e.bound)
	}
	if o.Refused != nil { // it does not count as a call, and its wait does not count as time
		o.ElapsedMs, called.Usage.AgentCalls = 0, 0
	}

	ended := e.ended(*o, called.Usage)
	if went := !o.Interrupted && o.Exhausted == "" && o.Refused == nil; went && e.call != nil {
		denied = rules.AfterDenial(r.spec, e.call.Role, e.call.Phase, called.Withheld)
		if denied == "" { // otherwise the call may be made again, from the same files, with the same guidance
			ended.Told = e.guided
		}
	}
	r.Emit(ctx, ended)

	r.spend(*o)
	if called.Denied != "" {
		e.emitDenied(ctx, called.Denied)
	}
	if o.Warning != "" {
		r.noteForContract(ctx, e.step.Key.Name, o.Warning)
	}
	return denied
}

// settle handles a budget that the step used up, a provider's refusal and denied tools. If the step runs again, its
// outcome is Interrupted afterwards.
func (e *envelope) settle(ctx workflow.Context, o *api.Outcome, denied string) error {
	r := e.r
	refused := o.Refused != nil
	if o.Exhausted != "" { // the agent's unfinished work is undone
		if err := r.exhausted(ctx, rules.BudgetEnd(o.Exhausted)); err != nil {
			return err
		}
		o.Interrupted = true
	}

	if refused && !o.Interrupted {
		if !r.passOn(ctx, e.call, &e.tried, o) {
			e.refusals++
			if err := r.refused(ctx, e.call, *o, &e.refusals); err != nil {
				return err
			}
		}
		o.Interrupted = true
	}

	if denied != "" && !o.Interrupted {
		retry, err := r.denied(ctx, denied)
		if err != nil {
			return err
		}
		o.Interrupted = retry
	}
	return nil
}

// finish counts a step that is not run again. The time of one that is counts against no phase: it gets all of its time.
func (e *envelope) finish(o api.Outcome) {
	r := e.r
	if o.Recalled.IsZero() {
		r.iteration.phaseSpent += o.ElapsedMs
	}
	if e.traits.MakesDesk && e.step.Desk == 0 {
		r.host.Uprooted = false
	}
}

// ended returns the event of this step, with its cost and who made the call.
func (e *envelope) ended(o api.Outcome, u loop.Usage) loop.Event {
	return e.r.signed(e.r.ended(e.step, e.role, o, u), e.call)
}

func (e *envelope) emitDenied(ctx workflow.Context, cause string) {
	key := e.step.Key
	e.r.Emit(ctx, loop.Event{
		Type: loop.PermissionDenied, Step: key.Name, Role: e.role, Attempt: key.Attempt, Reason: cause, ErrorCode: string(fault.PermissionDenied),
	})
}

// spend records a step's active time in its phase, and a loop-stop file that the step saw.
func (r *run) spend(out api.Outcome) {
	iter := &r.iteration
	iter.stopAsked = cmp.Or(iter.stopAsked, out.Stop)
	if iter.phaseMs != nil && out.Recalled.IsZero() {
		iter.phaseMs[string(cmp.Or(iter.phase, r.State().Phase))] += out.ElapsedMs
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
	for _, resource := range []loop.Resource{loop.ActiveTime, loop.WallClock} {
		remaining := budget[resource].Remaining
		if remaining == nil {
			continue
		}
		if left := max(int64(remaining.Float()), time.Second.Milliseconds()); left < s.LimitMs {
			s.LimitMs, bound = left, resource
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
func (r *run) left(agent spec.Agent) map[loop.Resource]metric.Decimal {
	adapter, _ := adapter.Lookup(agent.Use)
	counted := adapter.Live
	if row, _ := agent.Row(); row.Metering.Meterable() && agent.Metered() {
		counted = []loop.Resource{loop.ToolCalls, loop.Tokens, loop.CostUSD}
	}
	left := map[loop.Resource]metric.Decimal{}
	for _, resource := range counted {
		if remaining := r.State().Budget[resource].Remaining; remaining != nil {
			left[resource] = *remaining
		}
	}
	return left
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
