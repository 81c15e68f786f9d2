package govern

import (
	"fmt"
	"strings"

	"pawl/internal/fault"
	"pawl/internal/loop"
	"pawl/internal/phase"
	"pawl/internal/spec"
)

// Bounds are what a Deliver loop may spend and must have, as its spec has them.
type Bounds struct {
	TestRequired bool   // test.required
	FixAttempts  int    // limits.fixAttempts, per iteration
	Reworks      int    // limits.reworks, of one write or fix
	Diff         string // approvals.diff: spec.Required or spec.Auto
	Reviewer     bool   // there is a reviewer role
}

// Course is where a Deliver loop stands within its iteration.
type Course = loop.Course

// The same failure that many times, or that many fixes that made it worse, and the approach is
// given up.
const (
	sameFailures = 3
	worseFixes   = 2
)

// Move is what a Deliver loop does next: exactly one of To, Again, Guard, Block, Review, Gate and
// End is set. The others say how.
type Move struct {
	To     phase.Phase // enter this phase
	Again  bool        // undo the change and do the phase's work once more, within the phase
	Guard  bool        // run the guard gate on the change: the way out of write and fix (L1)
	Block  bool        // park the change and open the guard gate for a person (L9)
	Review bool        // make the proposal and ask the reviewer for its answer, again where need be
	Gate   bool        // open the diff gate: a person decides
	End    *End

	NextIteration bool   // To begins a new iteration
	Undo          bool   // the last fix is undone first: it made more tests fail
	Regenerate    bool   // the fixer is not asked: the phase fix leads back to write at once
	Approved      bool   // the proposal is approved by the reviewer or a person
	Skipped       bool   // the test phase is left out, and Reason is why (L2)
	Reason        string // for the event, and for the agent that is asked next
}

func ends(e End) Move { return Move{End: &e, Reason: e.Reason} }

// AgentVerdict is what came of one call of planner, writer or fixer.
type AgentVerdict struct {
	Failed     bool // it could not be started, exited otherwise than with 0, or crashed
	TimedOut   bool // it did not end within the phase's time
	NoChange   bool // it left the desk as it was
	Regenerate bool // the fixer asks for another approach
	GaveUp     string
	Why        string // how it failed, in words
}

// AfterAgent decides what follows an agent call in plan, write or fix. What the agent says of its
// own success plays no part (P10).
func AfterAgent(b Bounds, c Course, at phase.Phase, v AgentVerdict) Move {
	role := map[phase.Phase]string{phase.Plan: "planner", phase.Write: "writer", phase.Fix: "fixer"}[at]
	switch {
	case v.TimedOut:
		return timedOut(at)
	case v.GaveUp != "" && at == phase.Fix:
		return ends(TestFailed.Because("the fixer gave up: " + v.GaveUp))
	case v.GaveUp != "":
		return ends(AgentFailed.Because("the " + role + " gave up: " + v.GaveUp))
	case v.Failed && c.Reworks < b.Reworks:
		return Move{Again: true, Reason: "the " + role + " failed" + because(v.Why)}
	case v.Failed:
		return ends(AgentFailed.Because("the " + role + " failed for good" + because(v.Why)))
	case at == phase.Plan:
		return Move{To: phase.Write}
	case at == phase.Fix && v.Regenerate:
		return Move{To: phase.Write, Regenerate: true, Reason: "the fixer asks for another approach" + because(v.Why)}
	case v.NoChange && c.Reworks < b.Reworks:
		return Move{Again: true, Reason: "the " + role + " changed nothing"}
	case v.NoChange && at == phase.Write:
		return ends(AgentFailed.Because("the writer changed nothing"))
	}
	return Move{Guard: true}
}

// GuardVerdict is what the guard gate said of a change.
type GuardVerdict struct {
	Command  string // which of the spec's said so: check or guard
	Passed   bool
	Violates bool   // a policy, not the guard command
	TimedOut bool   // the phase's time was used up, not guard.timeout
	Why      string // the rule, or how the command ended
}

// AfterGuard decides what follows the guard gate on the change of write or fix. Nothing else leads
// from there to test (L1). A person's `continue` at a block has the guard run again and comes back
// here with what it says then.
func AfterGuard(b Bounds, c Course, at phase.Phase, v GuardVerdict) Move {
	switch {
	case v.Violates:
		return Move{Block: true, Reason: "a policy is violated" + because(v.Why)}
	case v.TimedOut:
		return timedOut(at)
	case !v.Passed && c.Reworks < b.Reworks:
		return Move{Again: true, Reason: "the " + orElse(v.Command, "guard") + " failed" + because(v.Why)}
	case !v.Passed:
		return Move{Block: true, Reason: fmt.Sprintf("the %s failed after %d reworks%s", orElse(v.Command, "guard"), c.Reworks, because(v.Why))}
	case at == phase.Write && !b.TestRequired:
		return Move{To: phase.Verify, Skipped: true, Reason: "test.required is false"}
	}
	return Move{To: phase.Test}
}

// RerunDue says whether a failing test run is run once more on the unchanged tree, to tell flaky
// tests from failures: not where something could not even be built or loaded, and not where the
// tests failed in the same way before the last fix, since chance does not repeat itself. c is the
// course before Failed. What the rerun says is the verdict then, and the failure to be fixed.
func RerunDue(c Course, signature string, broken bool) bool {
	return !broken && (signature == "" || signature != c.Signature)
}

