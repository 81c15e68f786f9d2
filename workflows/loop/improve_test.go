package loop_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"pawl/internal/fault"
	"pawl/internal/lib/list"
	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/internal/metric/reason"
	"pawl/internal/spec/phase"
)

func TestP6_KeepsWhatImprovesAndUndoesTheRest(t *testing.T) {
	p := play(t, newWorld(t, map[int][]try{
		1: {{Says: "better", Metric: "11"}}, 2: {{Says: "worse", Metric: "9"}}, 3: {{Says: "same", Metric: "11"}}, 4: {{Says: "best", Metric: "12.5"}},
	}), specOf(map[string]any{"limits": map[string]any{"iterations": 4}}), nil)
	require.Nil(t, p.err)
	require.Equal(t, []string{"1 yes 11", "2 no 9", "3 no 11", "4 yes 12.5"}, p.course())
	require.Equal(t, []string{"commit-2", "commit-3"}, p.reverts)
	require.Equal(t, "max_steps", p.result.ExitStatus)
	require.Empty(t, p.result.ErrorCode)
	require.Equal(t, "2.5", p.result.Delta.String())
	require.Equal(t, loop.Completed, p.final.Status)
	require.Len(t, p.result.Kept, 2)
}

func TestP6_LowerIsBetter(t *testing.T) {
	p := play(t, newWorld(t, map[int][]try{1: {{Says: "up", Metric: "11"}}, 2: {{Says: "down", Metric: "9.9"}}}),
		specOf(map[string]any{"verify": map[string]any{"direction": "lower"}, "limits": map[string]any{"iterations": 2}}), nil)
	require.Equal(t, []string{"1 no 11", "2 yes 9.9"}, p.course())
}

func TestP5_CrashRecoveryTable(t *testing.T) {
	for name, c := range map[string]struct {
		try    try
		course string
		code   fault.Code
	}{
		"a verify crash is a discard":    {try{Says: "x", Crash: true}, "1 no 10 error:verify-crash", ""},
		"no number is reverted":          {try{Says: "x", NoNumber: true}, "1 no 10 error:no-number", ""},
		"a timeout aborts the loop":      {try{Says: "x", Timeout: true}, "1 no 10 error:timeout", fault.PhaseTimeout},
		"an agent that fails every time": {try{Fails: true}, "1 no 10 error:agent", fault.AgentFailed},
		"an agent that gives up":         {try{GivesUp: "too hard"}, "1 no 10 error:agent", fault.AgentFailed},
		"no change":                      {try{Says: "x", Nothing: true}, "1 no 10 no-change", ""},
		"out of scope":                   {try{Says: "x", Violations: []api.Violation{{Rule: "scope", Path: "b"}}}, "1 no 10 policy:scope", ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := play(t, newWorld(t, map[int][]try{1: {c.try}}), specOf(map[string]any{"limits": map[string]any{"iterations": 1}}), nil)
			require.Equal(t, []string{c.course}, p.course())
			if c.code == "" {
				require.Nil(t, p.err)
			} else {
				require.Equal(t, string(c.code), p.err.Type())
				require.Equal(t, map[fault.Code]string{fault.PhaseTimeout: "timeout", fault.AgentFailed: "interrupted"}[c.code], p.result.ExitStatus)
			}
			require.Equal(t, p.commits, len(p.reverts), "every commit that is not kept is reverted")
		})
	}
}

func TestP0_AGuardThatSeesNoCodeEndsTheLoopBeforeItStarts(t *testing.T) {
	on := map[string]any{"guard": map[string]any{"command": "check"}, "validate": map[string]any{"canary": true}, "limits": map[string]any{"iterations": 1}}
	w := newWorld(t, map[int][]try{1: {{Says: "x", Metric: "20"}}})
	p := play(t, w, specOf(on), nil)
	require.Equal(t, []string{"0.0 verify", "0.0 guard", "0.0 canary", "1.1 modify", "1.1 verify", "1.1 guard"}, p.steps)
	require.Equal(t, []string{"1 yes 20"}, p.course())

	w = newWorld(t, nil)
	w.baseline = try{Metric: "10", Blind: true}
	p = play(t, w, specOf(on), nil)
	require.Equal(t, string(fault.PreconditionFailed), p.err.Type())
	require.Contains(t, p.result.Reason, "the guard does not see your code: pawl put a syntax error into 2 files in scope")
	require.Contains(t, p.result.Recovery, "validate.canary: false")
	require.Empty(t, p.agents)

	delete(on, "guard")
	w = newWorld(t, nil)
	w.baseline = try{Metric: "10", Blind: true}
	p = play(t, w, specOf(on), nil)
	require.Nil(t, p.err, "without a guard there is only the metric")
	require.Contains(t, p.steps, "0.0 canary")
}

