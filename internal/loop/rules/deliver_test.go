package rules_test

import (
	"math/rand"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/fault"
	"pawl/internal/loop"
	"pawl/internal/loop/rules"
	"pawl/internal/spec"
	"pawl/internal/spec/kind"
	"pawl/internal/spec/phase"
)

var usual = rules.Deliver{TestRequired: true, FixAttempts: 3, Approval: rules.Approval{Reworks: 2, Diff: spec.Required}}

// brief shows a move in a word: the phase, the action if it enters none, or the end's code.
func brief(m rules.Move) string {
	text := string(m.Do)
	switch m.Do {
	case rules.Enter:
		text = string(m.To)
	case rules.Stop:
		text = string(m.End.Code)
	}
	for _, c := range []struct {
		is   bool
		text string
	}{
		{m.Undo, " undo"}, {m.Regenerate, " regenerate"}, {m.Approved, " approved"}, {m.Skipped, " skipped"},
		{m.Do == rules.Finish && m.Reason != "" && m.Judged, " judged"}, {m.Kept, " kept"}, {m.Do == rules.Finish && m.End != nil, " and stop"},
	} {
		if c.is {
			text += c.text
		}
	}
	return text
}

func TestL2_WhatFailedBeforeTheFirstWriteDoesNotCount(t *testing.T) {
	course := rules.Deliver{TestRequired: true, FixAttempts: 3, Approval: rules.Approval{Reworks: 2}}
	noFix := course
	noFix.FixAttempts = 0
	known := []string{"TestDocker"}
	for _, c := range []struct {
		name         string
		rules        rules.Deliver
		v            rules.TestVerdict
		want, reason string
	}{
		{"what passes passes", course, rules.TestVerdict{Passed: true}, "verify", ""},
		{"known failures and more that passes", course, rules.TestVerdict{Excused: true, Progress: true, Known: known}, "verify", "failing as before the first write: TestDocker"},
		{"a new failure counts, whatever else passes", course, rules.TestVerdict{Progress: true, Known: known}, "fix", "tests fail"},
		{"nothing has changed: the fixer looks", course, rules.TestVerdict{Excused: true, Known: known}, "fix",
			"the only failing tests failed before the first write too (TestDocker), and no more tests pass than then: if the goal is to fix them, fix them, else change nothing"},
		{"fewer tests pass", course, rules.TestVerdict{Fewer: "only 1 of the 2 tests pass"}, "fix", "only 1 of the 2 tests pass"},
		{"the fixer left it", course, rules.TestVerdict{Excused: true, Left: true, Known: known}, "verify", "failing as before the first write: TestDocker"},
		{"no fix is allowed", noFix, rules.TestVerdict{Excused: true, Known: known}, "verify", "failing as before the first write: TestDocker"},
		{"and a new failure ends it", noFix, rules.TestVerdict{Known: known}, "ALO_TEST_FAILED", ""},
		{"a timeout is none", course, rules.TestVerdict{TimedOut: true, Excused: true, Progress: true}, "ALO_PHASE_TIMEOUT", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.v.Passed = c.rules.TestsPass(c.v)
			m := c.rules.AfterTest(loop.Course{}, c.v)
			require.Equal(t, c.want, brief(m))
			if m.Do != rules.Stop {
				require.Equal(t, c.reason, m.Reason)
			}
		})
	}
	spent := rules.TestVerdict{Excused: true, Known: known}
	require.Equal(t, fault.MaxFixAttempts, course.AfterTest(loop.Course{Fixes: 3}, spent).End.Code, "L3: fixes that change nothing for the better are bounded")
	require.Equal(t, "guard", brief(course.AfterAgent(loop.Course{}, phase.Fix, rules.AgentVerdict{NoChange: true, Excused: true})))
	require.Equal(t, "rework", brief(course.AfterAgent(loop.Course{}, phase.Fix, rules.AgentVerdict{NoChange: true})))
	require.Equal(t, "rework", brief(course.AfterAgent(loop.Course{}, phase.Write, rules.AgentVerdict{NoChange: true, Excused: true})))
}

