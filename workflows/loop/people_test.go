package loop_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/testsuite"

	"pawl/internal/fault"
	"pawl/internal/loop"
	"pawl/internal/loop/api"
)

func TestContractGate(t *testing.T) {
	doc := specOf(map[string]any{"approvals": map[string]any{"plan": "required"}, "limits": map[string]any{"iterations": 1}})
	hash := "0123456789abcdef"
	t.Run("approved by signal", func(t *testing.T) {
		p := play(t, newWorld(t, nil), doc, func(env *testsuite.TestWorkflowEnvironment) {
			env.RegisterDelayedCallback(func() {
				s := query(t, env)
				require.Equal(t, loop.Waiting, s.Status)
				require.Equal(t, loop.GateContract, s.Gate.Kind)
				env.SignalWorkflow("approve", map[string]string{"hash": "ffffffffffffffff"}) // refused
				env.SignalWorkflow("approve", "ok")                                          // refused
				env.SignalWorkflow("continue", nil)                                          // refused
			}, time.Hour)
			env.RegisterDelayedCallback(func() {
				require.Equal(t, loop.Waiting, query(t, env).Status)
				env.SignalWorkflow("approve", map[string]string{"hash": hash, "by": "ann"})
			}, 2*time.Hour)
		})
		require.Equal(t, 1, p.result.Iterations)
		require.Equal(t, "ann", p.final.Contract.ApprovedBy)
		refused := 0
		for _, e := range p.ledger {
			if e.Type == loop.MessageRefused {
				refused++
			}
		}
		require.Equal(t, 3, refused)
	})
	t.Run("rejected", func(t *testing.T) {
		p := play(t, newWorld(t, nil), doc, func(env *testsuite.TestWorkflowEnvironment) {
			env.RegisterDelayedCallback(func() { env.SignalWorkflow("reject", map[string]string{"by": "bob", "note": "no"}) }, time.Hour)
		})
		require.Equal(t, string(fault.Cancelled), p.result.ErrorCode)
		require.Zero(t, p.result.Iterations)
		require.NotContains(t, p.types(), loop.AutonomyStarted)
	})
	t.Run("nobody answers: escalated, still waiting", func(t *testing.T) {
		p := play(t, newWorld(t, nil), doc, func(env *testsuite.TestWorkflowEnvironment) {
			env.RegisterDelayedCallback(func() {
				s := query(t, env)
				require.Equal(t, loop.Waiting, s.Status)
				require.Equal(t, 2, s.Gate.Escalated)
				env.SignalWorkflow("approve", map[string]string{"hash": hash})
			}, 49*time.Hour)
		})
		require.Equal(t, 2, p.calls["park"], "a loop that waits long gives its trees up")
		require.Equal(t, 1, p.result.Iterations)
	})
}

func TestA6_PauseMidAgentRepeatsTheStep(t *testing.T) {
	p := play(t, newWorld(t, map[int][]try{1: {{Says: "x", Metric: "11", Hang: true}}}), specOf(map[string]any{"limits": map[string]any{"iterations": 1}}),
		func(env *testsuite.TestWorkflowEnvironment) {
			env.RegisterDelayedCallback(func() { env.SignalWorkflow("pause", nil) }, time.Second)
			env.RegisterDelayedCallback(func() {
				s := query(t, env)
				require.Equal(t, loop.Paused, s.Status)
				require.Contains(t, s.PauseReason, "paused")
				env.SignalWorkflow("continue", nil)
			}, time.Hour)
		})
	require.Equal(t, []string{"0.0 verify", "1.1 modify", "1.1 modify", "1.1 verify"}, p.steps)
	require.Equal(t, []string{"1 yes 11"}, p.course())
	require.Contains(t, p.types(), loop.AutonomyPaused)
	require.Contains(t, p.types(), loop.AutonomyResumed)
}