// TestP0_AMetricThatSeesNoCodeIsNoted: the canary measures the broken code too, with and without a guard.
func TestP0_AMetricThatSeesNoCodeIsNoted(t *testing.T) {
	for _, guard := range []string{"", "check"} {
		w := newWorld(t, map[int][]try{1: {{Says: "x", Metric: "20"}}})
		w.stepping = func(ctx context.Context, in asked) (stepped, error) {
			out, err := w.step(ctx, in)
			out.Unmoved = in.Key.Name == "canary"
			return out, err
		}
		p := play(t, w, specOf(map[string]any{"guard": map[string]any{"command": guard}, "validate": map[string]any{"canary": true}, "limits": map[string]any{"iterations": 1}}), nil)
		require.Equal(t, "verify may not see your code: it printed 10 with a syntax error in 2 files (), and also without any file in scope", p.events(loop.Warned)[0].Reason)
	}
}

func TestP5_5_AGuardOfFewerTestsHasFailed(t *testing.T) {
	for _, c := range []struct {
		fewer bool
		want  int
	}{{false, 12}, {true, 0}} {
		w, asks := newWorld(t, map[int][]try{1: {{Says: "x", Metric: "20"}}}), []int{}
		w.stepping = func(ctx context.Context, in asked) (stepped, error) {
			out, err := w.step(ctx, in)
			if in.Key.Name == "guard" {
				asks, out.Passing = append(asks, in.Tests), 12
			}
			return out, err
		}
		play(t, w, specOf(map[string]any{"guard": map[string]any{"command": "check", "fewerTests": c.fewer}, "limits": map[string]any{"iterations": 1}}), nil)
		require.Equal(t, []int{0, c.want}, asks, "as many as at the baseline have to pass")
	}
}

// TestP0_WhatTheGuardTestedIsSaid: the report says it, and a guard of a change is compared with it.
func TestP0_WhatTheGuardTestedIsSaid(t *testing.T) {
	tested := loop.Tested{Format: "pytest", Passed: 6, Skipped: 1}
	var known []*loop.Tested
	w := newWorld(t, map[int][]try{1: {{Says: "x", Metric: "20"}}})
	w.stepping = func(ctx context.Context, in asked) (stepped, error) {
		out, err := w.step(ctx, in)
		if in.Key.Name == "guard" {
			known = append(known, in.Known)
			out.Tested = &tested
		}
		if in.Key.Name == "canary" {
			out.Files = 0
		}
		return out, err
	}
	doc := specOf(map[string]any{"guard": map[string]any{"command": "check"}, "validate": map[string]any{"canary": true}, "limits": map[string]any{"iterations": 1}})
	p := play(t, w, doc, nil)
	require.Equal(t, "6 passed, 1 skipped (pytest); canary not tried: no code that pawl can break", p.result.Tested.String())
	require.Len(t, known, 2)
	require.Nil(t, known[0], "there is nothing to compare the unchanged code with")
	require.Equal(t, 6, known[1].Passed)
}

// TestP0_VanishedTestsAreNotedOnce, although each later change lacks them too.
func TestP0_VanishedTestsAreNotedOnce(t *testing.T) {
	changes := map[int][]try{1: {{Says: "a", Metric: "20"}}, 2: {{Says: "b", Metric: "30"}}, 3: {{Says: "c", Metric: "40"}}}
	w := newWorld(t, changes)
	var logs []string
	w.stepping = func(ctx context.Context, in asked) (stepped, error) {
		out, err := w.step(ctx, in)
		if in.Key.Name != "guard" {
			return out, err
		}
		out.Tested, out.Log = &loop.Tested{Format: "tap", Passed: 2}, "logs"
		if in.Known != nil {
			logs = append(logs, in.Known.Log)
			out.Vanished = "gone: a"
		}
		if in.Key.Iteration == 3 {
			out.Vanished = "gone: a, b"
		}
		return out, err
	}
	doc := specOf(map[string]any{"guard": map[string]any{"command": "check"}, "limits": map[string]any{"iterations": 3}})
	p := play(t, w, doc, nil)
	noted := list.Map(p.events(loop.Warned), func(e loop.Event) string { return e.Step + " " + e.Reason })
	require.Equal(t, []string{"guard gone: a", "guard gone: a, b"}, noted)
	var kept []string
	for _, k := range p.final.Kept {
		kept = append(kept, k.Vanished)
	}
	require.Equal(t, []string{"gone: a", "gone: a", "gone: a, b"}, kept)
	require.Equal(t, []string{"logs", "logs", "logs"}, logs, "the log of the unchanged code has the names")
}

