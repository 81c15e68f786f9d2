package rules

import (
	"cmp"
	"fmt"
	"strings"

	"pawl/internal/loop"
	"pawl/internal/metric"
	"pawl/internal/spec"
	"pawl/internal/spec/phase"
)

// Deliver holds the rules of the phase machine (L): the values that a spec sets, and the decisions. A
// decision is a method that takes the course of the iteration and the latest result, and returns the next move.
type Deliver struct {
	Version      int
	TestRequired bool // test.required
	FixAttempts  int  // limits.fixAttempts, per iteration
	Retries      int  // guard.retries
	Approval          // and limits.reworks, of one write or fix
}

// DeliverOf returns a version of the rules for a loop with that spec. [ImproveOf] says what the versions are; Deliver
// decides by its version from 6 on.
func DeliverOf(s spec.Spec, version int) Deliver {
	return Deliver{Version: version, TestRequired: s.TestRequired(), FixAttempts: s.Limits.FixAttempts, Retries: s.GuardRetries(), Approval: ApprovalOf(s)}
}

// If the same failure occurs this often, or this many fixes make it worse, the approach is given up.
const (
	sameFailures = 3
	worseFixes   = 2
)

// Before decides in the order of E4 whether another iteration starts, and if not, how the loop ends (L7).
func (r Deliver) Before(s loop.State) Move {
	if s.HaltRequested != "" {
		return stops(Interrupted.Because(s.HaltRequested))
	}
	spent := s.Budget.Exhausted()
	switch spent {
	case "":
		return enter(phase.Write, "")
	case loop.Iterations:
		end := MaxIterations
		if n := len(s.Iterations); n > 0 && s.Iterations[n-1].Reason != "" {
			end = end.Because(fmt.Sprintf("%s, and the limit of %s is reached", s.Iterations[n-1].Reason, metric.Counted(int(s.Budget[spent].Limit.Float()), "iteration")))
		}
		end.Budget = spent
		return stops(end)
	}
	return stops(BudgetEnd(spent))
}

// AgentVerdict is the result of one call of planner, writer or fixer.
type AgentVerdict struct {
	Failed     bool // it could not be started, exited otherwise than with 0, or crashed
	TimedOut   bool // it did not end within the phase's time
	Excused    bool // it is known from before the first write which tests fail
	NoChange   bool // it changed nothing on the desk
	Regenerate bool // the fixer asks for another approach
	GaveUp     string
	Why        string // how it failed, in words
}

// AfterAgent decides what follows an agent call in plan, write or fix. The agent's own claim of success plays no part
// (P10). A fixer that leaves known failures as they are has done its task.
func (r Deliver) AfterAgent(c loop.Course, current phase.Phase, v AgentVerdict) Move {
	role := map[phase.Phase]string{phase.Plan: "planner", phase.Write: "writer", phase.Fix: "fixer"}[current]
	switch {
	case current == phase.Fix && v.NoChange && v.Excused:
		return Move{Do: RunGuard}
	case v.TimedOut:
		return timedOut(current)
	case v.GaveUp != "" && current == phase.Fix:
		return stops(TestFailed.Because("the fixer gave up: " + v.GaveUp))
	case v.GaveUp != "":
		return stops(AgentFailed.Because("the " + role + " gave up: " + v.GaveUp))
	case v.Failed && c.Reworks < r.Reworks:
		return Move{Do: Rework, Reason: "the " + role + " failed" + because(v.Why)}
	case v.Failed:
		return stops(AgentFailed.Because("the " + role + " failed for good" + because(v.Why)))
	case current == phase.Plan:
		return enter(phase.Write, "")
	case current == phase.Fix && v.Regenerate:
		return Move{Do: Enter, To: phase.Write, Regenerate: true, Reason: "the fixer asks for another approach" + because(v.Why)}
	case v.NoChange && c.Reworks < r.Reworks:
		return Move{Do: Rework, Reason: "the " + role + " changed nothing" + because(v.Why)}
	case v.NoChange && current == phase.Write:
		return stops(AgentFailed.Because("the writer changed nothing" + because(v.Why)))
	}
	return Move{Do: RunGuard}
}

