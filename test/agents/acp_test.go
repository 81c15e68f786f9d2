package agents_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/test/harness/world"
)

var acpAgent = world.Building("acpagent", "./test/agents/acpagent")

// speaking makes a world whose agent speaks the Agent Client Protocol.
func speaking(t *testing.T, args ...string) *world.World {
	t.Helper()
	path, err := acpAgent()
	require.NoError(t, err)
	w := world.New(t, world.Raises)
	delete(w.Spec, "agent")
	w.Set(doc{"agent": doc{"use": "acp", "command": append([]string{path}, args...), "ideas": false}, "limits": doc{"iterations": 1}})
	return w
}

func TestAnAgentThatSpeaksTheProtocolMakesAChange(t *testing.T) {
	w := speaking(t).Set(doc{"approvals": doc{"tools": []string{"read", "edit"}}})
	r := w.Run(0)
	require.Equal(t, "raise the number by one", r.Result.Kept[0].Description)
	require.Equal(t, 1, r.Result.Usage.ToolCalls)
	require.Equal(t, "120", w.Show().Budget["tokens"].Used.String())
}

func TestA1_WhatTheContractDoesNotApproveIsDeniedToAnAgentThatAsks(t *testing.T) {
	w := speaking(t).Set(doc{"approvals": doc{"tools": []string{"read"}}})
	r := w.Run(0)
	require.Zero(t, r.Result.KeptCount)
	require.Contains(t, w.LastRow().Description(), "the agent was not allowed to use edit")
}

func TestA2_ATurnOfAnAgentIsCancelledAtItsLastToolCallAndItsTokensCount(t *testing.T) {
	world.Slow(t, "TestA2_ABudgetIsWatchedInEveryStream has the budget")
	w := speaking(t, "endless").Set(doc{"limits": doc{"toolCalls": 2}})
	r := w.Run(6)
	require.Equal(t, "BUDGET_EXHAUSTED", r.Result.ErrorCode)
	require.GreaterOrEqual(t, r.Result.Usage.ToolCalls, 3)
	require.Equal(t, "120", w.Show().Budget["tokens"].Used.String(), "it says what it used when its turn is cancelled")
}

// TestAPersonIsAskedAboutAToolThatAnAgentWasDenied has an agent that may only read, until a person lets it edit.
func TestAPersonIsAskedAboutAToolThatAnAgentWasDenied(t *testing.T) {
	world.Slow(t, "workflows has the gate about denied tools")
	w := speaking(t).Set(doc{"approvals": doc{"tools": []string{"read"}, "onDenied": "ask"}})
	require.Equal(t, "question", w.Run(4).Gate.Kind)
	shown := w.Pawl("show", w.Loop).Out
	require.Contains(t, shown, "the writer was not allowed to use edit: amend approvals.tools")
	require.Contains(t, shown, "You may amend: approvals.tools, approvals.onDenied.")
	s := w.Pawl("amend", w.Loop, "--set", "approvals.tools=[read, edit]")
	require.Equal(t, 0, s.Code, s.Err)
	w.Until("the amended contract waits", func() bool { g := w.Show().Gate; return g != nil && g.Kind == "contract" })
	s = w.Pawl("approve", w.Loop, "--hash", w.Show().Gate.Hash)
	require.Equal(t, 0, s.Code, s.Err)
	w.Waits("completed")
	require.Equal(t, "11", w.Kept("work/n"))
	require.Equal(t, 0, w.Pawl("log", "--verify", w.Loop).Code)
}