func TestP55_GuardIsReworkedTwiceThenDiscarded(t *testing.T) {
	doc := specOf(map[string]any{"guard": map[string]any{"command": "check"}, "limits": map[string]any{"iterations": 1}})
	t.Run("all attempts fail", func(t *testing.T) {
		p := play(t, newWorld(t, map[int][]try{1: {{Says: "x", Metric: "20", Guard: true}}}), doc, nil)
		require.Equal(t, []string{"1 no 10 guard-fail"}, p.course())
		require.Equal(t, 3, p.commits)
		require.Len(t, p.reverts, 3)
		require.Equal(t, "guard-fail", p.agents[1].Repair)
	})
	t.Run("the second attempt passes", func(t *testing.T) {
		p := play(t, newWorld(t, map[int][]try{1: {{Says: "x", Metric: "20", Guard: true}, {Says: "y", Metric: "15"}}}), doc, nil)
		require.Equal(t, []string{"1 yes 15"}, p.course())
		require.Contains(t, p.types(), loop.RepairAttempted)
	})
	t.Run("what the metric discards is not guarded", func(t *testing.T) {
		w := newWorld(t, map[int][]try{1: {{Says: "x", Metric: "9", Guard: true}}})
		p := play(t, w, doc, nil)
		require.Equal(t, []string{"1 no 9"}, p.course())
		require.Equal(t, []string{"0.0 verify", "0.0 guard", "1.1 modify", "1.1 verify"}, w.steps)
	})
}

func TestP3_SyntaxIsReworkedThenDiscarded(t *testing.T) {
	p := play(t, newWorld(t, map[int][]try{1: {{Says: "x", Check: true}}}),
		specOf(map[string]any{"check": map[string]any{"command": "lint"}, "limits": map[string]any{"iterations": 1}}), nil)
	require.Equal(t, []string{"1 no 10 error:syntax"}, p.course())
	require.Zero(t, p.commits, "what does not parse is not committed")
}

// The policies come before every command of the spec: a change that violates one is not checked either.
func TestP3_WhatViolatesAPolicyIsNotChecked(t *testing.T) {
	p := play(t, newWorld(t, map[int][]try{1: {{Says: "x", Check: true, Violations: []api.Violation{{Rule: "scope", Path: "b"}}}}}),
		specOf(map[string]any{"check": map[string]any{"command": "lint"}, "limits": map[string]any{"iterations": 1}}), nil)
	require.Equal(t, []string{"1 no 10 policy:scope"}, p.course())
	require.Equal(t, "policy:scope", p.final.LastGuard.Reason)
}

func TestP2_ADescriptionOfTwoChangesGetsOneRework(t *testing.T) {
	p := play(t, newWorld(t, map[int][]try{1: {{Says: "cut a and paste b", Metric: "20"}}, 2: {{Says: "cut a and paste b", Metric: "20"}, {Says: "cut a", Metric: "30"}}}),
		specOf(map[string]any{"limits": map[string]any{"iterations": 2}}), nil)
	require.Equal(t, []string{"1 no 10 not-atomic", "2 yes 30"}, p.course())
	require.Equal(t, []string{"0.0 verify", "1.1 modify", "1.2 modify", "2.1 modify", "2.2 modify", "2.2 verify"}, p.steps)
	require.Equal(t, "not-atomic: the description names several changes, and the diff is in 2 folders", p.agents[1].Repair)
}

func TestP2_SeveralChangesAreANoteWhereTheSpecSaysSo(t *testing.T) {
	p := play(t, newWorld(t, map[int][]try{1: {{Says: "cut a and paste b", Metric: "20"}}}), specOf(map[string]any{"limits": map[string]any{"iterations": 1, "atomic": "note"}}), nil)
	require.Equal(t, []string{"1 yes 20"}, p.course())
	require.Contains(t, p.final.Iterations[0].Note, "names several changes")
	require.Equal(t, p.final.Iterations[0].Note, p.events(loop.ChangeCommitted)[0].Note)
}

func TestP2_IdeasAreSplitAndQueued(t *testing.T) {
	w := newWorld(t, nil)
	w.ideas = map[int][]try{1: {{Idea: "cache the table and drop the copy"}}}
	p := play(t, w, specOf(map[string]any{"agent": map[string]any{"command": "agent", "ideas": true}, "limits": map[string]any{"iterations": 2}}), nil)
	require.Equal(t, []string{"0.0 verify", "1.1 ideate", "1.1 modify", "1.1 verify", "2.1 modify", "2.1 verify"}, p.steps)
	require.Equal(t, "cache the table", p.agents[1].Idea)
	require.Equal(t, "drop the copy", p.agents[2].Idea)
}

func TestP2_WordsThatAreNoIdeaCostTheIteration(t *testing.T) {
	for _, words := range []string{"", "and", " & , and;", "\t"} {
		w := newWorld(t, nil)
		w.ideas = map[int][]try{1: {{Idea: words}}, 2: {{Idea: "cut the copy"}}}
		p := play(t, w, specOf(map[string]any{"agent": map[string]any{"command": "agent", "ideas": true}, "limits": map[string]any{"iterations": 2}}), nil)
		require.Nil(t, p.err)
		require.Equal(t, "1 no 10 error:agent", p.course()[0], "%q", words)
		require.Len(t, p.course(), 2)
	}
}

