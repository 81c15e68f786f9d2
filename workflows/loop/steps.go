package loop

import (
	"cmp"
	"strings"
	"time"

	"go.temporal.io/sdk/workflow"

	"pawl/internal/lib/list"
	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/internal/loop/result"
	"pawl/internal/loop/rules"
	"pawl/internal/metric"
	"pawl/internal/metric/reason"
	"pawl/internal/spec"
)

func (r *run) newStep(name string, attempt int, limit time.Duration) api.Step {
	s := api.Step{Key: api.Key{Iteration: r.State().Iteration, Attempt: attempt, Name: name}, LimitMs: limit.Milliseconds()}
	if c := r.candidate; c != nil { // it has its own steps, before those of any iteration
		s.Key.Iteration, s.Key.Attempt, s.Key.Sample = c.N, 0, max(attempt-1, 0)
		if r.apart != nil {
			s.Desk = c.Desk
		}
	}
	return s
}

// attempt returns the number of the attempt within the iteration, or for a candidate.
func (r *run) attempt() int {
	if r.candidate != nil {
		return 1
	}
	return r.State().Attempt
}

func (r *run) newVerify() api.Verify {
	v := r.spec.Verify
	input := api.Verify{Step: r.newStep("verify", r.attempt(), v.Timeout.D()), Command: v.Command, Pattern: v.Pattern, Form: r.State().Form}
	input.Intact = r.rules >= 6
	input.Names = list.Map(r.spec.Metrics, func(m metric.Bound) string { return m.Name })
	return input
}

func (r *run) measure(ctx workflow.Context, input api.Verify) (api.Measured, error) {
	return step[api.Measured](ctx, r, api.VerifyName, input.Command, &input)
}

// runGuard runs the guard command. begin gets its step first.
func (r *run) runGuard(ctx workflow.Context, begin ...func(*api.Step)) (api.Outcome, error) {
	g := api.Guard{Step: r.newStep("guard", r.attempt(), r.spec.Guard.Timeout.D()), Command: r.spec.Guard.Command, Reports: r.spec.GuardReports()}
	if r.rules >= 6 {
		g.Intact, g.Known = true, r.State().Tested
	}
	if !r.spec.FewerTests() {
		g.Tests = r.State().GuardTests
	}
	if c := r.candidate; c != nil {
		g.At, g.Trial = c.Commit, true
	}
	for _, do := range begin {
		do(&g.Step)
	}
	out, err := step[api.Outcome](ctx, r, api.GuardName, g.Command, &g)
	r.noteGone(ctx, out.Vanished)
	return out, err
}

// testedBy returns what the guard tested on the unchanged code, with the log that names the tests.
func (r *run) testedBy(guard api.Outcome) *loop.Tested {
	if guard.Tested != nil && r.rules >= 6 {
		guard.Tested.Log = guard.Log
	}
	return guard.Tested
}

// canary breaks the code in scope and ends the loop if the commands that guard it do not notice. Without a command
// there is nothing to try.
func (r *run) canary(ctx workflow.Context, input api.Canary) error {
	if input.LimitMs == 0 {
		return nil
	}
	input.Step = r.newStep("canary", 0, time.Duration(input.LimitMs)*time.Millisecond)
	input.Hollow = r.rules >= 6
	out, err := step[api.Canaried](ctx, r, api.CanaryName, cmp.Or(input.Guard, input.Test, input.Spec.Verify.Command), &input)
	if err != nil {
		return err
	}
	r.guardRuns = out.Runs()
	if r.guardTested != nil {
		r.guardTested.Unbreakable = out.Files == 0
	}
	if out.Hollow {
		r.noteForContract(ctx, "canary", rules.Hollow(input.Guard, input.Test))
	}
	if out.Unmoved {
		r.noteForContract(ctx, "canary", rules.Unmoved(out, *input.Metric))
	}
	if !input.Guards() || !out.Blind() {
		return nil
	}
	end := rules.NotReady
	end.Reason, end.Advice = rules.Blind(out, input.Guard, input.Test)
	return stop(end)
}

