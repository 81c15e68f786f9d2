package render_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"pawl/internal/loop"
	"pawl/internal/loop/result"
	"pawl/internal/metric"
	"pawl/internal/metric/stats"
	"pawl/internal/spec/kind"
	"pawl/internal/spec/phase"
	"pawl/internal/steward"
	"pawl/internal/steward/task"
	"pawl/test/harness/constants"
)

func TestEveryEventHasALine(t *testing.T) {
	var lines []string
	for i, e := range events() {
		e.Seq, e.Time, e.Loop = int64(i+1), now.Add(time.Duration(i)*time.Second), "demo-1"
		line, ofNote := style.Event(kind.Improve, e)
		mark := "  "
		if ofNote {
			mark = "* "
		}
		lines = append(lines, mark+line)
	}
	golden(t, "events", strings.Join(lines, "\n"))
	seen := map[loop.Type]bool{}
	for _, e := range events() {
		seen[e.Type] = true
	}
	for _, known := range constants.Of[loop.Type](t, "internal/loop/event.go", "Type") {
		require.True(t, seen[known.Value], "%s is shown in no example", known.Value)
		require.NotPanics(t, func() {
			style.Event(kind.Improve, loop.Event{Type: known.Value})
			style.Note(loop.Event{Type: known.Value})
		}, known.Value)
	}
}

func TestALineIsForThePersonWhoFollowsWhereItNotesSomething(t *testing.T) {
	e := loop.Event{Type: loop.ChangeCommitted, Commit: "5c86299d94", Files: []string{"a"}}
	_, ofNote := style.Note(e)
	require.False(t, ofNote)
	e.Note = "the description names several changes"
	line, ofNote := style.Note(e)
	require.True(t, ofNote, "limits.atomic: note")
	require.Contains(t, line, "the description names several changes")

	e.Files, e.TotalFiles = []string{"a", "b"}, 9
	line, _ = style.Note(e)
	require.Contains(t, line, "at least 2 files", "the list is cut")

	slow := &loop.Judgement{Reason: "took too long and was ended after 2s", Tests: &loop.Tests{}}
	line, _ = style.Note(loop.Event{Type: loop.TestsKnown, Judgement: slow})
	require.Contains(t, line, "the tests fail on the unchanged code (took too long and was ended after 2s); no failing test is named")
	line, _ = style.Note(loop.Event{Type: loop.ChangeJudged, Step: "test", Judgement: slow})
	require.Equal(t, "tests: failed; the output names none: took too long and was ended after 2s", strings.TrimSpace(line))
	line, _ = style.Note(loop.Event{Type: loop.ChangeJudged, Step: "test", Judgement: &loop.Judgement{Passed: true, Tests: &loop.Tests{Flaky: []string{"a failure that names no test"}}}})
	require.Contains(t, line, "tests: passed; the output names none; flaky")
	line, _ = style.Note(loop.Event{Type: loop.ChangeJudged, Step: "test", Judgement: &loop.Judgement{Reason: "tests", Tests: &loop.Tests{}}})
	require.Equal(t, "tests: failed; the output names none", strings.TrimSpace(line))
	lacking := &loop.Judgement{Reason: "tests", Tests: &loop.Tests{Printed: "python: No module named pytest"}}
	line, _ = style.Note(loop.Event{Type: loop.ChangeJudged, Step: "test", Judgement: lacking})
	require.Equal(t, "tests: failed: python: No module named pytest", strings.TrimSpace(line))
	line, _ = style.Note(loop.Event{Type: loop.TestsKnown, Judgement: lacking})
	require.Contains(t, line, "the tests fail on the unchanged code (python: No module named pytest); no failing test is named")
}

func TestAnApprovedContractIsOneLineForItsFollower(t *testing.T) {
	contract, question := loop.Gate{Kind: loop.GateContract}, loop.Gate{Kind: loop.GateQuestion}
	approved := loop.Event{Type: loop.GateClosed, Gate: &contract, Answer: &loop.Answer{Message: loop.MessageApprove, By: "me"}}
	_, ofNote := style.Note(approved)
	require.False(t, ofNote, "the next line is `started by me`")
	_, ofNote = style.Event(kind.Improve, approved)
	require.True(t, ofNote, "the log has it")

	rejected := approved
	rejected.Answer = &loop.Answer{Message: loop.MessageReject, By: "me"}
	answered := loop.Event{Type: loop.GateClosed, Gate: &question, Answer: &loop.Answer{Message: loop.MessageAnswer, Choice: "retry", By: "me"}}
	for _, e := range []loop.Event{rejected, answered} {
		_, ofNote = style.Note(e)
		require.True(t, ofNote)
	}
}

