package crash_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"

	"pawl/internal/ledger"
	"pawl/internal/loop"
	"pawl/internal/steward"
	"pawl/test/harness/world"
)

// TestS11_AStewardLosesNothingWhenItGoesOnInNewRuns floods a steward with signals while it continues in new runs, and
// kills its worker twice meanwhile. Every submitted task must be there once, and whichever run there is must hear the
// end of a loop.
func TestS11_AStewardLosesNothingWhenItGoesOnInNewRuns(t *testing.T) {
	t.Parallel()
	world.Slow(t, "TestAStewardGoesOnInANewRunWithAllThatItHas is not killed")
	w := newMachine(t, `
case $PAWL_ROLE in
planner) printf -- '---\nsteps: [{id: x, kind: deliver}]\n---\nWrite one.\n' > "$PAWL_PLAN" ;;
*) echo "$PAWL_LOOP" >> "$WORLD/calls"
	while ! [ -e "$WORLD/go" ]; do sleep 0.05; done
	echo "$PAWL_LOOP" > work/x; echo "write" ;;
esac
`)
	spec := w.crewSpec()
	w.start([]string{"-engine", "-long", "100"})
	n := w.start(workerRole)
	require.NoError(t, w.begin(spec))
	first := w.run()
	w.message("submit", json.RawMessage(`{"task":{"id":"work","body":"Write one."}}`))
	w.until("its loop is at work", func() bool { return len(w.lines("calls")) > 0 })
	w.message("hold", doc{})
	n.kill()
	n = w.start(workerRole, "PAWL_CRASH=task.ContinueAsNew#1")

	const senders = 8
	each := 15
	if world.All() {
		each = 50 // each entry has the whole state
	}
	var g errgroup.Group
	for from := range senders {
		g.Go(func() error {
			for i := range each {
				doc := fmt.Appendf(nil, `{"task":{"id":"t%d-%d","body":"x"}}`, from, i)
				err := w.client.SignalWorkflow(t.Context(), w.Loop, "", "submit", json.RawMessage(doc))
				for serviceerror.ToStatus(err).Code() == codes.DeadlineExceeded && t.Context().Err() == nil {
					// The service was too busy to answer. It may have the signal, but a task comes once.
					err = w.client.SignalWorkflow(t.Context(), w.Loop, "", "submit", json.RawMessage(doc))
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	for _, next := range []string{"PAWL_CRASH=task.ContinueAsNew#2", ""} {
		<-n.gone
		require.True(t, n.killed(), "%s must have been killed, not have ended: %s", n.name, n.tail())
		n = w.start(workerRole, next)
	}
	require.NoError(t, g.Wait())
	w.Write("go", "")
	const tasks = 1
	w.until("all tasks are there and the one at work is done", func() bool {
		s, err := w.crew(w.T.Context())
		return err == nil && s.TasksCount == senders*each+tasks && s.Indicators.Done == tasks
	})
	w.message("halt", doc{})
	_, err := w.end()
	require.NoError(t, err)
	for _, call := range w.lines("calls") { // the call during which a worker was killed is made again
		require.Equal(t, "crew-work-x", call, "the work has one loop")
	}
	require.Len(t, lines([]byte(w.Git("log", "--format=%H", w.base+"..refs/heads/pawl/crew-work-x"))), 1, "the work was done once")

	st, _, head := w.openLedger()
	report, err := ledger.Verify(t.Context(), st, head)
	require.NoError(t, err)
	require.Empty(t, report.Faults)
	events, err := ledger.OpenSteward(st).Events(t.Context(), head)
	require.NoError(t, err)
	came, done := map[string]int{}, 0
	for i, e := range events {
		require.Equal(t, int64(i+1), e.Seq)
		switch e.Type {
		case loop.TaskSubmitted:
			came[e.Submitted.ID]++
		case loop.TaskEnded:
			done++
		}
	}
	require.Len(t, came, senders*each+tasks)
	for id, times := range came {
		require.Equal(t, 1, times, id)
	}
	require.Equal(t, 1, done)
	runs, longest := 0, 0
	for run := w.run(); run != ""; runs++ {
		h := w.history(run).GetEvents()
		longest = max(longest, len(h))
		run = h[0].GetWorkflowExecutionStartedEventAttributes().GetContinuedExecutionRunId()
		if run == "" {
			require.Equal(t, first, h[0].GetWorkflowExecutionStartedEventAttributes().GetOriginalExecutionRunId())
		}
		require.False(t, slices.ContainsFunc(h, func(e *historypb.HistoryEvent) bool {
			return e.GetEventType() == enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED
		}))
	}
	t.Logf("%d tasks in %d runs, the longest of %d events", len(came), runs, longest)
	require.Greater(t, runs, 2)
	require.Less(t, longest, 2000, "a flood does not keep it from going on in a new run")
	s, err := ledger.OpenSteward(st).State(t.Context(), head)
	require.NoError(t, err)
	require.Equal(t, steward.Done, s.Find("work").Outcome)
}