func TestP2_TheSameTreeIsNotJudgedTwice(t *testing.T) {
	p := play(t, newWorld(t, map[int][]try{1: {{Says: "a", Metric: "9", Tree: "same"}}, 2: {{Says: "b", Metric: "99", Tree: "same"}}}),
		specOf(map[string]any{"limits": map[string]any{"iterations": 2}}), nil)
	require.Equal(t, []string{"1 no 9", "2 no 10 repeat"}, p.course())
	row := p.final.Iterations[1]
	require.True(t, row.Unmeasured && row.Delta.IsZero(), "P7: the row carries the reference")
	require.Equal(t, "the same files as iteration 1", row.Why())
	require.Len(t, p.reverts, 2)
}

func TestP8_StopsAfterDiscardsInARowAndShiftsBefore(t *testing.T) {
	p := play(t, newWorld(t, nil), specOf(map[string]any{"limits": map[string]any{"iterations": 50}}), nil)
	require.Nil(t, p.err)
	require.Equal(t, 10, p.result.Discarded)
	require.Equal(t, "completed", p.result.ExitStatus)
	require.Equal(t, 1, p.final.Strategy)
	require.Contains(t, p.types(), loop.StrategyShifted)
}

func TestA2_TwoThresholdsAtOnceRecordTheBudgetToo(t *testing.T) {
	spent := func(limits map[string]any) (all []loop.Resource) {
		p := play(t, newWorld(t, nil), specOf(map[string]any{"limits": limits}), nil)
		require.Nil(t, p.err)
		for _, e := range p.events(loop.BudgetExhausted) {
			all = append(all, e.ExhaustedBudget)
		}
		return all
	}
	require.Equal(t, []loop.Resource{loop.Iterations}, spent(map[string]any{"iterations": 4, "discards": 4}), "as many discards in a row as there are iterations")
	require.Empty(t, spent(map[string]any{"iterations": 5, "discards": 4}))
	require.Equal(t, []loop.Resource{loop.Iterations, loop.ToolCalls}, spent(map[string]any{"iterations": 2, "toolCalls": 2}))
}

func TestA7_ProposalMadeOnlyWithAProposal(t *testing.T) {
	nothing := play(t, newWorld(t, nil), specOf(map[string]any{"limits": map[string]any{"iterations": 1}}), nil)
	require.NotContains(t, nothing.types(), loop.ProposalMade)
	kept := play(t, newWorld(t, map[int][]try{1: {{Says: "a", Metric: "11"}}}), specOf(map[string]any{"limits": map[string]any{"iterations": 1}}), nil)
	for _, e := range kept.events(loop.ProposalMade) {
		require.NotNil(t, e.Proposal)
	}
	require.Len(t, kept.events(loop.ProposalMade), 1)
}

// Damage that a host has mended is in the ledger once. What it mends at the end stays on the host.
func TestWhatWasMendedIsRecordedOnce(t *testing.T) {
	w := newWorld(t, map[int][]try{1: {{Metric: "11"}}, 2: {{Metric: "12"}}})
	w.mended = []string{"the store is gone; it is mended", "the desk was lost"}
	p := play(t, w, specOf(map[string]any{"limits": map[string]any{"iterations": 2}}), nil)
	var told []string
	for _, e := range w.ledger {
		if e.Type == loop.Warned {
			told = append(told, e.Reason)
		}
	}
	require.Equal(t, []string{"the store is gone; it is mended", "the desk was lost"}, told)
	require.Equal(t, w.ledger[len(w.ledger)-1].Seq, p.final.Seq)
}

func TestP8_LoopStopFile(t *testing.T) {
	w := newWorld(t, nil)
	w.onSettle = func(n int) string {
		if n == 2 {
			return "the file loop-stop asks the loop to stop"
		}
		return ""
	}
	p := play(t, w, specOf(nil), nil)
	require.Equal(t, 2, p.result.Iterations)
	require.Equal(t, string(fault.Cancelled), p.result.ErrorCode)
	require.Equal(t, loop.Halted, p.final.Status)
}

func TestP8_TargetMet(t *testing.T) {
	p := play(t, newWorld(t, map[int][]try{1: {{Says: "x", Metric: "12"}}}), specOf(map[string]any{"verify": map[string]any{"target": 12}}), nil)
	require.Equal(t, 1, p.result.Iterations)
	require.Equal(t, "target met", p.result.Recommendation)
	require.Equal(t, "completed", p.result.ExitStatus)
}