func TestAfterAgent(t *testing.T) {
	reworked := loop.Course{Iteration: 1, Reworks: 2}
	for _, c := range []struct {
		name   string
		at     phase.Phase
		course loop.Course
		v      rules.AgentVerdict
		want   string
	}{
		{"a plan is written next", phase.Plan, loop.Course{}, rules.AgentVerdict{NoChange: true}, "write"},
		{"L1 a write is guarded", phase.Write, loop.Course{}, rules.AgentVerdict{}, "guard"},
		{"L1 a fix is guarded", phase.Fix, loop.Course{}, rules.AgentVerdict{}, "guard"},
		{"a failure is tried again", phase.Write, loop.Course{}, rules.AgentVerdict{Failed: true}, "rework"},
		{"a failure for good ends", phase.Write, reworked, rules.AgentVerdict{Failed: true}, "ALO_AGENT_FAILED"},
		{"a planner that fails for good ends", phase.Plan, reworked, rules.AgentVerdict{Failed: true}, "ALO_AGENT_FAILED"},
		{"L10 time ends", phase.Fix, loop.Course{}, rules.AgentVerdict{TimedOut: true, Failed: true}, "ALO_PHASE_TIMEOUT"},
		{"a fixer that gives up", phase.Fix, loop.Course{}, rules.AgentVerdict{GaveUp: "no idea"}, "ALO_TEST_FAILED"},
		{"a writer that gives up", phase.Write, loop.Course{}, rules.AgentVerdict{GaveUp: "no idea"}, "ALO_AGENT_FAILED"},
		{"a fixer that asks for another approach", phase.Fix, loop.Course{}, rules.AgentVerdict{Regenerate: true}, "write regenerate"},
		{"a writer can't ask for another approach", phase.Write, loop.Course{}, rules.AgentVerdict{Regenerate: true}, "guard"},
		{"a writer that changes nothing", phase.Write, loop.Course{}, rules.AgentVerdict{NoChange: true}, "rework"},
		{"a writer that goes on changing nothing", phase.Write, reworked, rules.AgentVerdict{NoChange: true}, "ALO_AGENT_FAILED"},
		{"a fixer that goes on changing nothing is judged by the tests", phase.Fix, reworked, rules.AgentVerdict{NoChange: true}, "guard"},
	} {
		t.Run(c.name, func(t *testing.T) { require.Equal(t, c.want, brief(usual.AfterAgent(c.course, c.at, c.v))) })
	}
}

func TestL1_AfterGuard(t *testing.T) {
	lax := usual
	lax.TestRequired = false
	for _, c := range []struct {
		name   string
		usual  rules.Deliver
		course loop.Course
		at     phase.Phase
		v      rules.GuardVerdict
		want   string
	}{
		{"a write that passes is tested", usual, loop.Course{}, phase.Write, rules.GuardVerdict{Passed: true}, "test"},
		{"a fix that passes is tested", usual, loop.Course{}, phase.Fix, rules.GuardVerdict{Passed: true}, "test"},
		{"L2 without required tests the skip is said", lax, loop.Course{}, phase.Write, rules.GuardVerdict{Passed: true}, "verify skipped"},
		{"a failure is reworked", usual, loop.Course{Reworks: 1}, phase.Write, rules.GuardVerdict{}, "rework"},
		{"a failed fix is reworked", usual, loop.Course{}, phase.Fix, rules.GuardVerdict{}, "rework"},
		{"a failure after the last rework blocks", usual, loop.Course{Reworks: 2}, phase.Write, rules.GuardVerdict{}, "block"},
		{"L9 a violation blocks at once", usual, loop.Course{}, phase.Write, rules.GuardVerdict{Violates: true}, "block"},
		{"L10 time ends, and is no failure of the guard's", usual, loop.Course{Reworks: 2}, phase.Write, rules.GuardVerdict{TimedOut: true}, "ALO_PHASE_TIMEOUT"},
		{"L9 a violation blocks, whatever time there is", usual, loop.Course{}, phase.Write, rules.GuardVerdict{Violates: true, TimedOut: true}, "block"},
		{"a violation is no pass", lax, loop.Course{}, phase.Fix, rules.GuardVerdict{Violates: true, Passed: true}, "block"},
	} {
		t.Run(c.name, func(t *testing.T) { require.Equal(t, c.want, brief(c.usual.AfterGuard(c.course, c.at, c.v))) })
	}
	require.Equal(t, "test.required is false", lax.AfterGuard(loop.Course{}, phase.Write, rules.GuardVerdict{Passed: true}).Reason)
}

