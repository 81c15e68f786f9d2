package loop_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"pawl/internal/fault"
	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/internal/steward/task"
)

// session is that of a loop that the steward crew has started for a step of a task.
var session = map[string]any{"session": map[string]any{"steward": "crew", "task": "t1", "plan": theHash, "approvedBy": "ann"}}

// hears lets the steward crew receive the loop's signals, and answers each with answer's error.
func hears(env *testsuite.TestWorkflowEnvironment, heard *[]task.ChildEvent, answer func(n int) error) {
	env.OnSignalExternalWorkflow(mock.Anything, "crew", "", task.ChildSignal, mock.Anything).Return(
		func(_, _, _, _ string, arg any) error {
			*heard = append(*heard, arg.(task.ChildEvent))
			if answer == nil {
				return nil
			}
			return answer(len(*heard))
		}).After(time.Second)
}

func said(events []task.ChildEvent) (all []string) {
	for _, e := range events {
		line := fmt.Sprintf("%s %s %d", e.Event, e.Result.Status, e.Result.Iteration)
		if e.Gate != nil {
			line += " " + e.Gate.Kind
		}
		all = append(all, line)
	}
	return all
}

func TestS1_AChildTellsItsStewardOfIterationsGatesAndTheEndInOrder(t *testing.T) {
	w := newWorld(t, map[int][]try{1: {{Says: "worse", Metric: "9", Tree: "tree-a"}}, 2: {{Says: "better", Metric: "12", Tree: "tree-b"}}})
	doc := specOf(merged(session, map[string]any{"limits": map[string]any{"iterations": 2}, "approvals": map[string]any{"diff": "required"}, "breakpoints": []string{"decide"}}))
	var heard []task.ChildEvent
	p := play(t, w, doc, func(env *testsuite.TestWorkflowEnvironment) {
		hears(env, &heard, nil)
		for n := range 2 {
			at(t, env, time.Duration(n+1)*time.Hour, func(loop.State) { env.SignalWorkflow("continue", nil) })
		}
		at(t, env, 3*time.Hour, func(s loop.State) { env.SignalWorkflow("approve", map[string]any{"hash": s.Gate.Hash}) })
	})
	require.Nil(t, p.err)
	require.Equal(t, []string{
		"gate_opened paused 0 breakpoint", "gate_closed running 0 breakpoint", "iteration_ended running 1",
		"gate_opened paused 1 breakpoint", "gate_closed running 1 breakpoint", "iteration_ended running 2",
		"gate_opened waiting 2 diff", "gate_closed running 2 diff", "ended completed 2",
	}, said(heard))
	last := int64(0)
	for _, e := range heard {
		require.Equal(t, "default-test-workflow-id", e.Loop)
		require.Greater(t, e.Seq, last)
		last = e.Seq
	}
	dropped, kept, asked, end := heard[2].Result, heard[5].Result, heard[6].Gate, heard[8].Result
	require.True(t, kept.Kept)
	require.Equal(t, "better", kept.Description)
	require.Equal(t, "12", kept.Metric.String())
	require.Equal(t, "tree-b", kept.Tree)
	require.Equal(t, "base", kept.Base)
	require.Equal(t, "commit-2", kept.Head)
	require.Equal(t, 2, kept.Usage.ToolCalls)
	require.False(t, dropped.Kept)
	require.Equal(t, "tree-a", dropped.Tree)
	require.Equal(t, theHash, asked.Hash)
	require.Equal(t, []string{"approve", "reject"}, asked.Answers)
	require.False(t, asked.OpenedAt.IsZero())
	require.Equal(t, asked, heard[7].Gate)
	require.Equal(t, &task.ChildProposal{Hash: theHash, State: "approved"}, end.Proposal)
	require.Equal(t, "max_steps", end.ExitStatus)
	require.Equal(t, "the iteration limit is reached", end.Reason)
	require.Equal(t, int64(500), end.Usage.ActiveMs)
}

func TestS1_AStewardThatIsGoneNeverHoldsAChildUp(t *testing.T) {
	for name, answer := range map[string]func(int) error{
		"gone":            func(int) error { return errors.New("no such workflow") },
		"full for a time": func(n int) error { return map[bool]error{true: errors.New("full")}[n == 1] },
	} {
		t.Run(name, func(t *testing.T) {
			var heard []task.ChildEvent
			p := play(t, newWorld(t, nil), specOf(merged(session, map[string]any{"limits": map[string]any{"iterations": 2}})), func(env *testsuite.TestWorkflowEnvironment) {
				hears(env, &heard, answer)
			})
			require.Nil(t, p.err)
			require.Equal(t, loop.Completed, p.final.Status)
			require.Equal(t, []string{"iteration_ended running 1", "iteration_ended running 2", "ended completed 2"}, said(heard), "each is tried once")
		})
	}
}

func TestS1_AChildThatNeverBeganTellsItsSteward(t *testing.T) {
	w := newWorld(t, nil)
	w.openErr = temporal.NewNonRetryableApplicationError("the tree is not clean", string(fault.PreconditionFailed), nil)
	var heard []task.ChildEvent
	play(t, w, specOf(session), func(env *testsuite.TestWorkflowEnvironment) { hears(env, &heard, nil) })
	require.Equal(t, []string{"ended failed 0"}, said(heard))
	require.Equal(t, string(fault.PreconditionFailed), heard[0].Result.ErrorCode)
}

