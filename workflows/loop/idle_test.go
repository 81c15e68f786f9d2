package loop_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/testsuite"

	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/internal/loop/result"
)

// TestAnAgentThatAnswersAtOnceAndChangesNothingIsAskedAbout: five such calls in a row are no work.
func TestAnAgentThatAnswersAtOnceAndChangesNothingIsAskedAbout(t *testing.T) {
	nothing := []try{{Says: "done", Nothing: true}}
	script := map[int][]try{1: nothing, 2: nothing, 3: nothing, 4: nothing, 5: nothing, 6: {{Says: "better", Metric: "11"}}}
	spec := specOf(map[string]any{"limits": map[string]any{"iterations": 6, "discards": 9}})

	t.Run("the person has mended it", func(t *testing.T) {
		p := play(t, newWorld(t, script), spec, func(env *testsuite.TestWorkflowEnvironment) {
			at(t, env, time.Hour, func(s loop.State) {
				require.Equal(t, loop.GateQuestion, s.Gate.Kind)
				require.Equal(t, []string{"retry", "halt"}, s.Gate.Choices)
				require.Equal(t, 5, s.Iteration)
				env.SignalWorkflow(loop.MessageAnswer, map[string]string{"choice": "retry"})
			})
		})
		require.Nil(t, p.err)
		require.Equal(t, "6 yes 11", p.course()[5])
	})

	t.Run("the person ends the loop", func(t *testing.T) {
		p := play(t, newWorld(t, script), spec, func(env *testsuite.TestWorkflowEnvironment) {
			at(t, env, time.Hour, func(loop.State) {
				env.SignalWorkflow(loop.MessageAnswer, map[string]string{"choice": "halt"})
			})
		})
		require.Equal(t, loop.Halted, p.final.Status)
		require.Len(t, p.course(), 5)
	})

	t.Run("slow calls are work", func(t *testing.T) {
		w := newWorld(t, script)
		w.stepping = func(ctx context.Context, in asked) (stepped, error) {
			out, err := w.step(ctx, in)
			if in.Call != nil && in.Key.Iteration == 3 {
				out.ElapsedMs = 1000
			}
			return out, err
		}
		p := play(t, w, spec, nil)
		require.Nil(t, p.err)
		require.Len(t, p.course(), 6)
	})
}

// A program that prints an error of its provider and reports success is not waited for: its words alone say so.
func TestAPrintedRefusalIsAskedAboutAtOnce(t *testing.T) {
	w := newWorld(t, map[int][]try{1: {{Says: "better", Metric: "11"}}})
	refusing(w, 1, result.RateLimited, func() api.Refused {
		return api.Refused{Said: "API Error: Rate limit reached", Printed: true}
	})
	p := play(t, w, specOf(map[string]any{"limits": map[string]any{"iterations": 1}}), func(env *testsuite.TestWorkflowEnvironment) {
		at(t, env, time.Second, func(s loop.State) {
			require.Equal(t, loop.GateQuestion, s.Gate.Kind)
			require.Contains(t, s.Gate.Summary, "API Error: Rate limit reached")
			env.SignalWorkflow(loop.MessageAnswer, map[string]string{"choice": "retry"})
		})
	})
	require.Nil(t, p.err)
	require.Equal(t, []string{"1 yes 11"}, p.course(), "the call costs no iteration")
	require.Len(t, p.agents, 2)
}