// newCheck returns a check of the head, on the desk.
func (r *run) newCheck() api.Check {
	return api.Check{Step: r.newStep("check", r.State().Attempt, r.spec.Limits.PhaseTimeout.D()), Command: r.spec.Check.Command}
}

func (r *run) runCheck(ctx workflow.Context, input api.Check) (api.Checked, error) {
	return step[api.Checked](ctx, r, api.CheckName, input.Command, &input)
}

func (r *run) newCall(role, phase string, attempt int) api.Call {
	c := api.Call{
		Step: r.newStep(phase, attempt, r.spec.Limits.PhaseTimeout.D()),
		Role: role, Phase: phase, Attempt: attempt, Idea: r.iteration.idea, Repair: r.iteration.why,
		Doubt: r.rules >= 6,
	}
	if r.iteration.why != "" {
		c.Evidence = r.iteration.shown
	}
	if candidate := r.candidate; candidate != nil {
		c.Candidate, c.Of = candidate.Desk, candidate.Of
		for _, other := range r.State().Candidates {
			if other.N != candidate.N && other.Idea != "" {
				c.Beside = append(c.Beside, other.Idea)
			}
		}
	}
	return c
}

func (r *run) callAgent(ctx workflow.Context, input api.Call) (api.Called, error) {
	out, err := step[api.Called](ctx, r, api.CallName, "", &input)
	r.iteration.called, r.iteration.withheld = out.Class, out.Withheld
	if author := r.signed(loop.Event{}, &input).Agent; author != "" && (input.Role == spec.RoleWriter || input.Role == spec.RoleFixer) {
		r.iteration.agents = loop.Union(r.iteration.agents, []string{author})
	}
	if c := r.candidate; c != nil && err == nil {
		c.Steps++
	}
	return out, err
}

// withheld names the tools that the agent was not allowed to use, if it changed nothing for that reason; else "".
func (r *run) withheld() string {
	tools := r.iteration.withheld
	if r.iteration.called.After(false, len(tools) > 0) != result.Denied {
		return ""
	}
	return "the agent was not allowed to use " + strings.Join(tools, ", ")
}

// explain returns why verify measured nothing.
func explain(cause string, out api.Measured) string {
	if cause == reason.NoNumber {
		return "it prints no number: " + out.NoNumber
	}
	return out.Ending()
}

// unless returns why, "" if it passed.
func unless(passed bool, cause string) string {
	if passed {
		return ""
	}
	return cause
}

// where returns a text that tells a person where the output is.
func where(out api.Outcome) string {
	text := ""
	if out.Tail != "" {
		text = ": " + out.Tail
	}
	if out.Log != "" {
		text += "; the whole output is in " + out.Log
	}
	return text
}

// evidenceOf names the evidence for a step's result: log, digest of the output, transcript of an agent's call.
func evidenceOf(out api.Outcome) []string {
	if out.Digest == "" {
		return nil
	}
	names := []string{api.Log(out.Log, short(out.Digest))}
	if out.Transcript != "" {
		names = append(names, api.Transcript(out.Log, out.Transcript))
	}
	return names
}

// judgement returns what the state keeps of the result of a judging command.
func (r *run) judgement(out api.Outcome, reason string) *loop.Judgement {
	return &loop.Judgement{
		Passed: out.OK() && reason == "", Reason: reason, ExitCode: out.ExitCode,
		DurationMs: out.ElapsedMs, Log: out.Log, Iteration: r.State().Iteration, Policy: r.spec.Guard.Policy, Leftovers: out.Leftovers,
		Passing: out.Tests, Tested: out.Tested, Vanished: out.Vanished,
	}
}

// measured is judgement for a measurement.
func (r *run) measured(out api.Measured, reason string) *loop.Judgement {
	j := r.judgement(out.Outcome, reason)
	j.Metric = out.Metric
	return j
}