func TestL3_AfterTest(t *testing.T) {
	none := usual
	none.FixAttempts = 0
	for _, c := range []struct {
		name   string
		usual  rules.Deliver
		course loop.Course
		v      rules.TestVerdict
		want   string
	}{
		{"a pass is verified", usual, loop.Course{}, rules.TestVerdict{Passed: true}, "verify"},
		{"a failure is fixed", usual, loop.Course{Same: 1}, rules.TestVerdict{}, "fix"},
		{"the last fix that is allowed", usual, loop.Course{Fixes: 2}, rules.TestVerdict{}, "fix"},
		{"no fix is left", usual, loop.Course{Fixes: 3}, rules.TestVerdict{}, "ALO_MAX_FIX_ATTEMPTS_EXCEEDED"},
		{"no fix is left, whatever else there is", usual, loop.Course{Fixes: 3, Same: 3, Worse: 2}, rules.TestVerdict{}, "ALO_MAX_FIX_ATTEMPTS_EXCEEDED"},
		{"no fix is allowed at all", none, loop.Course{}, rules.TestVerdict{}, "ALO_TEST_FAILED"},
		{"a pass after the last fix", usual, loop.Course{Fixes: 3}, rules.TestVerdict{Passed: true}, "verify"},
		{"a flaky test passes", usual, loop.Course{}, rules.TestVerdict{Passed: true, Flaky: []string{"p TestA"}}, "verify"},
		{"a flaky test among others that fail", usual, loop.Course{}, rules.TestVerdict{Flaky: []string{"p TestA"}}, "fix"},
		{"L10 time ends", usual, loop.Course{}, rules.TestVerdict{TimedOut: true}, "ALO_PHASE_TIMEOUT"},
		{"twice the same failure", usual, loop.Course{Same: 2}, rules.TestVerdict{}, "fix"},
		{"three times the same failure", usual, loop.Course{Same: 3, Fixes: 2}, rules.TestVerdict{}, "fix regenerate"},
		{"a fix that made it worse", usual, loop.Course{Worse: 1, LastWorse: true, Fixes: 1}, rules.TestVerdict{}, "fix undo"},
		{"two fixes that made it worse", usual, loop.Course{Worse: 2, LastWorse: true, Fixes: 2}, rules.TestVerdict{}, "fix undo regenerate"},
		{"a fix that made it worse long ago", usual, loop.Course{Worse: 1, Fixes: 2}, rules.TestVerdict{}, "fix"},
	} {
		t.Run(c.name, func(t *testing.T) { require.Equal(t, c.want, brief(c.usual.AfterTest(c.course, c.v))) })
	}
	require.Contains(t, usual.AfterTest(loop.Course{}, rules.TestVerdict{Passed: true, Flaky: []string{"p TestA"}}).Reason, "p TestA")
}

