package loop_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/testsuite"

	"pawl/internal/loop"
	"pawl/internal/loop/result"
)

// The agent changes nothing until it may edit.
func TestAToolThatIsNotApprovedIsAskedFor(t *testing.T) {
	asks := specOf(map[string]any{"limits": map[string]any{"iterations": 1}, "approvals": map[string]any{"tools": []string{"read"}, "onDenied": "ask"}, "agent": map[string]any{"use": "claude", "command": []string{"claude"}, "ideas": false}})
	for name, of := range map[string]struct {
		answers func(t *testing.T, e *testsuite.TestWorkflowEnvironment)
		course  []string
		calls   int
		status  loop.Status
		tools   []string
	}{
		"approved": {func(t *testing.T, e *testsuite.TestWorkflowEnvironment) {
			at(t, e, time.Minute, func(s loop.State) {
				require.Equal(t, loop.GateQuestion, s.Gate.Kind)
				require.Equal(t, "the writer was not allowed to use Edit: amend approvals.tools to call it again, or answer go-on to have its work judged as it is", s.Gate.Summary)
				e.SignalWorkflow("amend", map[string]any{"spec": map[string]any{"verify": map[string]any{"command": "weigh"}}}) // the question is not about that
				e.SignalWorkflow("amend", map[string]any{"spec": map[string]any{"approvals": map[string]any{"tools": []string{"read", "edit"}}}})
			})
			at(t, e, 2*time.Minute, func(s loop.State) {
				require.Equal(t, loop.GateContract, s.Gate.Kind)
				e.SignalWorkflow("approve", map[string]any{"by": "ann", "hash": s.Gate.Hash})
			})
		}, []string{"1 yes 11"}, 2, loop.Completed, []string{"read", "edit"}},
		"rejected, and gone on": {func(t *testing.T, e *testsuite.TestWorkflowEnvironment) {
			at(t, e, time.Minute, func(loop.State) {
				e.SignalWorkflow("amend", map[string]any{"spec": map[string]any{"approvals": map[string]any{"tools": []string{"*"}}}})
			})
			at(t, e, 2*time.Minute, func(loop.State) { e.SignalWorkflow("reject", map[string]any{}) })
			at(t, e, 3*time.Minute, func(s loop.State) {
				require.Equal(t, loop.GateQuestion, s.Gate.Kind)
				e.SignalWorkflow("answer", map[string]string{"choice": "go-on"})
			})
		}, []string{"1 no 10 no-change"}, 1, loop.Completed, []string{"read"}},
		"not asked again": {func(t *testing.T, e *testsuite.TestWorkflowEnvironment) {
			at(t, e, time.Minute, func(loop.State) {
				e.SignalWorkflow("amend", map[string]any{"spec": map[string]any{"approvals": map[string]any{"onDenied": "deny"}}})
			})
			at(t, e, 2*time.Minute, func(s loop.State) { e.SignalWorkflow("approve", map[string]any{"hash": s.Gate.Hash}) })
		}, []string{"1 no 10 no-change"}, 1, loop.Completed, []string{"read"}},
		"halted": {func(t *testing.T, e *testsuite.TestWorkflowEnvironment) {
			at(t, e, time.Minute, func(loop.State) { e.SignalWorkflow("answer", map[string]string{"choice": "halt"}) })
		}, []string{"1 no 10 interrupted"}, 1, loop.Halted, []string{"read"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, map[int][]try{1: {{Says: "raise it", Nothing: of.calls == 1, Metric: "11"}}})
			calls := 0
			w.stepping = func(ctx context.Context, in asked) (stepped, error) {
				out, err := w.step(ctx, in)
				if in.Key.Name == "modify" {
					if calls++; calls == 1 {
						out.Class, out.Withheld = result.Done, []string{"Edit"}
					}
				}
				return out, err
			}
			p := play(t, w, asks, func(e *testsuite.TestWorkflowEnvironment) {
				e.RegisterDelayedCallback(func() { e.SignalWorkflow("steer", map[string]string{"note": "try the parser"}) }, 0)
				of.answers(t, e)
			})
			for _, call := range p.agents {
				require.Len(t, call.Guidance, 1, "what a call that is made again was told, it is told again")
			}
			require.Equal(t, of.course, p.course())
			require.Equal(t, of.calls, calls)
			require.Equal(t, of.status, p.final.Status)
			require.Equal(t, of.tools, p.final.Contract.Tools)
		})
	}
}