func TestS1_AChildThatContinuesAsNewHasToldEverything(t *testing.T) {
	var heard []task.ChildEvent
	w := newWorld(t, nil)
	p := play(t, w, specOf(merged(session, map[string]any{"limits": map[string]any{"iterations": 3}})), func(env *testsuite.TestWorkflowEnvironment) {
		w.onSettle = func(iteration int) string {
			env.SetContinueAsNewSuggested(iteration > 0)
			return ""
		}
		hears(env, &heard, nil)
	})
	require.Equal(t, 3, p.runs)
	require.Equal(t, []string{"iteration_ended running 1", "iteration_ended running 2", "iteration_ended running 3", "ended completed 3"}, said(heard))
}

func TestALoopWithoutAStewardTellsNobody(t *testing.T) {
	p := play(t, newWorld(t, nil), specOf(map[string]any{"session": map[string]any{"user": "ann"}, "limits": map[string]any{"iterations": 1}}), nil)
	require.Nil(t, p.err)
	require.Empty(t, p.final.Steward)
}

// Nobody else is asked.
func TestS4_AChildsContractIsApprovedByItsStewardsPlan(t *testing.T) {
	p := play(t, newWorld(t, nil), specOf(merged(session, map[string]any{"limits": map[string]any{"iterations": 1}})), func(env *testsuite.TestWorkflowEnvironment) {
		hears(env, new([]task.ChildEvent), nil)
	})
	require.Equal(t, "steward crew, plan "+theHash+", approved by ann", p.final.Contract.ApprovedBy)
	require.Equal(t, theHash, p.final.Contract.Hash, "the session is no part of the contract")
	require.Equal(t, "crew", p.final.Steward)
}

// pausing sends a message when the agent of an iteration starts, and continues the loop an hour later.
func pausing(t *testing.T, payload map[string]any, iteration int, then func(loop.State)) func(*testsuite.TestWorkflowEnvironment) {
	return func(env *testsuite.TestWorkflowEnvironment) {
		sent := false
		env.SetOnActivityStartedListener(func(info *activity.Info, _ context.Context, args converter.EncodedValues) {
			var call api.Call
			if info.ActivityType.Name != api.CallName || sent || args.Get(&call) != nil || call.Key.Iteration != iteration {
				return
			}
			sent = true
			env.SignalWorkflow("pause", payload)
			at(t, env, time.Hour, func(s loop.State) {
				then(s)
				env.SignalWorkflow("continue", payload)
			})
		})
	}
}

func TestA6_APauseAtTheNextStepInterruptsNothing(t *testing.T) {
	p := play(t, newWorld(t, map[int][]try{1: {{Says: "x", Metric: "11"}}}), specOf(map[string]any{"limits": map[string]any{"iterations": 2}}),
		pausing(t, map[string]any{"choice": "step"}, 1, func(s loop.State) {
			require.Equal(t, loop.Paused, s.Status)
			require.Equal(t, "paused at verify", s.PauseReason)
		}))
	require.Equal(t, []string{"0.0 verify", "1.1 modify", "1.1 verify", "2.1 modify", "2.1 verify"}, p.steps, "nothing is repeated")
	require.Equal(t, []string{"1 yes 11", "2 no 10"}, p.course())
	require.Zero(t, p.interrupts)
}

func TestA6_APauseAtTheNextIterationInterruptsNothing(t *testing.T) {
	p := play(t, newWorld(t, map[int][]try{1: {{Says: "x", Metric: "11"}}}), specOf(map[string]any{"limits": map[string]any{"iterations": 2}}),
		pausing(t, map[string]any{"choice": "iteration"}, 1, func(s loop.State) {
			require.Equal(t, loop.Paused, s.Status)
			require.Equal(t, "paused at review", s.PauseReason)
			require.Equal(t, 1, s.Iteration)
			require.Len(t, s.Iterations, 1, "it is recorded")
		}))
	require.Equal(t, []string{"0.0 verify", "1.1 modify", "1.1 verify", "2.1 modify", "2.1 verify"}, p.steps)
	require.Equal(t, []string{"1 yes 11", "2 no 10"}, p.course())
}

// The loop is paused for as long as its whole wall clock, by its steward and by a person.
func TestE2_TheWallClockStandsWhileItsStewardLetsAnotherTaskGoFirst(t *testing.T) {
	for by, status := range map[string]loop.Status{"steward crew": loop.Completed, "ann": loop.Halted} {
		t.Run(by, func(t *testing.T) {
			pause := pausing(t, map[string]any{"choice": "step", "by": by}, 1, func(s loop.State) { require.Equal(t, by, s.PausedBy) })
			doc := specOf(merged(session, map[string]any{"limits": map[string]any{"iterations": 2, "wallClock": "30m"}}))
			p := play(t, newWorld(t, nil), doc, func(env *testsuite.TestWorkflowEnvironment) {
				hears(env, new([]task.ChildEvent), nil)
				pause(env)
			})
			require.Equal(t, status, p.final.Status)
			used := p.final.Budget[loop.WallClock].Used.Float()
			if status == loop.Completed {
				require.Less(t, used, float64(time.Minute.Milliseconds()))
			} else {
				require.GreaterOrEqual(t, used, float64(time.Hour.Milliseconds()))
				require.Equal(t, string(fault.WallClockExceeded), p.result.Cause)
			}
		})
	}
}

// merged returns the keys of both.
func merged(a, b map[string]any) map[string]any {
	out := map[string]any{}
	for _, m := range []map[string]any{a, b} {
		for k, v := range m {
			out[k] = v
		}
	}
	return out
}