// GuardVerdict is the result of the guard gate for a change.
type GuardVerdict struct {
	Command  string // the command of the spec that failed: check or guard
	Passed   bool
	Violates bool   // a policy, not the guard command
	TimedOut bool   // the phase's time was used up, not guard.timeout
	Why      string // the rule, or how the command ended
}

// AfterGuard decides what follows the guard gate on the change of write or fix. Nothing else leads from there to test
// (L1). When a person continues a blocked loop, the guard runs again, and its new verdict comes here.
func (r Deliver) AfterGuard(c loop.Course, current phase.Phase, v GuardVerdict) Move {
	switch {
	case v.Violates:
		return Move{Do: Block, Reason: v.Why}
	case v.TimedOut:
		return timedOut(current)
	case !v.Passed && c.Reworks < r.Reworks:
		return Move{Do: Rework, Reason: "the " + cmp.Or(v.Command, "guard") + " failed" + because(v.Why)}
	case !v.Passed:
		return Move{Do: Block, Reason: "the " + cmp.Or(v.Command, "guard") + because(v.Why) + ", after " + metric.Counted(c.Reworks, "rework")}
	case current == phase.Write && !r.TestRequired:
		return Move{Do: Enter, To: phase.Verify, Skipped: true, Reason: "test.required is false"}
	}
	return enter(phase.Test, "")
}

// RerunDue reports whether a failing test run is repeated once on the unchanged tree, to tell flaky tests from
// failures. It is not repeated if something could not be built or loaded, or if the tests failed in the same way
// before the last fix: then chance is not the cause. c is the course before Failed. The result of the rerun is the
// verdict, and its failures have to be fixed.
func (Deliver) RerunDue(c loop.Course, signature string, broken bool) bool {
	return !broken && (signature == "" || signature != c.Signature)
}

// TestVerdict is the result of a test run, including the rerun after a failure.
type TestVerdict struct {
	Passed   bool
	TimedOut bool
	Excused  bool     // the only failing tests failed before the first write too, and as many pass
	Progress bool     // more tests pass than before the first write
	Left     bool     // the fixer was called, and changed nothing
	Fewer    string   // says that fewer tests pass than before the first write, "" if they do not
	Known    []string // the tests that failed before the first write and still fail
	Flaky    []string // failed, then passed on the unchanged tree; Passed is then the result of the rerun
}

// TestsPass reports whether a test run is a success. It also is a success if the only failing tests failed before the
// first write, and either more tests pass than then, or the fixer has looked and changed nothing. If no fix is
// allowed, such a run is a success at once.
func (r Deliver) TestsPass(v TestVerdict) bool {
	return v.Passed || !v.TimedOut && v.Excused && (v.Progress || v.Left || r.FixAttempts == 0)
}

// AfterTest decides what follows a test run. If the tests failed, c is the course after Failed. Flaky tests are
// reported and not fixed (L2: the test phase has passed by its rerun). Tests that failed before the first write are named
// and do not count.
func (r Deliver) AfterTest(c loop.Course, v TestVerdict) Move {
	failing := loop.Clip(strings.Join(v.Known, ", "), 500)
	switch {
	case v.TimedOut:
		return timedOut(phase.Test)
	case v.Passed:
		reason := ""
		if len(v.Flaky) > 0 {
			reason = "flaky tests, which passed unchanged: " + loop.Clip(strings.Join(v.Flaky, ", "), 500)
		}
		if len(v.Known) > 0 {
			reason = "failing as before the first write: " + failing + because(reason)
		}
		return enter(phase.Verify, reason)
	case r.FixAttempts == 0:
		return stops(TestFailed.Because("tests fail, and no fix is allowed (limits.fixAttempts)"))
	case c.Fixes >= r.FixAttempts:
		return stops(MaxFixAttempts.Because(fmt.Sprintf("tests still fail, and no fix is left (limits.fixAttempts is %d)", r.FixAttempts)))
	case c.Same >= sameFailures:
		return Move{Do: Enter, To: phase.Fix, Regenerate: true, Reason: fmt.Sprintf("the tests failed in the same way %d times in a row: another approach", c.Same)}
	case c.Worse >= worseFixes:
		return Move{Do: Enter, To: phase.Fix, Regenerate: true, Undo: c.LastWorse, Reason: fmt.Sprintf("%d fixes made more tests fail: another approach", c.Worse)}
	case c.LastWorse:
		return Move{Do: Enter, To: phase.Fix, Undo: true, Reason: "the last fix made more tests fail and was undone"}
	}
	reason := "tests fail"
	if v.Excused {
		reason = fmt.Sprintf("the only failing tests failed before the first write too (%s), and no more tests pass than then: if the goal is to fix them, fix them, else change nothing", failing)
	}
	return enter(phase.Fix, cmp.Or(v.Fewer, reason))
}