// TestAFailedAgentsRowSaysWhy has agents that said something before they failed, one by one and as candidates.
func TestAFailedAgentsRowSaysWhy(t *testing.T) {
	const why = "it said nothing for 5s (limits.silence)"
	fails := try{Says: "made it faster", Failure: why}
	gaveUp := try{Says: "it is too steep for me", GivesUp: "too steep"}
	script := map[int][]try{1: {gaveUp}, 2: {fails}}

	p := play(t, newWorld(t, script), specOf(map[string]any{"limits": map[string]any{"iterations": 2}}), nil)
	require.Equal(t, []string{"1 no 10 error:agent", "2 no 10 error:agent"}, p.course())
	first, second := p.final.Iterations[0], p.final.Iterations[1]
	require.Equal(t, "it is too steep for me", first.Description, "a change's words stay its own")
	require.Equal(t, "the agent gave up: too steep", first.Why())
	require.Equal(t, "made it faster", second.Description)
	require.Equal(t, why, second.Why())
	require.Contains(t, p.result.Reason, "the agent failed in every iteration: "+why)

	m := newTeam(t, map[int]float64{1: 1})
	m.script = map[int][]try{2: {fails}}
	p = play(t, m.world, atOnce(2, 2, nil), nil)
	require.Len(t, p.events(loop.CandidateMade), 2)
	for _, iter := range p.final.Iterations {
		if iter.Reason == reason.AgentFailed {
			require.Equal(t, why, iter.Why())
			return
		}
	}
	require.Fail(t, "no candidate failed")
}

func TestThreeAgentFailuresInARowFailTheLoop(t *testing.T) {
	p := play(t, newWorld(t, map[int][]try{1: {{Fails: true}}, 2: {{Fails: true}}, 3: {{Fails: true}}}), specOf(nil), nil)
	require.Equal(t, string(fault.AgentFailed), p.err.Type())
	require.Equal(t, 3, p.result.Iterations)
	require.Equal(t, loop.Failed, p.final.Status)
	require.NotEmpty(t, p.final.Recovery)
}

func TestP0_Preconditions(t *testing.T) {
	t.Run("the repository", func(t *testing.T) {
		w := newWorld(t, nil)
		w.openErr = temporal.NewNonRetryableApplicationError("the tree is dirty", string(fault.PreconditionFailed), nil)
		p := play(t, w, specOf(nil), nil)
		require.Equal(t, string(fault.PreconditionFailed), p.err.Type())
		require.Contains(t, p.result.Reason, "dirty")
	})
	t.Run("verify", func(t *testing.T) {
		w := newWorld(t, nil)
		w.baseline = try{Crash: true}
		p := play(t, w, specOf(nil), nil)
		require.Equal(t, string(fault.PreconditionFailed), p.err.Type())
		require.Equal(t, 1, p.calls[api.CloseName], "the end is in the ledger")
	})
	t.Run("guard", func(t *testing.T) {
		w := newWorld(t, nil)
		w.baseline = try{Metric: "1", Guard: true}
		p := play(t, w, specOf(map[string]any{"guard": map[string]any{"command": "check"}}), nil)
		require.Equal(t, string(fault.PreconditionFailed), p.err.Type())
	})
}

func TestASpecOfAnotherKindFailsTheWorkflowInOneSentence(t *testing.T) {
	p := play(t, newWorld(t, nil), []byte(`{"kind": "steward", "name": "crew", "governance": ["x"]}`), nil)
	require.Equal(t, string(fault.InvalidSpec), p.err.Type())
	require.Equal(t, "kind: the input is for a workflow of type Steward (kind steward), and this one is of type Improve (kind improve)", p.result.Reason)
	require.Equal(t, "Start a workflow of type Steward with it, or correct `kind`.", p.result.Recovery)
}

func TestInvalidSpecFailsTheWorkflow(t *testing.T) {
	p := play(t, newWorld(t, nil), specOf(map[string]any{"scop": "x", "verify": map[string]any{"direction": "up"}}), nil)
	require.Equal(t, string(fault.InvalidSpec), p.err.Type())
	require.Contains(t, p.err.Error(), "scop")
	require.Contains(t, p.err.Error(), "direction")
	require.NotNil(t, p.result.Kept, "an empty list, for programs")
	require.Zero(t, p.calls[api.OpenName])

	p = play(t, newWorld(t, nil), specOf(map[string]any{"agent": map[string]any{"use": "codex", "command": []string{"codex"}, "meter": "off"}, "limits": map[string]any{"tokens": 1000}}), nil)
	require.Equal(t, string(fault.InvalidSpec), p.err.Type())
	require.ErrorContains(t, p.err, "limits.tokens: can't be kept")
}

func TestA2_BudgetsHalt(t *testing.T) {
	p := play(t, newWorld(t, nil), specOf(map[string]any{"limits": map[string]any{"toolCalls": 3, "iterations": 9}}), nil)
	require.Equal(t, 3, p.result.Iterations)
	require.Equal(t, string(fault.BudgetExhausted), p.result.ErrorCode)
	require.Equal(t, "max_steps", p.result.ExitStatus)
	require.Contains(t, p.types(), loop.BudgetExhausted)
	require.Len(t, p.course(), 3, "what the last tool call made was still judged")
}