func TestA6_HaltMidAgentEndsTheLoop(t *testing.T) {
	p := play(t, newWorld(t, map[int][]try{2: {{Says: "x", Hang: true}}}), specOf(nil), func(env *testsuite.TestWorkflowEnvironment) {
		env.RegisterDelayedCallback(func() { env.SignalWorkflow("halt", map[string]string{"note": "enough"}) }, time.Second)
	})
	require.Nil(t, p.err)
	require.Equal(t, string(fault.Cancelled), p.result.ErrorCode)
	require.Equal(t, "enough", p.result.Reason)
	require.Equal(t, []string{"1 no 10", "2 no 10 interrupted"}, p.course())
	require.Equal(t, "a change that was not finished", p.final.Iterations[1].Description)
}

func TestCancelIsHalt(t *testing.T) {
	p := play(t, newWorld(t, map[int][]try{1: {{Says: "x", Hang: true}}}), specOf(nil), func(env *testsuite.TestWorkflowEnvironment) {
		env.RegisterDelayedCallback(env.CancelWorkflow, time.Second)
	})
	require.Nil(t, p.err)
	require.Equal(t, string(fault.Cancelled), p.result.ErrorCode)
	require.Equal(t, 1, p.calls[api.CloseName])
}

func TestL4_Breakpoints(t *testing.T) {
	doc := specOf(map[string]any{"breakpoints": []string{"verify"}, "limits": map[string]any{"iterations": 1}})
	p := play(t, newWorld(t, nil), doc, func(env *testsuite.TestWorkflowEnvironment) {
		env.RegisterDelayedCallback(func() {
			s := query(t, env)
			require.Equal(t, loop.Paused, s.Status)
			require.Contains(t, s.PauseReason, "breakpoint")
			env.SignalWorkflow("continue", nil)
		}, time.Hour)
	})
	require.Equal(t, 1, p.result.Iterations)
}

// A rework enters its phases again, and people want to look again.
func TestL4_ABreakpointStopsEveryAttempt(t *testing.T) {
	doc := specOf(map[string]any{"breakpoints": []string{"verify"}, "guard": map[string]any{"command": "check"}, "limits": map[string]any{"iterations": 1}})
	p := play(t, newWorld(t, map[int][]try{1: {{Says: "x", Metric: "20", Guard: true}, {Says: "y", Metric: "15"}}}), doc, func(env *testsuite.TestWorkflowEnvironment) {
		for n := range 2 {
			env.RegisterDelayedCallback(func() {
				s := query(t, env)
				require.Equal(t, loop.Paused, s.Status)
				require.Equal(t, n+1, s.Attempt)
				env.SignalWorkflow("continue", nil)
			}, time.Duration(n+1)*time.Hour)
		}
	})
	require.Equal(t, []string{"1 yes 15"}, p.course())
}

func TestL4_BreakpointsWhereAnIterationIsRecorded(t *testing.T) {
	for name, c := range map[string]struct {
		answer, course string
		status         loop.Status
	}{
		"it is gone on with": {"continue", "1 yes 11", loop.Completed},
		"the loop is halted": {"halt", "1 yes 11", loop.Halted},
	} {
		t.Run(name, func(t *testing.T) {
			doc := specOf(map[string]any{"breakpoints": []string{"log"}, "limits": map[string]any{"iterations": 1}})
			stopped := false
			p := play(t, newWorld(t, map[int][]try{1: {{Says: "x", Metric: "11"}}}), doc, func(env *testsuite.TestWorkflowEnvironment) {
				env.RegisterDelayedCallback(func() {
					s := query(t, env)
					stopped = s.Status == loop.Paused && s.Phase == "log" && len(s.Iterations) == 0
					env.SignalWorkflow(c.answer, nil)
				}, time.Hour)
			})
			require.True(t, stopped)
			require.Equal(t, []string{c.course}, p.course(), "what was decided is recorded")
			require.Equal(t, c.status, p.final.Status)
			require.Empty(t, p.reverts)
		})
	}
}