func TestAfterVerifyReviewAndDiff(t *testing.T) {
	auto, reviewer, autoReviewer := usual, usual, usual
	auto.Diff, reviewer.Reviewer = spec.Auto, true
	autoReviewer.Diff, autoReviewer.Reviewer = spec.Auto, true
	first := loop.Course{Iteration: 1}
	verify := func(r rules.Deliver, c loop.Course, v rules.VerifyVerdict) string {
		return brief(r.AfterVerify(v))
	}
	require.Equal(t, "ask", verify(usual, first, rules.VerifyVerdict{Passed: true}))
	require.Equal(t, "review", verify(reviewer, first, rules.VerifyVerdict{Passed: true}))
	require.Equal(t, "review", verify(autoReviewer, first, rules.VerifyVerdict{Passed: true}))
	require.Equal(t, "complete", verify(auto, first, rules.VerifyVerdict{Passed: true}), "the proposal stays open")
	require.Equal(t, "finish", verify(usual, first, rules.VerifyVerdict{}))
	require.Equal(t, "ALO_PHASE_TIMEOUT", verify(usual, first, rules.VerifyVerdict{TimedOut: true}))

	review := func(r rules.Deliver, c loop.Course, d rules.Decision) string {
		return brief(r.AfterReview(c, rules.Opinion{Decision: d, Note: "n"}))
	}
	require.Equal(t, "complete approved", review(autoReviewer, first, rules.SaysApproved))
	require.Equal(t, "ask", review(reviewer, first, rules.SaysApproved), "a person approves where the spec says so")
	require.Equal(t, "finish", review(reviewer, first, rules.SaysRejected))
	require.Equal(t, "ALO_PHASE_TIMEOUT", brief(autoReviewer.AfterReview(first, rules.Opinion{TimedOut: true})), "L10")
	require.Equal(t, "review", review(autoReviewer, first, rules.Undecided))
	require.Equal(t, "ask", review(reviewer, first.Undecided().Undecided().Undecided(), rules.Undecided))
	require.Equal(t, "complete", review(autoReviewer, first.Undecided().Undecided().Undecided(), rules.Undecided), "no decision never approves")

	require.Equal(t, "complete approved", brief(usual.AfterDiff(true, "ada", "")))
	require.Equal(t, "finish", brief(usual.AfterDiff(false, "ada", "rename it")))
	require.Contains(t, usual.AfterDiff(false, "ada", "rename it").Reason, "rename it")
}

// TestTheSameFailureThreeTimesOverChangesTheStrategy follows the counters of a course.
func TestTheSameFailureThreeTimesOverChangesTheStrategy(t *testing.T) {
	c := loop.Course{}.Begin(1).Enter(phase.Write).Enter(phase.Test).Failed("a", true)
	require.False(t, c.LastWorse, "there was no fix that could have made it worse")
	c = c.Enter(phase.Fix).Rework().Enter(phase.Test).Failed("a", false)
	require.Equal(t, 2, c.Same)
	require.Zero(t, c.Reworks)
	c = c.Enter(phase.Fix).Enter(phase.Test).Failed("b", true)
	require.Equal(t, 1, c.Same, "another failure")
	require.True(t, c.LastWorse)
	require.Equal(t, 1, c.Enter(phase.Fix).Enter(phase.Test).Failed("", false).Failed("", false).Same, "what has no signature is not the same")
	c = c.Failed("b", false).Failed("b", false)
	require.Equal(t, "fix regenerate", brief(usual.AfterTest(c, rules.TestVerdict{})))
	c = c.Enter(phase.Fix).Enter(phase.Write)
	require.Zero(t, c.Same, "another approach starts anew")
	require.Equal(t, 3, c.Fixes, "but not its fixes: they are bounded per iteration (L3)")
	require.Equal(t, loop.Course{Iteration: 2}, c.Begin(2))
}

func TestAFailureIsRunAgainOnceToSeeWhetherItIsFlaky(t *testing.T) {
	require.True(t, usual.RerunDue(loop.Course{}, "a", false))
	require.True(t, usual.RerunDue(loop.Course{Signature: "b"}, "a", false), "it fails in another way now")
	require.False(t, usual.RerunDue(loop.Course{Signature: "a"}, "a", false), "it failed so before")
	require.True(t, usual.RerunDue(loop.Course{}, "", false), "what has no signature is not known to be the same")
	require.False(t, usual.RerunDue(loop.Course{}, "a", true), "what does not build is not flaky")
}

func TestL2_ADeliveryNamesTheTestsThatStillFail(t *testing.T) {
	for want, last := range map[string]*loop.Judgement{
		"": nil, // without tests
		", but 1 test failed before the first write and still fails: TestDocker":                                                       {Tests: &loop.Tests{Failed: 1, Known: []string{"TestDocker"}, Progress: true}},
		", but 2 tests failed before the first write and still fail: TestA, TestB. No more tests pass than before, so read the change": {Tests: &loop.Tests{Failed: 2, Known: []string{"TestA", "TestB"}}},
	} {
		end := rules.DeliveredWith(last, false)
		require.Equal(t, loop.Completed, end.Status)
		require.Equal(t, "the change is tested and verified"+want, end.Reason)
	}
	require.Equal(t, rules.Verified, rules.DeliveredWith(&loop.Judgement{Tests: &loop.Tests{Passed: 3}}, false))
	require.Equal(t, "the change is tested and verified, but not on top of the new base", rules.DeliveredWith(nil, true).Reason)
	require.Equal(t, "the change is tested and verified, but not on top of the new base; 1 test failed before the first write and still fails: TestA",
		rules.DeliveredWith(&loop.Judgement{Tests: &loop.Tests{Failed: 1, Known: []string{"TestA"}, Progress: true}}, true).Reason)
}