// VerifyVerdict is the result of the verify command; a spec without one passes.
type VerifyVerdict struct {
	Passed   bool
	TimedOut bool
	Why      string
}

// AfterVerify decides what follows verify: the proposal with its review, or another iteration.
func (r Deliver) AfterVerify(v VerifyVerdict) Move {
	switch {
	case v.TimedOut:
		return timedOut(phase.Verify)
	case !v.Passed:
		return backToWrite("verify failed" + because(v.Why))
	}
	return completing(r.AfterProposal())
}

// AfterReview decides what follows the reviewer's answer, which c already counts. A rejection goes back to write. If
// only the reviewer is asked and fails for good, the loop fails, as with every agent of a delivery.
func (r Deliver) AfterReview(c loop.Course, o Opinion) Move {
	switch {
	case o.TimedOut:
		return timedOut(phase.Verify)
	case o.Failed != "" && r.Diff == spec.Auto && c.Opinions > r.Reworks:
		return stops(AgentFailed.Because("the reviewer failed for good" + because(o.Failed)))
	}
	m := r.AfterOpinion(c.Opinions, o)
	if o.Decision == SaysRejected {
		return backToWrite(m.Reason)
	}
	return completing(m)
}

// completing turns a move that finishes the approval into the move that completes the loop.
func completing(m Move) Move {
	if m.Do == Finish {
		m.Do, m.To = Enter, phase.Complete
	}
	return m
}

// AfterDiff decides what follows a person's answer at the diff gate.
func (Deliver) AfterDiff(approved bool, person, note string) Move {
	if approved {
		return Move{Do: Enter, To: phase.Complete, Approved: true, Reason: "approved by " + cmp.Or(person, "a person") + because(note)}
	}
	return backToWrite("rejected by " + cmp.Or(person, "a person") + because(note))
}

// backToWrite ends the iteration. Before decides whether another one starts (L7).
func backToWrite(reason string) Move {
	return Move{Do: Finish, Reason: reason, Measured: true}
}

func timedOut(current phase.Phase) Move {
	return stops(PhaseTimedOut.Because(fmt.Sprintf("the phase %s took too long", current)))
}

// AfterReject decides what follows when a person rejects a blocked change: the change is dropped, and the agent is
// called again with the person's note. Only a person can get the loop going again (L9).
func (Deliver) AfterReject(_ Move, person, note string) Move {
	return Move{Do: Rework, Reason: "the blocked change was rejected by " + cmp.Or(person, "a person") + because(note)}
}

// DeliveredWith returns the end of a delivery that reached its goal. It says if what is proposed was made again on top of
// a base that has moved, where nothing judged it, and names the tests of the last run that fail as they did before the
// first write, because nobody may read of them otherwise.
func DeliveredWith(last *loop.Judgement, remade bool) End {
	end, suffix := Verified, ", but "
	if remade {
		end, suffix = end.Because(end.Reason+suffix+"not on top of the new base"), "; "
	}
	if last == nil || last.Tests == nil || len(last.Tests.Known) == 0 {
		return end
	}
	t := last.Tests
	verb := "still fail"
	if t.Failed == 1 {
		verb = "still fails"
	}
	text := fmt.Sprintf("%s failed before the first write and %s: %s", metric.Counted(t.Failed, "test"), verb, loop.Clip(strings.Join(t.Known, ", "), 500))
	if !t.Progress {
		text += ". No more tests pass than before, so read the change"
	}
	return end.Because(end.Reason + suffix + text)
}