func TestA3_CheckpointBeforeEveryIteration(t *testing.T) {
	p := play(t, newWorld(t, nil), specOf(nil), nil)
	checkpoints := 0
	for _, ty := range p.types() {
		switch ty {
		case loop.CheckpointCreated:
			checkpoints++
		case loop.IterationStarted:
			checkpoints--
			require.Zero(t, checkpoints)
		}
	}
	require.Equal(t, []string{"1", "2", "3", "4", "5"}, p.told, "what the ledger says when an agent starts")
}

func TestL9_SealedFileBlocksUntilAPersonActs(t *testing.T) {
	sealed := []api.Violation{{Rule: "sealed", Path: "guard.sh", Blocks: true}}
	spec := specOf(map[string]any{"limits": map[string]any{"onSealed": "block", "iterations": 2}})
	blocked := func(answers ...string) played {
		script := map[int][]try{1: {{Says: "x", Violations: sealed}}, 2: {{Says: "y", Metric: "11"}}}
		return play(t, newWorld(t, script), spec, func(env *testsuite.TestWorkflowEnvironment) {
			for i, answer := range answers {
				at(t, env, time.Duration(i+1)*time.Hour, func(s loop.State) {
					require.Equal(t, loop.Blocked, s.Status)
					require.Equal(t, 1, s.LastGuard.Iteration)
					env.SignalWorkflow(answer, nil)
				})
			}
		})
	}
	p := blocked("continue", "reject") // judged again, still sealed
	require.Equal(t, []string{"1 no 10 policy:sealed", "2 yes 11"}, p.course(), "a rejection drops the change, and the loop goes on")
	require.Equal(t, 3, p.calls[api.CommitName])
	require.Zero(t, p.calls["park"], "the parked change is on the desk")

	p = blocked("halt")
	require.Equal(t, string(fault.GuardBlocked), p.result.ErrorCode)
	require.Equal(t, loop.Halted, p.final.Status)
}

func TestP3_ASealedFileIsReworkedOnceAndThenCostsTheIteration(t *testing.T) {
	sealed := []api.Violation{{Rule: "sealed", Path: "a_test.go", Detail: "it judges the work and may not change", Blocks: true}}
	p := play(t, newWorld(t, map[int][]try{
		1: {{Says: "x", Violations: sealed}, {Says: "y", Metric: "11"}}, 2: {{Says: "z", Violations: sealed}}, 3: {{Says: "on", Metric: "12"}},
	}), specOf(map[string]any{"limits": map[string]any{"iterations": 3}}), nil)
	require.Equal(t, []string{"1 yes 11", "2 no 11 policy:sealed", "3 yes 12"}, p.course())
	require.Empty(t, p.events(loop.GateOpened))
	require.Equal(t, "sealed: a_test.go", p.agents[1].Repair, "the agent is told where")

	secret := []api.Violation{{Rule: "secrets", Path: "a.go", Blocks: true}}
	p = play(t, newWorld(t, map[int][]try{1: {{Says: "x", Violations: secret}}}), specOf(map[string]any{"limits": map[string]any{"iterations": 1}}), func(env *testsuite.TestWorkflowEnvironment) {
		at(t, env, time.Hour, func(s loop.State) {
			require.Equal(t, loop.Blocked, s.Status, "a secret still stops the loop")
			env.SignalWorkflow("reject", nil)
		})
	})
	require.Equal(t, []string{"1 no 10 policy:secrets"}, p.course())
}

func TestP5_NoNumberTwiceInARowAsks(t *testing.T) {
	p := play(t, newWorld(t, map[int][]try{1: {{Says: "a", NoNumber: true}}, 2: {{Says: "b", NoNumber: true}}}), specOf(nil), func(env *testsuite.TestWorkflowEnvironment) {
		env.RegisterDelayedCallback(func() {
			s := query(t, env)
			require.Equal(t, loop.GateQuestion, s.Gate.Kind)
			require.Equal(t, []string{"retry", "halt"}, s.Gate.Choices)
			env.SignalWorkflow("answer", map[string]string{"choice": "nonsense"})
			env.SignalWorkflow("answer", map[string]string{"choice": "retry"})
		}, time.Hour)
	})
	require.Equal(t, 5, p.result.Iterations)
	require.Equal(t, "nothing", p.final.Iterations[0].Note, "what was printed instead")
}

func TestP5_ChangesWithoutANumberAreAtFaultIfTheReferenceHasOne(t *testing.T) {
	script := map[int][]try{}
	for n := range 9 {
		script[n] = []try{{Says: "mute", NoNumber: true, Tree: fmt.Sprint(n)}}
	}
	w := newWorld(t, script)
	w.kept = try{Metric: "10"}
	p := play(t, w, specOf(map[string]any{"limits": map[string]any{"iterations": 9, "discards": 5}}), nil)
	require.Equal(t, 5, p.result.Iterations, "they are discards in a row")
	require.NotContains(t, p.types(), loop.GateOpened)
	require.Equal(t, []string{"2.1 reference", "4.1 reference"}, list.Filter(p.steps, func(s string) bool { return strings.HasSuffix(s, "reference") }))
}