// TestVerdict is what came of a test run, the rerun after a failure included.
type TestVerdict struct {
	Passed   bool
	TimedOut bool
	Flaky    []string // failed, then passed on the unchanged tree; Passed says of the rerun then
}

// AfterTest decides what follows a test run; c is the course after Failed where the tests failed.
// Flaky tests are reported and not fixed (L2: the test phase has passed, by its rerun).
func AfterTest(b Bounds, c Course, v TestVerdict) Move {
	switch {
	case v.TimedOut:
		return timedOut(phase.Test)
	case v.Passed && len(v.Flaky) > 0:
		return Move{To: phase.Verify, Reason: "flaky tests, which passed unchanged: " + loop.Clip(strings.Join(v.Flaky, ", "), 500)}
	case v.Passed:
		return Move{To: phase.Verify}
	case b.FixAttempts == 0:
		return ends(TestFailed.Because("tests fail, and no fix is allowed (limits.fixAttempts)"))
	case c.Fixes >= b.FixAttempts:
		return ends(MaxFixAttempts.Because(fmt.Sprintf("tests still fail after %d fixes", c.Fixes)))
	case c.Same >= sameFailures:
		return Move{To: phase.Fix, Regenerate: true, Reason: fmt.Sprintf("the tests failed in the same way %d times in a row: another approach", c.Same)}
	case c.Worse >= worseFixes:
		return Move{To: phase.Fix, Regenerate: true, Undo: c.LastWorse, Reason: fmt.Sprintf("%d fixes made more tests fail: another approach", c.Worse)}
	case c.LastWorse:
		return Move{To: phase.Fix, Undo: true, Reason: "the last fix made more tests fail and was undone"}
	}
	return Move{To: phase.Fix, Reason: "tests fail"}
}

// VerifyVerdict is what the verify command said; a spec without one passes.
type VerifyVerdict struct {
	Passed   bool
	TimedOut bool
	Why      string
}

// AfterVerify decides what follows verify: the proposal and its review, or another iteration.
func AfterVerify(b Bounds, c Course, v VerifyVerdict) Move {
	switch {
	case v.TimedOut:
		return timedOut(phase.Verify)
	case !v.Passed:
		return backToWrite("verify failed" + because(v.Why))
	case b.Reviewer:
		return Move{Review: true}
	case b.Diff == spec.Auto: // nobody has approved it: the proposal stays open
		return Move{To: phase.Complete, Reason: "there is no reviewer: the proposal is still to be approved"}
	}
	return Move{Gate: true}
}

// AfterReview decides what follows the reviewer's answer. A rejection goes back to write, whoever
// else would have been asked; an approval is enough only where the spec leaves it to the reviewer.
// An answer that is no decision is asked for again; it never approves.
func AfterReview(b Bounds, c Course, answer Opinion) Move {
	switch {
	case answer.TimedOut:
		return timedOut(phase.Verify)
	case answer.Decision == SaysRejected:
		return backToWrite("the reviewer rejected the proposal" + because(answer.Note))
	case answer.Decision == Undecided && c.Opinions < b.Reworks:
		return Move{Review: true, Reason: "the reviewer's answer is no decision" + because(answer.Why)}
	case b.Diff != spec.Auto:
		return Move{Gate: true}
	case answer.Decision == SaysApproved:
		return Move{To: phase.Complete, Approved: true, Reason: "approved by the reviewer" + because(answer.Note)}
	}
	return Move{To: phase.Complete, Reason: "the reviewer did not decide: the proposal is still to be approved"}
}

// AfterDiff decides what follows a person's answer at the diff gate.
func AfterDiff(b Bounds, c Course, approved bool, by, note string) Move {
	if approved {
		return Move{To: phase.Complete, Approved: true, Reason: "approved by " + orElse(by, "a person") + because(note)}
	}
	return backToWrite("rejected by " + orElse(by, "a person") + because(note))
}

// backToWrite ends the iteration. Whether there is another one StopDeliver says (L7), or a person who
// is asked for more.
func backToWrite(why string) Move {
	return Move{To: phase.Write, NextIteration: true, Reason: why}
}

// StopDeliver says whether a Deliver loop may begin another iteration, and if not how it ends. The
// checks are in the order of E4.
func StopDeliver(s loop.State) (End, bool) {
	if s.HaltRequested != "" {
		return Interrupted.Because(s.HaltRequested), true
	}
	r := s.Budget.Exhausted()
	switch r {
	case "":
		return End{}, false
	case loop.Iterations:
		end := MaxIterations
		if n := len(s.Iterations); n > 0 && s.Iterations[n-1].Reason != "" {
			end = end.Because(fmt.Sprintf("%s, in the last of %s iterations", s.Iterations[n-1].Reason, s.Budget[r].Limit))
		}
		end.Budget = r
		return end, true
	}
	return BudgetEnd(r), true
}

// Successful reports whether a loop that ends so has reached its goal: then it goes through
// complete (phase.Machine.Completes).
func (e End) Successful() bool { return e.Status == loop.Completed && e.Code == fault.Code("") }

func timedOut(at phase.Phase) Move {
	return ends(PhaseTimedOut.Because(fmt.Sprintf("the phase %s took longer than it may", at)))
}

func because(why string) string {
	if why = strings.TrimSpace(why); why == "" {
		return ""
	}
	return ": " + loop.Clip(why, 1000)
}
