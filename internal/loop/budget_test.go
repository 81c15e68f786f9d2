package loop_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/loop"
	"pawl/internal/metric"
)

func TestA8_WhatAStepUnderWaySpendsIsShownAndNotBooked(t *testing.T) {
	s := loop.State{Budget: loop.NewBudget(map[loop.Resource]metric.Decimal{loop.ToolCalls: loop.Count(10), loop.CostUSD: metric.MustDecimal("0.50")})}
	u := loop.Usage{ActiveMs: 7, AgentCalls: 1, ToolCalls: 3, InputTokens: 100, OutputTokens: 20, CostUSD: metric.MustDecimal("0.2")}
	shown := s.Spending(u)
	require.Equal(t, "7", shown.Budget[loop.ToolCalls].Remaining.String())
	require.Equal(t, "0.30", shown.Budget[loop.CostUSD].Remaining.String())
	require.Equal(t, "120", shown.Budget[loop.Tokens].Used.String())
	require.Equal(t, "10", s.Budget[loop.ToolCalls].Remaining.String())
	require.Equal(t, s, s.Spending(loop.Usage{}))
	require.Equal(t, loop.Usage{ActiveMs: 14, AgentCalls: 2, ToolCalls: 6, InputTokens: 200, OutputTokens: 40, CostUSD: metric.MustDecimal("0.4")}, u.Add(u))
	require.Equal(t, u, shown.Usage)
	require.Zero(t, s.Usage)
	require.Equal(t, loop.State{Usage: u}, loop.State{}.Spending(u))
}

func TestA2_AnAmpleLimitLeavesAsMuchAgain(t *testing.T) {
	b := loop.NewBudget(map[loop.Resource]metric.Decimal{
		loop.Iterations: loop.Count(3), loop.CostUSD: metric.MustDecimal("0.50"), loop.ActiveTime: loop.Count(600_000),
	}).Spend(loop.Iterations, loop.Count(2)).Spend(loop.CostUSD, metric.MustDecimal("0.75")).Spend(loop.ActiveTime, loop.Count(600_100)).Spend(loop.WallClock, loop.Count(7))
	for r, want := range map[loop.Resource]string{
		loop.Iterations: "6", loop.CostUSD: "1.50", loop.ActiveTime: "20m", loop.WallClock: "1s", loop.Tokens: "0",
	} {
		require.Equal(t, want, b.Ample(r), r)
	}
}

func TestA8_WhatIsSpentIsSaidInWords(t *testing.T) {
	b := loop.NewBudget(map[loop.Resource]metric.Decimal{
		loop.Iterations: loop.Count(3), loop.CostUSD: metric.MustDecimal("0.50"), loop.ActiveTime: loop.Count(600_000),
	}).Spend(loop.Iterations, loop.Count(2)).Spend(loop.CostUSD, metric.MustDecimal("0.75")).Spend(loop.ActiveTime, loop.Count(63_712))
	for r, want := range map[loop.Resource]string{
		loop.Iterations: "2 of 3", loop.CostUSD: "0.75 of 0.50", loop.ActiveTime: "1m3.7s of 10m",
	} {
		require.Equal(t, want, b.Spent(r), r)
	}
}
