package loop_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdk "go.temporal.io/api/sdk/v1"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"

	"pawl/internal/loop"
	"pawl/internal/loop/rules"
	"pawl/internal/metric"
	"pawl/internal/spec"
	"pawl/workflows/display"
	loopworkflow "pawl/workflows/loop"
)

// The test copies the payloads from the details, as somebody with only the Temporal UI does, and sends each to the
// gate.
func TestEveryAnswerThatIsShownIsTaken(t *testing.T) {
	budget := loop.NewBudget(map[loop.Resource]metric.Decimal{loop.Iterations: loop.Count(3), loop.ActiveTime: loop.Count(600_000), loop.CostUSD: metric.MustDecimal("2.50")})
	for _, r := range []loop.Resource{loop.Iterations, loop.ActiveTime, loop.CostUSD} {
		budget = budget.Spend(r, *budget[r].Limit)
	}
	row := regexp.MustCompile("(?m)^\\| [^|]+ \\| `(\\w+)` with `(\\{.*\\})` \\| `pawl (\\w+) demo-1(.*)` \\|$")
	sp, err := spec.Parse(specOf(nil))
	require.NoError(t, err)
	for _, g := range []struct {
		gate loop.Gate
		want []string
	}{
		{loop.Gate{Kind: loop.GatePause}, []string{"continue"}},
		{loop.Gate{Kind: loop.GateContract, Hash: theHash}, []string{"approve", "reject"}},
		{loop.Gate{Kind: loop.GateNewFiles, Hash: theHash}, []string{"approve", "reject"}},
		{loop.Gate{Kind: loop.GateDiff, Hash: theHash}, []string{"approve", "approve", "reject"}},
		{loop.Gate{Kind: loop.GateGuard}, []string{"continue", "reject"}},
		{loop.Gate{Kind: loop.GateBudget, Hash: theHash, Budget: loop.Iterations}, []string{"extend", "reject"}},
		{loop.Gate{Kind: loop.GateBudget, Hash: theHash, Budget: loop.ActiveTime}, []string{"extend", "reject"}},
		{loop.Gate{Kind: loop.GateBudget, Hash: theHash, Budget: loop.CostUSD}, []string{"extend", "reject"}},
		{loop.Gate{Kind: loop.GateQuestion, Choices: []string{"retry", "halt"}}, []string{"answer", "answer", "amend"}},
	} {
		g.gate.ID, g.gate.Answers, g.gate.OpenedAt = string(g.gate.Kind)+"-7", rules.Answers(g.gate.Kind), time.Date(2026, 3, 27, 14, 2, 11, 0, time.UTC)
		s := loop.State{Loop: "demo-1", Kind: "improve", Status: loop.Waiting, Gate: &g.gate, Budget: budget}
		var shown []string
		for _, m := range row.FindAllStringSubmatch(loopworkflow.Details(s, ""), -1) {
			require.Equal(t, m[1], m[3])
			shown = append(shown, m[1])
			message, err := loop.DecodeMessage([]byte(strings.ReplaceAll(m[2], "\\|", "|")))
			require.NoError(t, err, m[2])
			require.NotContains(t, m[2], `":"`, "without blanks, the UI can't break it, and cuts the table off")
			_, err = rules.Answer(s, sp, m[1], message)
			require.NoError(t, err, "%s with %s", m[1], m[2])
			require.Equal(t, message.Hash != "", strings.Contains(m[4], "--hash "+theHash[:16]))
		}
		require.Equal(t, g.want, shown, g.gate.Kind)
	}
}

// The row of a change whose guard failed carries the reference (P7), which nobody should take for its metric.
func TestDetailsShowOnlyMetricsThatWereMeasured(t *testing.T) {
	value := metric.MustDecimal("28356.6")
	details := loopworkflow.Details(loop.State{Kind: "improve", Iterations: []loop.Iteration{
		{N: 1, Kept: true, Metric: &value, Delta: metric.MustDecimal("-5695"), Description: "the nearest one"},
		{N: 2, Metric: &value, Reason: "guard-fail", Description: "leave one out"},
		{N: 3, Metric: &value, Description: "no better"},
	}}, "")
	require.Contains(t, details, "| 1 | 28356.6 | **yes** | the nearest one |")
	require.Contains(t, details, "| 2 | – | no | guard-fail: leave one out |")
	require.Contains(t, details, "| 3 | 28356.6 | no | no better |")
}

// A person who has only the UI learns there that a proposal waits, and not of a desk that is gone.
func TestDetailsOfALoopThatHasEndedShowItsProposal(t *testing.T) {
	s := loop.State{Loop: "demo-1", Kind: "improve", Status: loop.Running, Desk: "/home/a/desk"}
	require.Contains(t, loopworkflow.Details(s, ""), "| desk | /home/a/desk |")
	s.Status, s.Proposal = loop.Completed, &loop.Proposal{Hash: theHash, State: "open", Files: 3}
	details := loopworkflow.Details(s, "")
	require.NotContains(t, details, "desk")
	require.Contains(t, details, "| proposal | `"+theHash[:16]+"`, 3 files: `pawl show demo-1` says whether it is approved and applied, and how to do so |")
}

