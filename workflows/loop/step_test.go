package loop_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/fault"
	"pawl/internal/loop"
	"pawl/internal/metric"
)

func TestA2_ABudgetCrossedInsideOfACallEndsTheLoop(t *testing.T) {
	for r, exit := range map[loop.Resource]string{loop.ToolCalls: "max_steps", loop.Tokens: "max_steps", loop.CostUSD: "max_steps"} {
		t.Run(string(r), func(t *testing.T) {
			p := play(t, newWorld(t, map[int][]try{1: {{Says: "better", Metric: "11"}}, 2: {{Says: "half done", Exhausted: r}}}),
				specOf(map[string]any{"agent": map[string]any{"use": "claude", "command": []string{"claude"}, "ideas": false}, "limits": map[string]any{"tokens": 1000}}), nil)
			require.Nil(t, p.err)
			require.Equal(t, loop.Halted, p.final.Status)
			require.Equal(t, exit+" BUDGET_EXHAUSTED", p.result.ExitStatus+" "+p.result.ErrorCode)
			require.Equal(t, []string{"1 yes 11", "2 no 11 interrupted"}, p.course())
			require.Equal(t, 1, p.commits, "what the call had begun is not committed")
			require.Equal(t, int64(8), p.result.Usage.ToolCalls, "what it spent is booked")
			require.Equal(t, int64(1001), p.result.Usage.InputTokens+p.result.Usage.OutputTokens)
			require.Contains(t, p.types(), loop.BudgetExhausted)
		})
	}
}

func TestA2_OnlyWhatTellsWhileItWorksIsGivenItsBudget(t *testing.T) {
	limits := map[string]any{"iterations": 2, "toolCalls": 5, "tokens": 1000}
	budget := func(use string, agent map[string]any) map[loop.Resource]metric.Decimal {
		agent["use"], agent["ideas"] = use, false
		p := play(t, newWorld(t, nil), specOf(map[string]any{"agent": agent, "limits": limits}), nil)
		require.Nil(t, p.err)
		require.Len(t, p.budgets, 2)
		return p.budgets[1]
	}
	require.Nil(t, budget("command", map[string]any{}), "histories of before have none")
	require.Equal(t, map[loop.Resource]metric.Decimal{loop.ToolCalls: loop.Count(4), loop.Tokens: loop.Count(1000)}, budget("claude", map[string]any{"command": []string{"claude"}}))
	limits["costUSD"] = 1
	require.Equal(t, map[loop.Resource]metric.Decimal{loop.ToolCalls: loop.Count(4), loop.Tokens: loop.Count(1000), loop.CostUSD: loop.Count(1)},
		budget("codex", map[string]any{"command": []string{"codex"}}), "pawl's meter tells")
	delete(limits, "costUSD")
	delete(limits, "tokens")
	require.Equal(t, map[loop.Resource]metric.Decimal{loop.ToolCalls: loop.Count(4)}, budget("codex", map[string]any{"command": []string{"codex"}}))
	require.Equal(t, map[loop.Resource]metric.Decimal{loop.ToolCalls: loop.Count(4)}, budget("command", map[string]any{"roles": map[string]any{"writer": map[string]any{"use": "gemini"}}}), "it goes by the role's own program")
}

func TestE1_ARefusalEndsTheLoopWithItsCode(t *testing.T) {
	p := play(t, newWorld(t, map[int][]try{1: {{Denied: "the role writer is not permitted canEditSource"}}}), specOf(nil), nil)
	require.Equal(t, string(fault.PermissionDenied), p.err.Type())
	require.Equal(t, "interrupted", p.result.ExitStatus)
	require.Contains(t, p.result.Reason, "the role writer is not permitted canEditSource")
	require.Equal(t, loop.Failed, p.final.Status)
	require.Contains(t, p.types(), loop.PermissionDenied)
	require.Zero(t, p.commits)
}

func TestAnAgentThatSaysItFailedHasFailed(t *testing.T) {
	p := play(t, newWorld(t, map[int][]try{1: {{Says: "all is well", Failure: "401 Unauthorized"}}}), specOf(map[string]any{"limits": map[string]any{"iterations": 1}}), nil)
	require.Equal(t, []string{"1 no 10 error:agent"}, p.course())
	require.Zero(t, p.commits)
}

// An agent has no more time than the loop has left. The last change that it made in that time is still measured and
// guarded as the spec allows.
func TestE2_AMeasurementKeepsItsOwnLimit(t *testing.T) {
	w := newWorld(t, map[int][]try{1: {{Says: "x", Metric: "11"}}})
	limits := map[string]int64{}
	w.stepping = func(ctx context.Context, in asked) (stepped, error) {
		limits[in.Key.Name] = in.LimitMs
		return w.step(ctx, in)
	}
	play(t, w, specOf(map[string]any{"limits": map[string]any{"iterations": 1, "activeTime": "10s"}, "guard": map[string]any{"command": "check"}}), nil)
	require.Equal(t, int64(30_000), limits["verify"], "verify.timeout")
	require.Equal(t, int64(9_800), limits["modify"])
	require.Equal(t, int64(9_600), limits["guard"])
}