func TestP5_TheReferenceThatLosesItsNumberLaterIsAQuestion(t *testing.T) {
	script := map[int][]try{}
	for n := range 9 {
		script[n] = []try{{Says: "mute", NoNumber: true, Tree: fmt.Sprint(n)}}
	}
	w := newWorld(t, script)
	w.stepping = func(ctx context.Context, in asked) (stepped, error) {
		if w.kept = (try{Metric: "10"}); in.Key.Iteration > 2 {
			w.kept = try{Crash: true}
		}
		return w.step(ctx, in)
	}
	p := play(t, w, specOf(map[string]any{"limits": map[string]any{"iterations": 9}}), func(env *testsuite.TestWorkflowEnvironment) {
		at(t, env, time.Hour, func(s loop.State) {
			require.Contains(t, s.Gate.Summary, "neither: exit 1")
			env.SignalWorkflow("answer", map[string]any{"choice": "halt"})
		})
	})
	require.Equal(t, 4, p.result.Iterations)
}

func TestP5_WhatACandidatePrintedInsteadIsRecorded(t *testing.T) {
	w := newWorld(t, map[int][]try{1: {{Says: "a", NoNumber: true}}, 2: {{Says: "b", Metric: "11"}}})
	p := play(t, w, specOf(map[string]any{"limits": map[string]any{"iterations": 2, "parallel": 2}}), nil)
	for _, it := range p.final.Iterations {
		if it.Reason == "error:no-number" {
			require.Equal(t, "nothing", it.Note)
			return
		}
	}
	t.Fatal("no candidate without a number: ", p.course())
}

func TestSteerReachesTheNextAgentCallOnce(t *testing.T) {
	doc := specOf(map[string]any{"approvals": map[string]any{"plan": "required"}, "limits": map[string]any{"iterations": 2}})
	p := play(t, newWorld(t, nil), doc, func(env *testsuite.TestWorkflowEnvironment) {
		env.RegisterDelayedCallback(func() {
			env.SignalWorkflow("steer", map[string]string{"note": "try the parser", "by": "ann"})
			env.SignalWorkflow("approve", map[string]string{"hash": "0123456789abcdef"})
		}, time.Hour)
	})
	require.Len(t, p.agents[0].Guidance, 1)
	require.Equal(t, "ann: try the parser", p.agents[0].Guidance[0].By+": "+p.agents[0].Guidance[0].Text)
	require.Empty(t, p.agents[1].Guidance)
}

func TestLedgerAheadFailsTheLoopAndRecordsNothingMore(t *testing.T) {
	w := newWorld(t, nil)
	w.settleErr = temporal.NewNonRetryableApplicationError("another run is ahead", string(fault.LedgerAhead), nil)
	p := play(t, w, specOf(nil), nil)
	require.Equal(t, string(fault.LedgerAhead), p.err.Type())
	require.Zero(t, p.calls[api.CloseName])
}

// Every iteration runs in a run of its own. The result must be that of one run.
func TestContinueAsNewCarriesEverything(t *testing.T) {
	script := map[int][]try{
		1: {{Says: "a", Metric: "11"}}, 2: {{Says: "b", Metric: "9", Tree: "same"}}, 3: {{Says: "c", Metric: "12"}}, 4: {{Says: "d", Metric: "99", Tree: "same"}},
	}
	doc := specOf(map[string]any{"limits": map[string]any{"iterations": 6}})
	one := play(t, newWorld(t, script), doc, nil)
	w := newWorld(t, script)
	many := play(t, w, doc, func(env *testsuite.TestWorkflowEnvironment) { env.SetContinueAsNewSuggested(w.runs < 5) })
	require.Equal(t, 5, w.runs)
	require.Equal(t, one.course(), many.course())
	require.Equal(t, one.types(), many.types())
	require.Equal(t, 1, many.calls[api.OpenName])
	require.Equal(t, one.result.Usage, many.result.Usage)
}

// A signal comes with the result after which a run continues as new.
func TestAMessageThatComesWithTheEndOfARunIsForTheNextOne(t *testing.T) {
	w := newWorld(t, nil)
	p := play(t, w, specOf(map[string]any{"limits": map[string]any{"iterations": 2}}), func(env *testsuite.TestWorkflowEnvironment) {
		w.onSettle = func(n int) string {
			env.SetContinueAsNewSuggested(n == 1)
			if n == 1 && w.runs == 0 {
				env.SignalWorkflowSkippingWorkflowTask("steer", map[string]string{"note": "try the parser"})
			}
			return ""
		}
	})
	require.Equal(t, 2, w.runs)
	last := p.agents[len(p.agents)-1]
	require.Len(t, last.Guidance, 1)
}

