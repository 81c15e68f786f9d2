package loop_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/evidence"
	"pawl/internal/loop"
)

func TestA8_WhatAStepUnderWaySpendsIsShownAndNotBooked(t *testing.T) {
	s := loop.State{Budget: loop.NewBudget(map[loop.Resource]evidence.Decimal{loop.ToolCalls: loop.Count(10), loop.CostUSD: evidence.MustDecimal("0.50")})}
	u := loop.Usage{ActiveMs: 7, AgentCalls: 1, ToolCalls: 3, InputTokens: 100, OutputTokens: 20, CostUSD: evidence.MustDecimal("0.2")}
	shown := s.Spending(u)
	require.Equal(t, "7", shown.Budget[loop.ToolCalls].Remaining.String())
	require.Equal(t, "0.30", shown.Budget[loop.CostUSD].Remaining.String())
	require.Equal(t, "120", shown.Budget[loop.Tokens].Used.String())
	require.Equal(t, "10", s.Budget[loop.ToolCalls].Remaining.String())
	require.Equal(t, s, s.Spending(loop.Usage{}))
	require.Equal(t, loop.Usage{ActiveMs: 14, AgentCalls: 2, ToolCalls: 6, InputTokens: 200, OutputTokens: 40, CostUSD: evidence.MustDecimal("0.4")}, u.Add(u))
	require.Equal(t, loop.State{}, loop.State{}.Spending(u))
}
