package rules_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/lib/shell"
	"pawl/internal/loop"
	"pawl/internal/loop/rules"
	"pawl/internal/metric"
)

// TestEveryWayToAnswerIsTaken sends each payload to its gate, like somebody who copies it.
func TestEveryWayToAnswerIsTaken(t *testing.T) {
	budget := loop.NewBudget(map[loop.Resource]metric.Decimal{loop.Iterations: loop.Count(3), loop.ActiveTime: loop.Count(600_000), loop.CostUSD: metric.MustDecimal("2.50")})
	for _, r := range []loop.Resource{loop.Iterations, loop.ActiveTime, loop.CostUSD} {
		budget = budget.Spend(r, *budget[r].Limit)
	}
	for _, c := range []struct {
		gate loop.Gate
		want []string
	}{
		{loop.Gate{Kind: loop.GatePause}, []string{"pawl continue 'my loop'"}},
		{loop.Gate{Kind: loop.GateContract}, []string{"pawl approve 'my loop' --hash " + hash[:16], "pawl reject 'my loop'"}},
		{loop.Gate{Kind: loop.GateNewFiles}, []string{"pawl approve 'my loop' --hash " + hash[:16], `pawl reject 'my loop' --note "why"`}},
		{loop.Gate{Kind: loop.GateDiff}, []string{"pawl approve 'my loop' --hash " + hash[:16], "pawl approve 'my loop' --hash " + hash[:16] + " --apply ff", `pawl reject 'my loop' --note "why"`}},
		{loop.Gate{Kind: loop.GateGuard}, []string{"pawl continue 'my loop'", `pawl reject 'my loop' --note "why"`}},
		{loop.Gate{Kind: loop.GateBudget, Budget: loop.Iterations}, []string{"pawl extend 'my loop' --limit iterations=6 --hash " + hash[:16], "pawl reject 'my loop'"}},
		{loop.Gate{Kind: loop.GateBudget, Budget: loop.ActiveTime}, []string{"pawl extend 'my loop' --limit activeTime=20m --hash " + hash[:16], "pawl reject 'my loop'"}},
		{loop.Gate{Kind: loop.GateBudget, Budget: loop.CostUSD}, []string{"pawl extend 'my loop' --limit costUSD=5.00 --hash " + hash[:16], "pawl reject 'my loop'"}},
		{loop.Gate{Kind: loop.GateQuestion, Choices: []string{"retry", "halt"}}, []string{"pawl answer 'my loop' retry", "pawl answer 'my loop' halt", "pawl amend 'my loop' --set 'verify.command=…'"}},
	} {
		c.gate.ID, c.gate.Hash, c.gate.Answers = string(c.gate.Kind)+"-7", hash, rules.Answers(c.gate.Kind)
		s := loop.State{Status: loop.Waiting, Gate: &c.gate, Budget: budget}
		var commands []string
		for _, w := range rules.Ways("my loop", c.gate, budget) {
			commands = append(commands, w.Command)
			require.NotEmpty(t, w.What, w.Command)
			require.Equal(t, c.gate.ID, w.Payload["gate"])
			payload, err := json.Marshal(w.Payload)
			require.NoError(t, err)
			m, err := loop.DecodeMessage(payload)
			require.NoError(t, err, string(payload))
			_, err = rules.Answer(s, valid, w.Message, m)
			require.NoError(t, err, "%s with %s", w.Message, payload)
		}
		require.Equal(t, c.want, commands, c.gate.Kind)
	}
}

// TestAnotherTableHasItsOwnGatesAndCommands shows that a workflow with several open gates can have its own kinds of
// gates, answers that name their gate, and commands that name it too.
func TestAnotherTableHasItsOwnGatesAndCommands(t *testing.T) {
	stuck := func(loop.Gate, loop.Budget) []rules.Saying {
		return []rules.Saying{
			{Fields: map[string]any{"choice": "replan"}, Words: []string{"--choice", "replan"}, What: "plan the task again"},
			{Fields: map[string]any{"choice": "cancel"}, Words: []string{"--choice", "cancel"}, What: "give the task up"},
		}
	}
	table := rules.Gates{"stuck": {{Message: "answer", Say: stuck}, {Message: "halt", What: "end everything"}}}
	require.Equal(t, []string{"answer", "halt"}, table.Answers("stuck"))
	g := loop.Gate{ID: "stuck-9", Kind: "stuck"}
	ways := table.Ways(g, nil, func(message string, words ...string) string {
		return shell.Join(append([]string{"pawl", "steward", message, "shop", "--gate", g.ID}, words...)...)
	})
	require.Equal(t, []rules.Way{
		{"answer", map[string]any{"gate": "stuck-9", "choice": "replan"}, "pawl steward answer shop --gate stuck-9 --choice replan", "plan the task again"},
		{"answer", map[string]any{"gate": "stuck-9", "choice": "cancel"}, "pawl steward answer shop --gate stuck-9 --choice cancel", "give the task up"},
		{"halt", map[string]any{"gate": "stuck-9"}, "pawl steward halt shop --gate stuck-9", "end everything"},
	}, ways)
	require.Empty(t, table.Ways(loop.Gate{Kind: "unheard of"}, nil, nil))
}