func TestStartsFromALedger(t *testing.T) {
	doc := specOf(map[string]any{"limits": map[string]any{"iterations": 9}})
	first := play(t, newWorld(t, map[int][]try{1: {{Says: "a", Metric: "11"}}}), doc, nil)
	for name, lost := range map[string]struct {
		at      loop.Type // of iteration 2: the last event in the ledger
		reverts int
	}{
		"after the start of an iteration":       {loop.IterationStarted, 0},
		"after a commit that nobody had judged": {loop.ChangeCommitted, 1},
		"after the end of an iteration":         {loop.IterationFailed, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			for _, e := range first.ledger {
				w.state = w.state.Apply(e)
				w.ledger = append(w.ledger, e)
				if e.Type == lost.at && e.Iteration == 2 {
					break
				}
			}
			w.ledgerAt = 1
			left := w.state
			left.Ledger = w.at()
			w.resume = &left
			p := play(t, w, doc, nil)
			require.Nil(t, p.err)
			require.Equal(t, "1 yes 11", p.course()[0])
			require.Len(t, p.course(), 9)
			require.Contains(t, p.types(), loop.LoopResumed)
			require.Equal(t, lost.reverts, len(p.reverts)-7, "every change of the seven iterations that follow is undone")
			if lost.at != loop.IterationFailed {
				require.Equal(t, "2 no 11 interrupted", p.course()[1])
			}
		})
	}
}

// A ledger says that the loop is in a phase that nothing may follow.
func TestL11_APhaseThatMayNotFollowFailsTheWorkflowWithItsCode(t *testing.T) {
	first := play(t, newWorld(t, nil), specOf(nil), nil)
	w := newWorld(t, nil)
	for _, e := range first.ledger {
		w.state = w.state.Apply(e)
		w.ledger = append(w.ledger, e)
		if e.Type == loop.BaselineMeasured {
			break
		}
	}
	w.ledgerAt = 1
	left := w.state
	left.Ledger, left.Phase = w.at(), phase.Complete
	w.resume = &left
	p := play(t, w, specOf(nil), nil)
	require.Equal(t, string(fault.InvalidTransition), p.err.Type())
	require.Equal(t, []string{"failed", "interrupted"}, []string{string(p.final.Status), p.final.ExitStatus})
	require.Empty(t, p.course())
}

// heard collects the results of an update.
type heard struct {
	reply    any
	rejected error
	failed   error
}

func (h *heard) callback() *testsuite.TestUpdateCallback {
	return &testsuite.TestUpdateCallback{
		OnReject:   func(err error) { h.rejected = err },
		OnAccept:   func() {},
		OnComplete: func(reply any, err error) { h.reply, h.failed = reply, err },
	}
}

func TestUpdatesTakeTheSamePathAsSignals(t *testing.T) {
	doc := specOf(map[string]any{"approvals": map[string]any{"plan": "required"}, "limits": map[string]any{"iterations": 1}})
	var wrong, malformed, right, second heard
	p := play(t, newWorld(t, nil), doc, func(env *testsuite.TestWorkflowEnvironment) {
		env.RegisterDelayedCallback(func() {
			env.UpdateWorkflow("approve", "1", wrong.callback(), raw(t, map[string]string{"hash": "ffffffffffffffff"}))
			env.UpdateWorkflow("approve", "2", malformed.callback(), raw(t, "ok"))
			env.UpdateWorkflow("approve", "3", right.callback(), raw(t, map[string]string{"hash": "0123456789abcdef", "by": "ann"}))
			env.UpdateWorkflow("approve", "4", second.callback(), raw(t, map[string]string{"hash": "0123456789abcdef", "by": "bob"}))
		}, time.Hour)
	})
	require.Equal(t, string(fault.HashMismatch), typeOf(t, wrong.rejected))
	require.Equal(t, string(fault.InvalidMessage), typeOf(t, malformed.rejected))
	require.NoError(t, right.rejected)
	require.Contains(t, right.reply, "approve")
	require.Equal(t, string(fault.GateClosed), typeOf(t, errors.Join(second.rejected, second.failed)), "the second is told")
	require.Equal(t, "ann", p.final.Contract.ApprovedBy, "the first wins")
	require.NotContains(t, p.types(), loop.MessageRefused, "a refused update leaves no trace")
}

func raw(t *testing.T, v any) converter.RawValue {
	t.Helper()
	payload, err := converter.GetDefaultDataConverter().ToPayload(v)
	require.NoError(t, err)
	return converter.NewRawValue(payload)
}

func typeOf(t *testing.T, err error) string {
	t.Helper()
	var app *temporal.ApplicationError
	require.ErrorAs(t, err, &app)
	return app.Type()
}