func TestL7_AnotherIterationOnlyWithinTheLimits(t *testing.T) {
	limits := map[loop.Resource]int64{loop.Iterations: 2, loop.ToolCalls: 5, loop.ActiveTime: 10}
	for _, c := range []struct {
		name  string
		state loop.State
		want  string
	}{
		{"nothing is used up", loop.State{Budget: budget(limits, nil)}, "write"},
		{"halt comes first", loop.State{HaltRequested: "x", Budget: budget(limits, map[loop.Resource]int64{loop.Iterations: 2})}, "ALO_CANCELLED"},
		{"iterations", loop.State{Budget: budget(limits, map[loop.Resource]int64{loop.Iterations: 2})}, "ALO_MAX_ITERATIONS_EXCEEDED"},
		{"time comes before iterations", loop.State{Budget: budget(limits, map[loop.Resource]int64{loop.Iterations: 2, loop.ActiveTime: 10})}, "BUDGET_EXHAUSTED"},
		{"tool calls", loop.State{Budget: budget(limits, map[loop.Resource]int64{loop.ToolCalls: 5})}, "BUDGET_EXHAUSTED"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := usual.Before(c.state)
			require.Equal(t, c.want, brief(m))
			require.False(t, m.End != nil && m.End.Status == loop.Completed)
		})
	}
	require.Equal(t, loop.Completed, rules.Verified.Status)
	m := usual.Before(loop.State{
		Budget: budget(limits, map[loop.Resource]int64{loop.Iterations: 2}), Iterations: []loop.Iteration{{Reason: "rejected by ada"}},
	})
	require.Equal(t, "rejected by ada, and the limit of 2 iterations is reached", m.End.Reason)
	require.Equal(t, loop.Iterations, m.End.Budget, "A2: which budget")
}

