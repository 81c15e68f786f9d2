package rules_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/fault"
	"pawl/internal/loop"
	"pawl/internal/loop/rules"
	"pawl/internal/metric"
)

func number(s string) *metric.Decimal { d := metric.MustDecimal(s); return &d }

func budget(limits, used map[loop.Resource]int64) loop.Budget {
	l := map[loop.Resource]metric.Decimal{}
	for r, n := range limits {
		l[r] = loop.Count(n)
	}
	b := loop.NewBudget(l)
	for r, n := range used {
		b = b.Spend(r, loop.Count(n))
	}
	return b
}

func TestP8_Stop(t *testing.T) {
	limits := map[loop.Resource]int64{loop.Iterations: 3, loop.ToolCalls: 10, loop.ActiveTime: 1000}
	for _, c := range []struct {
		name  string
		state loop.State
		end   string // the exit status and code of the end, "" if the loop goes on
	}{
		{"nothing yet", loop.State{Budget: budget(limits, nil)}, ""},
		{"halt wins over everything", loop.State{HaltRequested: "x", DiscardsInARow: 10, Budget: budget(limits, map[loop.Resource]int64{loop.Iterations: 3})}, "interrupted ALO_CANCELLED"},
		{"the target", loop.State{Best: number("12"), Budget: budget(limits, nil)}, "completed "},
		{"below the target", loop.State{Best: number("11.9"), Budget: budget(limits, nil)}, ""},
		{"nine discards", loop.State{DiscardsInARow: 9, Budget: budget(limits, nil)}, ""},
		{"ten discards", loop.State{DiscardsInARow: 10, Budget: budget(limits, nil)}, "completed "},
		{"a failing agent in all of few iterations", loop.State{AgentFailures: 2, Iteration: 2, Iterations: []loop.Iteration{{}, {Description: "exit 1"}}, Budget: budget(limits, map[loop.Resource]int64{loop.Iterations: 3})}, "interrupted ALO_AGENT_FAILED"},
		{"a failing agent in the last of them", loop.State{AgentFailures: 1, Iteration: 2, Iterations: []loop.Iteration{{}, {Description: "exit 1"}}, Budget: budget(limits, map[loop.Resource]int64{loop.Iterations: 3})}, "max_steps "},
		{"two agent failures", loop.State{AgentFailures: 2, Budget: budget(limits, nil)}, ""},
		{"three agent failures", loop.State{AgentFailures: 3, Budget: budget(limits, nil)}, "interrupted ALO_AGENT_FAILED"},
		{"iterations used up", loop.State{Budget: budget(limits, map[loop.Resource]int64{loop.Iterations: 3})}, "max_steps "},
		{"tool calls used up", loop.State{Budget: budget(limits, map[loop.Resource]int64{loop.ToolCalls: 11})}, "max_steps BUDGET_EXHAUSTED"},
		{"time and iterations used up", loop.State{Budget: budget(limits, map[loop.Resource]int64{loop.ActiveTime: 1000, loop.Iterations: 3})}, "timeout BUDGET_EXHAUSTED"},
		{"time used up", loop.State{Budget: budget(limits, map[loop.Resource]int64{loop.ActiveTime: 1000})}, "timeout BUDGET_EXHAUSTED"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := rules.Improve{Direction: "higher", Target: number("12"), Discards: 10, ShiftAfter: 5}.Before(c.state)
			require.Equal(t, c.end != "", m.Do == rules.Stop)
			if m.Do == rules.Stop {
				require.Equal(t, c.end, m.End.ExitStatus+" "+string(m.End.Code))
			}
		})
	}
}

func TestA2_ACommandIsHeldUpByTimeAlone(t *testing.T) {
	s := loop.State{Budget: budget(map[loop.Resource]int64{loop.ToolCalls: 1, loop.ActiveTime: 10}, map[loop.Resource]int64{loop.ToolCalls: 1})}
	require.Equal(t, loop.ToolCalls, rules.StepExhausted(s, true))
	require.Empty(t, rules.StepExhausted(s, false))
	s.Budget = s.Budget.Spend(loop.ActiveTime, loop.Count(10))
	require.Equal(t, loop.ActiveTime, rules.StepExhausted(s, false))
}

func TestP8_StrategyShiftsAtEveryFifthDiscard(t *testing.T) {
	rules := rules.Improve{ShiftAfter: 5, Discards: 16}
	for n := range 16 {
		require.Equal(t, n == 5 || n == 10 || n == 15, rules.ShiftDue(loop.State{DiscardsInARow: n}), n)
	}
}

// TestE4_EveryEndHasOneExitStatusAndItsCodeIsInTheTable checks the contract's table of ends.
func TestE4_EveryEndHasOneExitStatusAndItsCodeIsInTheTable(t *testing.T) {
	for _, c := range []struct {
		end    rules.End
		status string
		exit   int
	}{
		{rules.TargetMet, "completed", 0}, {rules.DiscardsInARow, "completed", 0}, {rules.Verified, "completed", 0}, {rules.IterationLimit, "max_steps", 0},
		{rules.MaxIterations, "max_steps", 3}, {rules.MaxFixAttempts, "max_steps", 3}, {rules.VerifyTimeout, "timeout", 3}, {rules.PhaseTimedOut, "timeout", 3},
		{rules.TestFailed, "interrupted", 3}, {rules.AgentFailed, "interrupted", 3}, {rules.TimeBudget, "timeout", 6}, {rules.OtherBudget, "max_steps", 6},
		{rules.Interrupted, "interrupted", 5}, {rules.BlockedGivenUp, "interrupted", 5}, {rules.SpecInvalid, "interrupted", 2}, {rules.NotReady, "interrupted", 2},
		{rules.BehindItsLedger, "interrupted", 3}, {rules.LedgerLost, "interrupted", 3}, {rules.NotPermitted, "interrupted", 3},
	} {
		require.Equal(t, c.status, c.end.ExitStatus, c.end.Reason)
		require.True(t, c.end.Status.Ended())
		require.Equal(t, c.exit, rules.ExitCode(c.end.Status, c.end.Code), c.end.Reason)
		e := c.end.Event(loop.Usage{})
		after := loop.State{}.Apply(e)
		require.Equal(t, c.end.Status, after.Status)
		require.Equal(t, string(c.end.Code), after.ErrorCode)
		if c.end.Code != "" {
			require.NotEmpty(t, after.Recovery)
		}
	}
}

func TestL11_ElevenCodesOfTheSourceWithTheirRecovery(t *testing.T) {
	alo := 0
	seen := map[fault.Code]bool{}
	for _, k := range fault.Table {
		require.False(t, seen[k.Code], "%s twice", k.Code)
		seen[k.Code] = true
		require.NotEmpty(t, k.Meaning)
		require.NotEmpty(t, k.Recovery)
		if len(k.Code) > 4 && k.Code[:4] == "ALO_" {
			alo++
		}
	}
	require.Equal(t, 11, alo)
	require.ErrorIs(t, fault.New(fault.GateClosed, "x"), fault.New(fault.GateClosed, ""))
	require.NotErrorIs(t, fault.New(fault.GateClosed, "x"), fault.New(fault.GateMismatch, ""))
}