// A delivery keeps and discards nothing; it fixes.
func TestDetailsShowWhatAKindCounts(t *testing.T) {
	require.Contains(t, loopworkflow.Details(loop.State{Kind: "improve", KeptCount: 2, Discarded: 1, DiscardsInARow: 1}, ""), "| kept / discarded | 2 / 1, 1 discard in a row |")
	require.Contains(t, loopworkflow.Details(loop.State{Kind: "improve", Discarded: 2, DiscardsInARow: 2}, ""), "0 / 2, 2 discards in a row")
	delivery := loopworkflow.Details(loop.State{Kind: "deliver", FixAttempts: 2}, "")
	require.Contains(t, delivery, "| fixes | 2 in this iteration |")
	require.NotContains(t, delivery, "discard")
}

// A gate names only some of many files, so the details say where to see the others.
func TestDetailsSayHowToSeeWhatIsApproved(t *testing.T) {
	for _, c := range []struct {
		gate loop.Gate
		said bool
	}{
		{loop.Gate{Kind: loop.GateNewFiles, Tree: "7f43fa9"}, true},
		{loop.Gate{Kind: loop.GateDiff}, true},
		{loop.Gate{Kind: loop.GateContract}, false},
		{loop.Gate{Kind: loop.GateGuard}, false},
	} {
		details := loopworkflow.Details(loop.State{Loop: "demo-1", Kind: "improve", Status: loop.Waiting, Gate: &c.gate}, "")
		require.Equal(t, c.said, strings.Contains(details, "`pawl diff demo-1` shows all of it"), "%s: %s", c.gate.Kind, details)
	}
}

// TestDetailsShowTheDiffThatTheHashCovers: a person who has only the Temporal UI sees there what an approval would be
// of. Temporal's history has nothing of the diff.
func TestDetailsShowTheDiffThatTheHashCovers(t *testing.T) {
	doc := specOf(map[string]any{"approvals": map[string]any{"diff": "required"}, "limits": map[string]any{"iterations": 1}})
	asked := map[string]bool{}
	diffs := display.Diffs(func(ref, hash, all string) string {
		asked[ref+" "+hash+" "+all] = true
		return "the diff of " + hash + "\n"
	})
	details := func(env *testsuite.TestWorkflowEnvironment) string {
		v, err := env.QueryWorkflow("__temporal_workflow_metadata")
		require.NoError(t, err)
		var m sdk.WorkflowMetadata
		require.NoError(t, v.Get(&m))
		return m.CurrentDetails
	}
	p := play(t, newWorld(t, map[int][]try{1: {{Says: "raise", Metric: "11"}}}), doc, func(env *testsuite.TestWorkflowEnvironment) {
		env.SetWorkerOptions(worker.Options{DeadlockDetectionTimeout: time.Minute, Interceptors: []interceptor.WorkerInterceptor{diffs.Interceptor()}})
		at(t, env, time.Hour, func(s loop.State) {
			require.Equal(t, loop.GateDiff, s.Gate.Kind)
			shown := details(env)
			require.Contains(t, shown, "the diff of "+theHash+"\n")
			require.Less(t, strings.Index(shown, "| approve"), strings.Index(shown, "the diff of"), "the answers come first: the diff may be long")
			require.NotContains(t, shown, "shows all of it: every file")
			env.SignalWorkflow("approve", map[string]any{"hash": theHash})
		})
	})
	require.NotContains(t, details(p.env), "the diff of", "nothing waits any more")
	require.Equal(t, map[string]bool{p.final.Loop + " " + theHash + " pawl diff " + p.final.Loop: true}, asked)
}

// People who have only the Temporal UI approve there, so the contract's gate says what is sealed and planned, and where
// the rest is.
func TestDetailsShowWhatAContractSays(t *testing.T) {
	details := loopworkflow.Details(loop.State{
		Loop: "demo-1", Kind: "deliver", Status: loop.Waiting, Gate: &loop.Gate{Kind: loop.GateContract, Hash: theHash},
		Plan: &loop.Plan{Text: "1. Leave it *out*.", Hash: theHash}, Contract: &loop.Contract{Sealed: []loop.Seal{{Path: "check.sh"}, {Path: "**/*_test.go", Names: loop.SealAll}, {Path: "Makefile", Names: loop.SealNew}, {Path: "*.mod", Names: loop.SealLines, Lines: []string{"go"}}}},
	}, "")
	require.Contains(t, details, "```text\n1. Leave it *out*.\n```")
	require.Contains(t, details, "Sealed, so the agent can't change them: `check.sh`, `**/*_test.go`.\n\nNo new file may have such a name: `**/*_test.go`, `Makefile`.\n\nSome lines of these files must not change: `*.mod`.\n")
	require.Contains(t, details, "`pawl show demo-1` prints the whole contract")
	require.Contains(t, details, "the query `contract`")

	sealed := make([]loop.Seal, 30)
	for i := range sealed {
		sealed[i].Path = fmt.Sprintf("f%d", i)
	}
	details = loopworkflow.Details(loop.State{Gate: &loop.Gate{Kind: loop.GateContract, Hash: theHash}, Contract: &loop.Contract{Sealed: sealed}}, "")
	require.Contains(t, details, "`f19`, 10 more.")
}

// The record of a change that was never measured has the reference's metric, which is not the change's.
func TestDetailsShowNoMetricThatWasNotMeasured(t *testing.T) {
	details := loopworkflow.Details(loop.State{Iterations: []loop.Iteration{
		{N: 1, Metric: new(metric.MustDecimal("100")), Reason: "error:no-number", Description: "print nothing", Unmeasured: true}, {N: 2, Metric: new(metric.MustDecimal("99")), Kept: true, Description: "print less"},
	}}, "")
	require.Contains(t, details, "| 1 | – | no | error:no-number: print nothing |")
	require.Contains(t, details, "| 2 | 99 | **yes** | print less |")
}
