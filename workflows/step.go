package workflows

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
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
)

// step is the envelope around one thing that runs: it waits while the loop is paused, checks
// the clock and the budgets before (E2), lets the thing run under its limit, interrupts it for
// pause and halt, and books what it cost. An interrupted step is run again from its start.
func (r *run) step(ctx workflow.Context, s act.Step) (act.Stepped, error) {
	for {
		if err := r.holdIfPaused(ctx); err != nil {
			return act.Stepped{}, err
		}
		if spent := govern.StepExhausted(r.state, s.Agent != nil); spent != "" {
			if err := r.exhausted(ctx, govern.BudgetEnd(spent)); err != nil {
				return act.Stepped{}, err
			}
			continue
		}
		if s.Agent != nil && r.unjudged != nil && r.state.IterationSteps >= r.spec.Limits.Steps {
			return act.Stepped{}, stop(govern.StepsEnd(r.spec.Limits.Steps))
		}
		if s.AsIs && r.uprooted {
			return act.Stepped{}, errLost
		}
		s.Ref, s.Head, s.Key.Repeat = r.opened.Ref, r.state.Head, r.repeats
		s, bound := r.within(ctx, s)
		told := r.guide(&s)
		recorded := r.recordWith(ctx, &s)
		s.Budget = r.left(s)
		out, err := r.perform(ctx, s)
		if denied := refusal(err, fault.PermissionDenied); denied != "" {
			r.emit(ctx, loop.Event{Type: loop.PermissionDenied, Step: s.Key.Name, Role: roleOf(s), Attempt: s.Key.Attempt, Reason: denied, ErrorCode: string(fault.PermissionDenied)})
			return out, stop(govern.NotPermitted.Because(denied))
		}
		if errors.Is(err, errLost) { // but what it cost was spent
			r.emit(ctx, r.ended(s, out))
		}
		if err != nil {
			return out, err
		}
		if out.Ledger != "" {
			r.state.Ledger, r.pending = out.Ledger, r.pending[recorded:]
		}
		out.Exhausted = cmp.Or(out.Exhausted, boundBy(out, bound))
		done := r.ended(s, out)
		if !out.Interrupted && out.Exhausted == "" {
			done.Told = told
		}
		r.emit(ctx, done)
		r.inPhase += out.ElapsedMs
		r.stopAsked = orElse(r.stopAsked, out.Stop)
		if r.phaseMs != nil {
			r.phaseMs[string(r.state.Phase)] += out.ElapsedMs
		}
		if out.Denied != "" {
			r.emit(ctx, loop.Event{Type: loop.PermissionDenied, Step: s.Key.Name, Role: roleOf(s), Attempt: s.Key.Attempt, Reason: out.Denied, ErrorCode: string(fault.PermissionDenied)})
		}
		if out.Warning != "" {
			r.emit(ctx, loop.Event{Type: loop.Warned, Step: s.Key.Name, Reason: out.Warning})
		}
		if out.Exhausted != "" { // what the agent had begun is undone
			if err := r.exhausted(ctx, govern.BudgetEnd(out.Exhausted)); err != nil {
				return out, err
			}
			out.Interrupted = true
		}
		if !out.Interrupted {
			r.uprooted = r.uprooted && s.Tree != act.Desk
			return out, nil
		}
		r.repeats++ // also where the machine wanted its worker back, and nobody asked for a pause
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
		{loop.ActiveTime, r.state.Budget[loop.ActiveTime].Used.Float()},
		{loop.WallClock, float64(workflow.Now(ctx).Sub(r.state.StartedAt).Milliseconds())},
	} {
		limit := r.state.Budget[t.of].Limit
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
	return max(r.spec.Limits.PhaseTimeout.D()-time.Duration(r.inPhase)*time.Millisecond, 0)
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
	s.Entry = &act.Entry{Ref: r.opened.Ref, Ledger: r.state.Ledger, Events: slices.Clone(r.pending)}
	return len(r.pending)
}

// permitted records what a role was let do; a refusal is recorded when the gateway has refused it.
func (r *run) permitted(ctx workflow.Context, s act.Step) {
	if govern.PermitPhase(r.spec, s.Agent.Role, s.Agent.Phase) == nil {
		r.emit(ctx, loop.Event{Type: loop.PermissionGranted, Step: s.Key.Name, Role: s.Agent.Role, Attempt: s.Key.Attempt, Reason: strings.Join(govern.Needs(s.Agent.Phase), ", ")})
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
		if remaining := r.state.Budget[resource].Remaining; remaining != nil {
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
	if s.Agent == nil || len(r.state.Guidance) == 0 {
		return 0
	}
	agent := *s.Agent
	agent.Guidance = r.state.Guidance
	s.Agent = &agent
	return agent.Guidance[len(agent.Guidance)-1].Seq
}

// perform runs a step, wherever the loop's host is. One that was at work on a host that is gone counts
// as interrupted: what it has spent stays spent, and it is run again from its start.
func (r *run) perform(ctx workflow.Context, s act.Step) (act.Stepped, error) {
	for asked := 0; ; asked++ {
		out, err := r.attend(ctx, s, asked)
		spent, is := untaken(err)
		if !is {
			return out, err
		}
		moved, err := r.follow(ctx)
		if moved && err == nil && s.Agent == nil { // an agent's call records it by itself
			err = r.record(ctx, "on the host "+r.opened.Host, false) // which fences the one that may not be gone
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
	future := r.start(activityCtx, act.StepName, r.summary(s), s, asked)
	limit := time.Duration(s.LimitMs) * time.Millisecond
	timerCtx, stopTimer := workflow.WithCancel(ctx)
	defer stopTimer()
	timer := r.phaseTimer(timerCtx, s, limit+timerSlack)
	wanted := func() bool { return r.state.HaltRequested != "" || r.state.PauseRequested }
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
	if cancelled := ctx.Err(); cancelled != nil && r.state.HaltRequested == "" {
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
	return workflow.NewTimerWithOptions(ctx, d, workflow.TimerOptions{Summary: fmt.Sprintf("phase limit of %s (%s)", s.Key.Name, r.state.Phase)})
}

// check asks the host what a step has really spent. A host that doesn't answer is down: the
// step is not overdue, it waits.
func (r *run) check(ctx workflow.Context, s act.Step, limit time.Duration) (again time.Duration, overdue bool) {
	var c act.Checked
	err := r.execute(ctx, act.CheckName, "check on "+s.Key.Name, func() any { return act.Check{Ref: s.Ref, Key: s.Key} }, &c)
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
func (r *run) summary(s act.Step) string {
	command := s.Command
	if len(command) == 3 && command[0] == "sh" && command[1] == "-c" {
		command = command[2:]
	}
	return fmt.Sprintf("iteration %d: %s `%s`", r.state.Iteration, s.Key.Name, loop.Clip(strings.Join(command, " "), 120))
}

// The steps of a loop.

func (r *run) newStep(name string, attempt int, tree act.Tree, command []string, limit time.Duration) act.Step {
	return act.Step{
		Ref:  r.opened.Ref,
		Key:  act.Key{Run: r.firstRun, Iteration: r.state.Iteration, Attempt: attempt, Name: name},
		Tree: tree, Head: r.state.Head, Command: command, LimitMs: limit.Milliseconds(),
	}
}

func (r *run) verifyStep() act.Step {
	s := r.newStep("verify", r.state.Attempt, act.Judge, shell(r.spec.Verify.Command), r.spec.Verify.Timeout.D())
	s.Measure = &act.Measure{Pattern: r.spec.Verify.Pattern}
	return s
}

func (r *run) guardStep() act.Step {
	return r.newStep("guard", r.state.Attempt, act.Judge, shell(r.spec.Guard.Command), r.spec.Guard.Timeout.D())
}

// checkStep checks syntax on the desk as the agent left it, once the policies have judged that.
func (r *run) checkStep() act.Step {
	s := r.newStep("check", r.state.Attempt, act.Desk, shell(r.spec.Check.Command), r.spec.Limits.PhaseTimeout.D())
	s.AsIs = true
	s.Judge = &act.Commit{Ref: r.opened.Ref, Ledger: r.state.Ledger, Head: r.state.Head, Iteration: r.state.Iteration, Attempt: r.state.Attempt}
	return s
}

func (r *run) agentStep(role, phase, idea string, attempt int, why repairOf) act.Step {
	agent := r.spec.Agent.For(role)
	s := r.newStep(phase, attempt, act.Desk, agent.Label(), r.spec.Limits.PhaseTimeout.D())
	s.Agent = &act.Agent{
		Role: role, Phase: phase, Kind: r.state.Kind, Loop: r.state.Loop, Env: agent.Env,
		Idea: idea, Repair: why.reason, Evidence: why.evidence,
	}
	return s
}

func shell(command string) []string { return []string{"sh", "-c", command} }

// howItEnded says in a few words how a step ended.
func howItEnded(out act.Stepped) string { return out.Ending() }

// explain says why verify measured nothing.
func explain(reason string, out act.Stepped) string {
	if reason == errNoNumber {
		return "it prints no number: " + out.NoNumber
	}
	return howItEnded(out)
}

func failed(out act.Stepped, reason string) string {
	if out.OK() {
		return ""
	}
	return reason
}

// where points a person to the output.
func where(out act.Stepped) string {
	text := ""
	if out.Tail != "" {
		text = "\n" + out.Tail
	}
	if out.Log != "" {
		text += "\nThe whole output is in " + out.Log
	}
	return text
}

// evidenceOf names what shows the result of a step: its log and the digest of its output.
func evidenceOf(out act.Stepped) []string {
	if out.Digest == "" {
		return nil
	}
	return []string{out.Log + "@sha256:" + short(out.Digest)}
}

// judgement is what the state remembers of a judging command.
func (r *run) judgement(out act.Stepped, reason string) *loop.Judgement {
	j := &loop.Judgement{
		Passed: out.OK() && reason == "", Reason: reason, ExitCode: out.ExitCode, Metric: out.Metric,
		DurationMs: out.ElapsedMs, Log: out.Log, Iteration: r.state.Iteration, Policy: r.spec.Guard.Policy,
	}
	return j
}