// TestL6_NoCourseOfEventsLeavesTheMachine runs loops with random agents, guards, tests and reviewers. Every phase is
// entered as the table allows, no limit is ever exceeded, tests have passed before verify if they are required, and
// every loop ends.
func TestL6_NoCourseOfEventsLeavesTheMachine(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	flip := func(n int) bool { return random.Intn(n) == 0 }
	reached := map[string]int{}
	for range 5000 {
		r := rules.Deliver{
			TestRequired: !flip(4), FixAttempts: random.Intn(5),
			Approval: rules.Approval{Reworks: random.Intn(3), Diff: []string{spec.Required, spec.Auto}[random.Intn(2)], Reviewer: flip(2)},
		}
		iterations := map[loop.Resource]int64{loop.Iterations: 1 + random.Int63n(3)}
		m := kind.Deliver.Machine(kind.Version(), r.TestRequired)
		at, c := phase.None, loop.Course{}.Begin(1)
		tested, guarded, rejected := false, false, false
		move := rules.Move{Do: rules.Enter, To: phase.Plan}
	course:
		for steps := 0; ; steps++ {
			require.Less(t, steps, 1000, "it never ends")
			switch move.Do {
			case rules.Stop:
				reached[string(move.End.Code)]++
				break course
			case rules.Finish:
				used := map[loop.Resource]int64{loop.Iterations: int64(c.Iteration)}
				if move = r.Before(loop.State{Budget: budget(iterations, used)}); move.Do == rules.Enter {
					c = c.Begin(c.Iteration + 1)
				}
				continue
			case rules.Rework:
				require.True(t, rejected || c.Reworks < r.Reworks, "only a person has more made")
				rejected = false
				c = c.Rework()
			case rules.Enter:
				require.NoError(t, m.Check(at, move.To))
				if at == phase.Write || at == phase.Fix {
					require.True(t, guarded || move.Regenerate || move.To == phase.Write, "L1: %s without a guard", at)
				}
				if move.To == phase.Verify {
					require.True(t, tested || !r.TestRequired, "L2")
				}
				at, c = move.To, c.Enter(move.To)
				tested, guarded = tested && at != phase.Write && at != phase.Fix, false
			}
			require.LessOrEqual(t, int64(c.Iteration), iterations[loop.Iterations], "L7")
			require.LessOrEqual(t, c.Fixes, r.FixAttempts, "L3")
			switch {
			case move.Do == rules.RunGuard || move.Do == rules.Block && flip(2):
				v := rules.GuardVerdict{Passed: !flip(3), Violates: flip(10)}
				guarded = v.Passed && !v.Violates
				move = r.AfterGuard(c, at, v)
			case move.Do == rules.Block && flip(2):
				rejected, move = true, r.AfterReject(move, "ann", "")
			case move.Do == rules.Block:
				givenUp := r.AfterHalt("halted")
				move = rules.Move{Do: rules.Stop, End: &givenUp}
			case move.Do == rules.AskPerson:
				move = r.AfterDiff(flip(2), "", "")
			case move.Do == rules.AskReviewer:
				d := []rules.Decision{rules.SaysApproved, rules.SaysRejected, rules.Undecided}[random.Intn(3)]
				if d == rules.Undecided {
					c = c.Undecided()
				}
				move = r.AfterReview(c, rules.Opinion{Decision: d})
				require.False(t, move.Approved && d != rules.SaysApproved)
			case at == phase.Complete:
				reached["complete"]++
				break course
			case at == phase.Fix && move.Regenerate:
				move = rules.Move{Do: rules.Enter, To: phase.Write, Regenerate: true}
			case at == phase.Test:
				v := rules.TestVerdict{Passed: flip(3), TimedOut: flip(50), Excused: flip(4), Progress: flip(2), Left: flip(4)}
				v.Passed = r.TestsPass(v)
				if tested = v.Passed; !tested {
					c = c.Failed([]string{"a", "b"}[random.Intn(2)], flip(3))
				}
				move = r.AfterTest(c, v)
			case at == phase.Verify:
				move = r.AfterVerify(rules.VerifyVerdict{Passed: !flip(3), TimedOut: flip(50)})
			default:
				move = r.AfterAgent(c, at, rules.AgentVerdict{
					Failed: flip(5), TimedOut: flip(50), NoChange: flip(8), Regenerate: flip(5), GaveUp: []string{"", "", "", "", "", "", "", "", "x"}[random.Intn(9)],
				})
			}
		}
	}
	for _, end := range []string{"complete", "ALO_MAX_ITERATIONS_EXCEEDED", "ALO_MAX_FIX_ATTEMPTS_EXCEEDED", "ALO_TEST_FAILED", "ALO_PHASE_TIMEOUT", "ALO_AGENT_FAILED", "ALO_GUARD_BLOCKED"} {
		require.Positive(t, reached[end], "no loop came to %s", end)
	}
}

// If nobody else decides, a reviewer that fails counts like any other failed agent of a delivery.
func TestL11_AReviewerThatFailsForGoodFailsTheDelivery(t *testing.T) {
	auto := rules.Deliver{Approval: rules.Approval{Diff: spec.Auto, Reviewer: true, Reworks: 2}}
	first := loop.Course{Iteration: 1}
	last := first.Undecided().Undecided().Undecided()
	failed := rules.Opinion{Failed: "the agent failed (exit 1)", Why: "the agent failed (exit 1)"}
	require.Equal(t, "review", brief(auto.AfterReview(first, failed)), "it is asked again first")
	require.Equal(t, "review", brief(auto.AfterReview(first.Undecided().Undecided(), failed)))
	require.Equal(t, "ALO_AGENT_FAILED", brief(auto.AfterReview(last, failed)))
	require.Equal(t, "the reviewer failed for good: the agent failed (exit 1)", auto.AfterReview(last, failed).End.Reason)
	require.Equal(t, "complete", brief(auto.AfterReview(last, rules.Opinion{Why: "neither"})), "it answered, and a person may still approve")
	asked := auto
	asked.Diff = spec.Required
	require.Equal(t, "ask", brief(asked.AfterReview(last, failed)), "a person decides")
}