func TestTheLogSeparatesThePointsOfAGate(t *testing.T) {
	gate := loop.Gate{ID: "diff-9", Kind: loop.GateDiff, Summary: "approve the change, on pawl/x iteration 1 is set aside", Points: []string{"iteration 1 is set aside"}}
	line, _ := style.Event(kind.Improve, loop.Event{Type: loop.GateOpened, Gate: &gate})
	require.Contains(t, line, "on pawl/x; iteration 1 is set aside")
}

func events() []loop.Event {
	its := iterations()
	g, five, claim := gates()["contract"], 5, claims()[0]
	return []loop.Event{
		{Type: loop.StewardOpened},
		{Type: loop.TriggerReceived, Trigger: &task.Trigger{Name: "ci", Result: "accepted", Task: "ci-1"}},
		{Type: loop.TaskSubmitted, Task: "ci-1", By: "ann", Submitted: &task.Task{Title: "Mend the build\x1b[2J"}},
		{Type: loop.TaskPrioritized, Task: "ci-1", Priority: &five, By: "ann"},
		{Type: loop.PlanMade, Task: "ci-1", TaskPlan: &task.Plan{Hash: hash, Steps: make([]task.Step, 2)}},
		{Type: loop.TierSet, Task: "ci-1", Tier: task.T1, By: "rules", TierReasons: []task.TierReason{{Tier: task.T1, Text: "paths db/**"}}},
		{Type: loop.TaskStateChanged, Task: "ci-1", From: task.Planning, To: task.Waiting, Evidence: &task.Evidence{Reason: "tier T1"}},
		{Type: loop.StepBegun, Task: "ci-1", Step: "fix", LoopID: "shop-ci-1-fix"},
		{Type: loop.ChildTold, Task: "ci-1", LoopID: "shop-ci-1-fix", Message: "pause"},
		{Type: loop.ChildReported, Task: "ci-1", Child: &task.ChildEvent{Loop: "shop-ci-1-fix", Event: task.IterationEnded}},
		{Type: loop.ActionTaken, Task: "ci-1", Action: &task.Action{Name: "iteration fix", Outcome: "discarded", Reason: "guard-fail"}},
		{Type: loop.Warned, Task: "ci-1", Reason: "the task ci-2 may change the same files"},
		{Type: loop.LoopWarned, Task: "ci-1", Finding: &task.Finding{Rule: "sameResult", Text: "the same result 2 times"}},
		{Type: loop.LoopDetected, Task: "ci-1", Finding: &task.Finding{Rule: "sameResult", Stop: true, Text: "the same result 4 times"}},
		{Type: loop.TaskStateChanged, Task: "ci-1", From: task.Executing, To: task.Waiting, Evidence: &task.Evidence{Reason: "the same result 4 times", Stop: steward.StopCircle}},
		{Type: loop.GateOpened, Task: "ci-1", Finding: &task.Finding{Text: "the same result 4 times"}, Gate: &loop.Gate{ID: "stuck-9", Kind: steward.GateStuck, Summary: "\"ci-1\": the same result 4 times"}},
		{Type: loop.RateLimited, Task: "ci-1", RateLimit: &task.RateLimit{Until: now, Said: "usage limit reached"}},
		{Type: loop.RateLimitOver, Task: "ci-1"},
		{Type: loop.MilestoneReached, Task: "ci-1", Step: "fix"},
		{Type: loop.TaskInterrupted, Task: "ci-1", Reason: "hotfix"},
		{Type: loop.DriftFound, Drift: &task.Drift{Name: "artifact", What: "STATUS_LEDGER.md", Text: "changed by hand"}},
		{Type: loop.StewardValidated, Reason: "nothing differs"},
		{Type: loop.TaskEnded, Task: "ci-1", Outcome: "done"},
		{Type: loop.TaskEnded, Task: "ci-1", Outcome: "cancelled", Reason: "no longer wanted"},
		{Type: loop.StewardEnded, Reason: "stopped by ann"},
		{Type: loop.LoopOpened, Opened: &loop.Opened{Branch: "pawl/demo-1", Base: "2c9deac54712"}},
		{Type: loop.PlanMade, Plan: &loop.Plan{Hash: hash, Text: "1. mend Merge\n2. nothing else"}},
		{Type: loop.TestsKnown, Step: "test", Judgement: testRun(false, loop.Tests{Passed: 6, Failed: 1, Failing: []string{"TestDocker"}})},
		{Type: loop.TestsSkipped, Iteration: 1, Reason: "test.required is false"},
		{Type: loop.ChangeAccepted, Iteration: 1, Commit: "3eff7429e6aa"},
		{Type: loop.ChangeJudged, Iteration: 1, Step: "test", Judgement: testRun(false, loop.Tests{Passed: 5, Failed: 2, Failing: []string{"TestA", "TestB"}, New: []string{"TestB"}, Fixed: []string{"TestC"}})},
		{Type: loop.ChangeJudged, Iteration: 1, Step: "test", Judgement: testRun(true, loop.Tests{Passed: 7, Skipped: 1, Flaky: []string{"TestD"}})},
		{Type: loop.ChangeJudged, Iteration: 1, Step: "test", Judgement: testRun(false, loop.Tests{Failed: 1, Broken: true, Failing: []string{"a", "b", "c", "d", "e\x1b[2J"}})},
		review("APPROVED", true),
		{Type: loop.LoopResumed, Head: "2c9deac54712"},
		{Type: loop.ContractDrawn, Contract: &loop.Contract{Hash: hash, Sealed: []loop.Seal{{Path: "go.mod"}}}},
		{Type: loop.ContractAmended, By: "me", Amendment: []byte(`{"verify":{"command":"weigh"}}`), Contract: &loop.Contract{Hash: hash}},
		{Type: loop.BaselineMeasured, Metric: ref("34051.6")},
		{Type: loop.GateOpened, Gate: &g},
		{Type: loop.GateEscalated, Gate: &g},
		{Type: loop.GateClosed, Answer: &loop.Answer{Gate: "contract-8", Message: "approve", By: "me"}, Note: "go"},
		{Type: loop.AutonomyStarted, By: "me"},
		{Type: loop.CheckpointCreated, Iteration: 1, Head: "2c9deac54712"},
		{Type: loop.IterationStarted, Iteration: 1, BudgetsRemaining: map[loop.Resource]metric.Decimal{loop.Iterations: dec("9"), loop.ToolCalls: dec("1")}},
		{Type: loop.PhaseEntered, Iteration: 1, Phase: phase.Modify, Attempt: 2},
		{Type: loop.StepEnded, Iteration: 1, Step: "verify", Usage: &loop.Usage{ActiveMs: 1234}},
		{Type: loop.IdeaQueued, Iteration: 1, Idea: "remove Y"},
		{Type: loop.IdeaTaken, Iteration: 1, Idea: "remove Y"},
		{Type: loop.ChangeCommitted, Iteration: 1, Commit: "3eff7429e6aa", Files: []string{"a.go"}},
		{Type: loop.ChangeJudged, Iteration: 1, Step: "verify", Metric: ref("28356.6"), Judgement: &loop.Judgement{Passed: true}},
		{Type: loop.ChangeJudged, Iteration: 1, Step: "policy", Judgement: &loop.Judgement{Blocked: true, Reason: "policy:sealed", Violations: []string{"sealed: go.mod"}}},
		{Type: loop.IterationSucceeded, Iteration: 1, Record: &its[0]},
		{Type: loop.ChangeReverted, Iteration: 2, Commit: "3eff7429e6aa", Reason: "no improvement"},
		{Type: loop.IterationFailed, Iteration: 2, Record: &its[1]},
		{Type: loop.RepairAttempted, Iteration: 3, FailureReason: "guard-fail", Reason: "it exits 0, but 2 tests are missing", Attempt: 2, Note: "leave out\x1b[31m the \x00far ones"},
		{Type: loop.IterationFailed, Iteration: 3, Record: &its[2]},
		{Type: loop.StrategyShifted, Iteration: 5, Reason: "5 discards in a row"},
		{Type: loop.MessageReceived, Iteration: 5, Message: "steer", By: "me", Note: "look at plan.go"},
		{Type: loop.MessageRefused, Iteration: 5, Message: "approve", Reason: "no gate is open"},
		{Type: loop.AutonomyPaused, Iteration: 5, Reason: "pause"},
		{Type: loop.AutonomyResumed, Iteration: 5, By: "me"},
		{Type: loop.PermissionGranted, Iteration: 5, Step: "modify", Role: "writer", Reason: "canEditSource"},
		{Type: loop.PermissionDenied, Iteration: 5, Step: "modify", Role: "writer", Reason: "the role writer is not permitted canEditSource\nGrant it."},
		{Type: loop.PushRefused, Iteration: 5, Reason: "the branch is checked out"},
		{Type: loop.AgentReplaced, Iteration: 5, Role: "writer", Agent: "claude", Outcome: "rate-limited", Reason: "rate limit five_hour", Note: "codex"},
		{Type: loop.SleepBegun, Iteration: 5, Sleep: &loop.Sleep{Class: result.RateLimited, Reason: "rate limit five_hour", Until: now.Add(time.Hour), Times: 1}},
		{Type: loop.SleepEnded, Iteration: 5},
		{Type: loop.Warned, Iteration: 5, Reason: "verify printed several numbers"},
		{Type: loop.SampleTaken, Iteration: 5, Of: stats.MeasureReference, Metric: ref("10.2")},
		{Type: loop.ChangeJudged, Iteration: 5, Step: "verify", Metric: ref("9.8"), Judgement: &loop.Judgement{
			Passed: true, Samples: &stats.Judgement{Do: stats.Keep, Samples: 5, Reference: dec("10.15"), LLR: 2.31571},
		}},
		{Type: loop.ClaimMade, Iteration: 5, Claim: &claim},
		{Type: loop.JudgedFromScratch, Iteration: 10, Scratch: &loop.Scratch{Judged: true, Passed: true, Metric: ref("9.8")}},
		{Type: loop.JudgedFromScratch, Iteration: 10, Scratch: &loop.Scratch{Judged: true, Reason: "the guard command passed before, and fails from scratch (exit 1): `make test`"}},
		{Type: loop.JudgedFromScratch, Iteration: 10, Scratch: &loop.Scratch{Reason: "the loop ended first: Ctrl-C"}},
		{Type: loop.BudgetExhausted, Iteration: 10, ExhaustedBudget: loop.Iterations},
		{Type: loop.ProposalMade, Iteration: 10, Proposal: &loop.Proposal{Hash: hash, Files: 3, Insertions: 80, Deletions: 25}},
		{Type: loop.AutonomyCompleted, Iteration: 10, Reason: "the iteration limit is reached"},
		{Type: loop.AutonomyHalted, Iteration: 10, Reason: "Ctrl-C"},
		{Type: loop.LoopFailed, Iteration: 10, ErrorCode: "ALO_PHASE_TIMEOUT", Reason: "verify took too long"},
		{Type: loop.ProposalApproved, Iteration: 10, By: "me", Note: "fine", Proposal: &loop.Proposal{Hash: hash, State: "approved"}},
		{Type: loop.ProposalRejected, Iteration: 10, By: "me", Proposal: &loop.Proposal{Hash: hash, State: "rejected"}},
		{Type: loop.ProposalApplied, Iteration: 10, By: "me", How: "squash", Proposal: &loop.Proposal{Hash: hash, State: "applied"}},
		{Type: loop.LoopMoved, Head: "2c9deac54712", Opened: &loop.Opened{Host: "b7e23ec29af2"}, Reason: "the host 3fdba35f04dc asked for no work for 1m15s"},
		{Type: loop.CandidateBegun, Candidate: &loop.Candidate{N: 4, Of: 3, Idea: "remove\x1b[31m Y"}},
		{Type: loop.CandidateMade, Candidate: &loop.Candidate{N: 4, Of: 3, Made: true, Commit: "3eff7429e6aa", Description: "remove Y"}},
		{Type: loop.CandidateJudged, Candidate: &loop.Candidate{N: 4, Made: true, Description: "remove Y", Trial: &loop.Trial{Passed: true, Metric: ref("28356.6")}}},
		{Type: loop.CandidateTaken, Iteration: 1, Candidate: &loop.Candidate{N: 4, Description: "remove Y"}},
		{Type: loop.CandidateDropped, Reason: "the budget toolCalls is used up", Candidate: &loop.Candidate{N: 6}},
		{Type: loop.CandidateConflicted, Iteration: 1, Reason: "a.go", Candidate: &loop.Candidate{N: 5}},
		{Type: loop.BranchBegun, Iteration: 9, Reason: "5 discards in a row", Branch: &loop.Branch{N: 1, From: 1, Head: "3eff7429e6aa"}},
		{Type: loop.BranchCompared, Iteration: 10, Reason: "keep", Branch: &loop.Branch{N: 1}, Judgement: &loop.Judgement{
			Passed: true, Samples: &stats.Judgement{Samples: 7, References: 7, Mean: *ref("28100"), Reference: *ref("28356.6"), LLR: 3.2},
		}},
		{Type: loop.BranchKept, Iteration: 10, Reason: "28100, and 28356.6 was the best", Branch: &loop.Branch{N: 1}},
		{Type: loop.BranchGivenUp, Iteration: 16, Reason: "5 discards in a row on the branch", Branch: &loop.Branch{N: 2, Head: "3eff7429e6aa"}},
		{Type: loop.ChildTold, Task: "ci-1", LoopID: "shop-ci-1-fix", Message: "pause", Reason: "the loop takes no message: it has ended"},
		{Type: loop.GuardKnown, Step: "guard", MeasuredAt: now.Add(-4 * time.Minute)},
	}
}

func testRun(passed bool, t loop.Tests) *loop.Judgement {
	return &loop.Judgement{Passed: passed, Tests: &t}
}

func review(word string, met bool) loop.Event {
	return loop.Event{Type: loop.ProposalReviewed, Iteration: 1, Reason: word, Note: "tried on the desk", Criteria: []loop.Criterion{
		{Criterion: "it joins", Met: true, Evidence: "TestA passes"}, {Criterion: "it sorts", Met: met, Evidence: "TestB"},
	}}
}
