package loop_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"pawl/internal/loop"
	"pawl/internal/loop/api"
)

// told is a loop with one kept change that notifies the given receivers. Nobody answers its diff gate for a day and a
// half.
func told(t *testing.T, notify func(api.Notify) error, to ...string) played {
	w := newWorld(t, map[int][]try{1: {{Says: "better", Metric: "12"}}})
	w.notify = notify
	doc := specOf(map[string]any{"notify": to, "limits": map[string]any{"iterations": 1}, "approvals": map[string]any{"diff": "required"}})
	return play(t, w, doc, func(env *testsuite.TestWorkflowEnvironment) {
		at(t, env, 36*time.Hour, func(s loop.State) { env.SignalWorkflow("approve", map[string]any{"hash": s.Gate.Hash}) })
	})
}

func TestPeopleAreToldOfGatesAndOfTheEnd(t *testing.T) {
	p := told(t, nil, "https://example.com/hook", "desktop")
	require.Len(t, p.notices, 6)
	var to []string
	var events []loop.Type
	for _, n := range p.notices {
		to, events = append(to, n.To), append(events, n.Notice.Event)
	}
	slices.Sort(to)
	require.Equal(t, []string{"desktop", "desktop", "desktop", "https://example.com/hook", "https://example.com/hook", "https://example.com/hook"}, to)
	require.Equal(t, []loop.Type{loop.GateOpened, loop.GateOpened, loop.GateEscalated, loop.GateEscalated, loop.AutonomyCompleted, loop.AutonomyCompleted}, events)

	opened := p.notices[0].Notice
	require.Equal(t, "default-test-workflow-id", opened.Loop)
	require.Equal(t, "improve", opened.Kind)
	require.Equal(t, loop.Waiting, opened.Status)
	require.Equal(t, loop.GateDiff, opened.Gate.Kind)
	require.Equal(t, theHash, opened.Gate.Hash)
	require.Equal(t, []string{"approve", "reject"}, opened.Gate.Answers)
	require.Equal(t, api.How{
		Answer: "approve", Payload: map[string]any{"gate": opened.Gate.ID, "hash": theHash[:16]}, Command: "pawl approve default-test-workflow-id --hash " + theHash[:16],
	}, opened.How[0])
	require.False(t, opened.Time.IsZero())
	require.Equal(t, "nobody answered for 24h0m0s", p.notices[2].Notice.Reason)

	end := p.notices[5].Notice
	require.Nil(t, end.Gate)
	require.Equal(t, loop.Completed, end.Status)
	require.Equal(t, "the iteration limit is reached", end.Reason)
	require.NotContains(t, p.types(), loop.Warned)
}

func TestWhoCannotBeToldIsAWarningAndHoldsNothingUp(t *testing.T) {
	attempts := 0
	for name, c := range map[string]struct {
		err      error
		attempts int
	}{
		"tried again": {errors.New("connection refused"), 9},
		"for good":    {temporal.NewNonRetryableApplicationError("it answers 404 Not Found", "Notify", nil), 3},
	} {
		t.Run(name, func(t *testing.T) {
			attempts = 0
			p := told(t, func(api.Notify) error { attempts++; return c.err }, "https://example.com/secret/hook")
			require.Nil(t, p.err)
			require.Equal(t, loop.Completed, p.final.Status)
			require.Equal(t, "approved", p.result.Proposal.State)
			require.Equal(t, c.attempts, attempts)
			warned := 0
			for _, e := range p.ledger {
				if e.Type == loop.Warned {
					warned++
					require.Contains(t, e.Reason, "https://example.com could not be notified: ")
					require.NotContains(t, e.Reason, "secret")
				}
			}
			require.Equal(t, 3, warned, "the last one after the end")
		})
	}
}

func TestAPauseThatSomebodyAskedForIsNotToldAndABreakpointIs(t *testing.T) {
	w := newWorld(t, map[int][]try{1: {{Says: "x", Metric: "11", Hang: true}}})
	doc := specOf(map[string]any{"notify": []string{"tell"}, "limits": map[string]any{"iterations": 1}, "breakpoints": []string{"verify"}})
	p := play(t, w, doc, func(env *testsuite.TestWorkflowEnvironment) {
		at(t, env, time.Second, func(loop.State) { env.SignalWorkflow("pause", nil) })
		for i, kind := range []loop.GateKind{loop.GatePause, loop.GateBreakpoint} {
			at(t, env, time.Duration(i+1)*time.Hour, func(s loop.State) {
				require.Equal(t, kind, s.Gate.Kind)
				env.SignalWorkflow("continue", nil)
			})
		}
	})
	require.Len(t, p.notices, 2)
	require.Equal(t, loop.GateBreakpoint, p.notices[0].Notice.Gate.Kind)
	require.Equal(t, loop.AutonomyCompleted, p.notices[1].Notice.Event)
}

func TestALoopThatNeverBeganIsTold(t *testing.T) {
	w := newWorld(t, nil)
	w.openErr = temporal.NewNonRetryableApplicationError("the tree is not clean", "PRECONDITION_FAILED", nil)
	p := play(t, w, specOf(map[string]any{"notify": []string{"tell"}}), nil)
	require.NotNil(t, p.err)
	require.Len(t, p.notices, 1)
	require.Equal(t, loop.LoopFailed, p.notices[0].Notice.Event)
	require.Equal(t, loop.Failed, p.notices[0].Notice.Status)
	require.Empty(t, p.notices[0].Ref)
}
