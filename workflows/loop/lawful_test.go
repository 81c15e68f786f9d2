package loop_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/testsuite"

	"pawl/internal/loop"
	"pawl/internal/loop/api"
)

// lawful checks a ledger for what no loop may do, whatever happened: nothing runs past an exhausted budget (A2) or
// past a gate (A7, P3), and no iteration begins without a checkpoint.
func lawful(t *testing.T, ledger []loop.Event) {
	t.Helper()
	var exhausted, gate string
	for i, e := range ledger {
		where := fmt.Sprintf("event %d: %s", e.Seq, e.Type)
		switch e.Type {
		case loop.BudgetExhausted:
			exhausted = where
		case loop.ContractAmended:
			exhausted = ""
		case loop.GateOpened:
			require.Empty(t, gate, "%s: two gates at once", where)
			gate = e.Gate.ID
		case loop.GateClosed:
			require.Equal(t, gate, e.Gate.ID, where)
			gate = ""
		case loop.LoopResumed:
			gate = "" // it ended with the run in which it was opened
		case loop.LoopMoved:
			if e.FailureReason != "" {
				require.Nil(t, loop.Fold(loop.State{}, ledger[:i+1]).Gate, "%s: what it was about is lost", where)
				gate = ""
			}
		case loop.StepEnded:
			require.Empty(t, exhausted, "%s: a step past a budget", where)
			require.Empty(t, gate, "%s: a step while a gate is open", where)
		case loop.IterationStarted:
			require.Empty(t, exhausted, "%s: an iteration past a budget", where)
			require.Empty(t, gate, "%s: an iteration while a gate is open", where)
			require.Contains(t, e.BudgetsRemaining, loop.Iterations, where)
			require.Positive(t, i, where)
			require.Equal(t, loop.CheckpointCreated, ledger[i-1].Type, "%s: without a checkpoint", where)
		}
	}
}

// Loops have random limits, agents and judges have random results, and people send random messages.
func TestNothingRunsPastABudgetAGateOrWithoutACheckpoint(t *testing.T) {
	sealed := []api.Violation{{Rule: "sealed", Path: "guard.sh"}}
	tries := []try{
		{Says: "raise", Metric: "11"}, {Says: "lower", Metric: "9"}, {Says: "fail", Fails: true}, {Says: "x", GivesUp: "too steep"}, {Nothing: true},
		{Says: "seal", Violations: sealed}, {Says: "leave", Violations: []api.Violation{{Rule: "scope", Path: "x"}}}, {Says: "add", NewFile: true, Metric: "12"},
		{Says: "break", Check: true}, {Says: "crash", Crash: true}, {Says: "mumble", NoNumber: true}, {Says: "bad", Guard: true, Metric: "13"},
		{Says: "spend", Exhausted: loop.ToolCalls}, {Says: "say so", Failure: "I failed"}, {Says: "this and that", Metric: "14"},
	}
	seen := map[loop.Type]int{}
	for seed := range 80 {
		random := newRandom(seed + 1000)
		script := map[int][]try{}
		for n := range 6 {
			for range 3 {
				script[n+1] = append(script[n+1], tries[random.IntN(len(tries))])
			}
		}
		doc := specOf(map[string]any{
			"guard": map[string]any{"command": "guard"}, "check": map[string]any{"command": "check"}, "newFiles": []string{"ask", "allow"}[random.IntN(2)],
			"approvals": map[string]any{"plan": []string{"auto", "required"}[random.IntN(2)], "diff": []string{"auto", "required"}[random.IntN(2)]},
			"limits": map[string]any{"iterations": 1 + random.IntN(6), "toolCalls": 1 + random.IntN(12), "reworks": random.IntN(3), "parallel": 1 + seed%3,
				"onExhausted": []string{"halt", "ask"}[random.IntN(2)]},
		})
		w := newWorld(t, script)
		p := play(t, w, doc, func(env *testsuite.TestWorkflowEnvironment) {
			for i := range 80 {
				at(t, env, time.Duration(i+1)*time.Minute, func(s loop.State) {
					if s.Gate == nil {
						env.SignalWorkflow([]string{"continue", "steer", "approve"}[random.IntN(3)], map[string]any{"note": "on"})
						return
					}
					if random.IntN(3) == 0 {
						m := loop.Messages[random.IntN(len(loop.Messages))].Name
						if m != "halt" && m != "setMode" {
							env.SignalWorkflow(m, map[string]any{"hash": theHash})
						}
						return
					}
					payload := map[string]any{"hash": s.Gate.Hash, "gate": s.Gate.ID, "by": "ann"}
					answer := s.Gate.Answers[random.IntN(len(s.Gate.Answers))]
					switch answer {
					case "answer":
						payload["choice"] = s.Gate.Choices[random.IntN(len(s.Gate.Choices))]
					case "extend":
						payload["limits"] = map[string]any{string(s.Gate.Budget): 1 + random.IntN(15)}
					case "amend":
						payload = map[string]any{"spec": map[string]any{"verify": map[string]any{"command": fmt.Sprintf("weigh %d", i)}}}
					}
					env.SignalWorkflow(answer, payload)
				})
			}
			at(t, env, 3*time.Hour, func(loop.State) { env.SignalWorkflow("halt", nil) })
		})
		lawful(t, p.ledger)
		var s loop.State
		for _, e := range p.ledger {
			before := s
			if seen[e.Type]++; seen[e.Type] > 20 { // the others would take long
				s = s.Apply(e)
				continue
			}
			was := toJSON(t, before)
			s = s.Apply(e)
			require.Equal(t, was, toJSON(t, before), "%s changes the state before it", e.Type)
		}
	}
	for _, e := range []loop.Type{loop.BudgetExhausted, loop.ContractAmended, loop.GateOpened, loop.GateClosed, loop.StepEnded, loop.CheckpointCreated} {
		require.Greater(t, seen[e], 5, "the loops are varied enough to show it: %s", e)
	}
}
