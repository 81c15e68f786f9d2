package workflows

import (
	"time"

	"pawl/internal/act"
	"pawl/internal/loop"
	"pawl/internal/reason"
)

func (r *run) newStep(name string, attempt int, tree act.Tree, command []string, limit time.Duration) act.Step {
	return act.Step{
		Ref:  r.host.Opened.Ref,
		Key:  act.Key{Run: r.chain, Iteration: r.State().Iteration, Attempt: attempt, Name: name},
		Tree: tree, Head: r.State().Head, Command: command, LimitMs: limit.Milliseconds(),
	}
}

func (r *run) verifyStep() act.Step {
	s := r.newStep("verify", r.State().Attempt, act.Judge, shell(r.spec.Verify.Command), r.spec.Verify.Timeout.D())
	s.Measure = &act.Measure{Pattern: r.spec.Verify.Pattern}
	return s
}

func (r *run) guardStep() act.Step {
	return r.newStep("guard", r.State().Attempt, act.Judge, shell(r.spec.Guard.Command), r.spec.Guard.Timeout.D())
}

// checkStep checks syntax on the desk as the agent left it, once the policies have judged that.
func (r *run) checkStep() act.Step {
	s := r.newStep("check", r.State().Attempt, act.Desk, shell(r.spec.Check.Command), r.spec.Limits.PhaseTimeout.D())
	s.AsIs = true
	s.Judge = &act.Commit{Ref: r.host.Opened.Ref, Ledger: r.State().Ledger, Head: r.State().Head, Iteration: r.State().Iteration, Attempt: r.State().Attempt}
	return s
}

func (r *run) agentStep(role, phase string, attempt int) act.Step {
	agent := r.spec.Agent.For(role)
	s := r.newStep(phase, attempt, act.Desk, agent.Label(), r.spec.Limits.PhaseTimeout.D())
	s.Agent = &act.Agent{
		Role: role, Phase: phase, Kind: r.State().Kind, Loop: r.State().Loop, Env: agent.Env,
		Idea: r.iteration.idea, Repair: r.iteration.why,
	}
	if r.iteration.why != "" {
		s.Agent.Evidence = r.iteration.shown
	}
	return s
}

func shell(command string) []string { return []string{"sh", "-c", command} }

// howItEnded says in a few words how a step ended.
func howItEnded(out act.Stepped) string { return out.Ending() }

// explain says why verify measured nothing.
func explain(why string, out act.Stepped) string {
	if why == reason.NoNumber {
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
		DurationMs: out.ElapsedMs, Log: out.Log, Iteration: r.State().Iteration, Policy: r.spec.Guard.Policy,
	}
	return j
}
