package workflows_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"pawl/internal/evidence"
	"pawl/internal/govern"
	"pawl/internal/spec"
	"pawl/workflows"
)

// lenient is a next version of the rules that keeps a metric that stays the same.
type lenient struct{ govern.Improve }

// next is its number.
const next workflow.Version = 6

func (r lenient) Decide(reference, metric evidence.Decimal) (govern.Move, evidence.Decimal) {
	m, delta := r.Improve.Decide(reference, metric)
	m.Kept = delta.Sign() >= 0
	return m, delta
}

func addLenient(t *testing.T) {
	t.Cleanup(workflows.AddImproveRules(func(s spec.Spec) workflows.ImproveRules { return lenient{govern.ImproveOf(s, 5)} }))
}

func TestTwoVersionsOfTheRulesRunSideBySide(t *testing.T) {
	addLenient(t)
	script := map[int][]try{1: {{Says: "same", Metric: "10"}}, 2: {{Says: "worse", Metric: "9"}}}
	for version, course := range map[workflow.Version][]string{
		1:    {"1 no 10", "2 no 9"},
		next: {"1 yes 10", "2 no 9"},
	} {
		p := play(t, newWorld(t, script), specOf(map[string]any{"limits": map[string]any{"iterations": 2}}), func(env *testsuite.TestWorkflowEnvironment) {
			env.OnGetVersion("rules", workflow.Version(1), next).Return(version)
		})
		require.Equal(t, course, p.course(), "version %d", version)
	}
}

// Version 1 takes an idea in other words for a new one.
func TestP2_FromVersion2OnADiscardedIdeaIsRecognisedInOtherWords(t *testing.T) {
	for version, calls := range map[workflow.Version][]string{
		1: {"0.0 verify", "1.1 ideate", "1.1 modify", "1.1 verify", "2.1 ideate", "2.1 modify", "2.1 verify"},
		2: {"0.0 verify", "1.1 ideate", "1.1 modify", "1.1 verify", "2.1 ideate", "2.2 ideate", "2.1 modify", "2.1 verify"},
	} {
		w := newWorld(t, map[int][]try{1: {{Metric: "9", Tree: "a"}}, 2: {{Metric: "9", Tree: "b"}}})
		w.ideas[1], w.ideas[2] = []try{{Idea: "cache the parser"}}, []try{{Idea: "caching the parsers"}, {Idea: "inline the loop"}}
		doc := specOf(map[string]any{"limits": map[string]any{"iterations": 2}, "agent": map[string]any{"ideas": true}})
		p := play(t, w, doc, func(env *testsuite.TestWorkflowEnvironment) {
			env.OnGetVersion("rules", workflow.Version(1), next-1).Return(version)
		})
		require.Nil(t, p.err)
		require.Equal(t, calls, p.steps, "version %d", version)
	}
}

func TestANewLoopTakesTheNewestRules(t *testing.T) {
	addLenient(t)
	p := play(t, newWorld(t, map[int][]try{1: {{Says: "same", Metric: "10"}}}), specOf(map[string]any{"limits": map[string]any{"iterations": 1}}), nil)
	require.Nil(t, p.err)
	require.Equal(t, []string{"1 yes 10"}, p.course())
}

func TestALoopTakesTheNewestRulesWhenItContinuesAsNew(t *testing.T) {
	addLenient(t)
	w := newWorld(t, map[int][]try{1: {{Says: "same", Metric: "10", Tree: "a"}}, 2: {{Says: "same still", Metric: "10", Tree: "b"}}})
	p := play(t, w, specOf(map[string]any{"limits": map[string]any{"iterations": 2}}), func(env *testsuite.TestWorkflowEnvironment) {
		version := workflow.Version(1)
		if w.runs > 1 {
			version = next
		}
		env.OnGetVersion("rules", workflow.Version(1), next).Return(version)
		w.onSettle = func(iteration int) string {
			env.SetContinueAsNewSuggested(w.runs < 2 && iteration > 0)
			return ""
		}
	})
	require.Equal(t, []string{"1 no 10", "2 yes 10"}, p.course())
}

// The test replays a loop that began with the newest rules of its time, next to a next version that decides differently.
func TestARunningLoopKeepsItsRules(t *testing.T) {
	addLenient(t)
	require.NoError(t, replay(readHistory(t, "testdata/histories/keep-and-discard-v1.json")))
}
