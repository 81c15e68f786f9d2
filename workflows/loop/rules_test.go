package loop_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"pawl/internal/loop/rules"
)

// rewords is a loop in which every idea after the first is that one in other words, and then a new one. Version 1 of the
// rules takes an idea in other words for a new one; version 2 was the first to recognise it.
func rewords(t *testing.T, iterations int) (*world, map[string]any) {
	w := newWorld(t, map[int][]try{1: {{Metric: "9", Tree: "a"}}, 2: {{Metric: "9", Tree: "b"}}, 3: {{Metric: "9", Tree: "c"}}})
	w.ideas[1] = []try{{Idea: "cache the parser"}}
	w.ideas[2] = []try{{Idea: "caching the parsers"}, {Idea: "inline the loop"}}
	w.ideas[3] = []try{{Idea: "caching the parser"}, {Idea: "read the file once"}}
	return w, map[string]any{"limits": map[string]any{"iterations": iterations}, "agent": map[string]any{"ideas": true}}
}

// The steps of that loop, by version of the rules.
var (
	taken      = []string{"0.0 verify", "1.1 ideate", "1.1 modify", "1.1 verify", "2.1 ideate", "2.1 modify", "2.1 verify"}
	recognised = []string{"0.0 verify", "1.1 ideate", "1.1 modify", "1.1 verify", "2.1 ideate", "2.2 ideate", "2.1 modify", "2.1 verify"}
)

// gives makes a run get a version of the rules.
func gives(env *testsuite.TestWorkflowEnvironment, version workflow.Version) {
	env.OnGetVersion("rules", workflow.Version(1), workflow.Version(rules.NewestVersion)).Return(version)
}

// TestHistoriesReplay shows the rest: of the histories sequential-v1 and sequential-v2, no other version can be made.
func TestTwoVersionsOfTheRulesRunSideBySide(t *testing.T) {
	for version, steps := range map[workflow.Version][]string{1: taken, 2: recognised, rules.NewestVersion: recognised} {
		w, keys := rewords(t, 2)
		p := play(t, w, specOf(keys), func(env *testsuite.TestWorkflowEnvironment) { gives(env, version) })
		require.Nil(t, p.err)
		require.Equal(t, steps, p.steps, "version %d", version)
	}
}

func TestP2_ANewLoopTakesTheNewestRulesWhichRecogniseADiscardedIdeaInOtherWords(t *testing.T) {
	w, keys := rewords(t, 2)
	p := play(t, w, specOf(keys), nil)
	require.Nil(t, p.err)
	require.Equal(t, recognised, p.steps)
}

func TestALoopTakesTheNewestRulesWhenItContinuesAsNew(t *testing.T) {
	w, keys := rewords(t, 3)
	p := play(t, w, specOf(keys), func(env *testsuite.TestWorkflowEnvironment) {
		version := workflow.Version(1)
		if w.runs > 1 {
			version = rules.NewestVersion
		}
		gives(env, version)
		w.onSettle = func(iteration int) string {
			env.SetContinueAsNewSuggested(w.runs < 2 && iteration > 1)
			return ""
		}
	})
	require.Nil(t, p.err)
	require.Equal(t, 2, w.runs)
	require.Equal(t, append(taken, "3.1 ideate", "3.2 ideate", "3.1 modify", "3.1 verify"), p.steps)
}
