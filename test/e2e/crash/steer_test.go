package crash_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"pawl/internal/fault"
	"pawl/internal/loop"
	"pawl/test/harness/world"
)

// reporting is an agent that reports what it has spent, when it is interrupted and at its end.
const reporting = `trap 'echo "{\"toolCalls\": 7}" > "$PAWL_RESULT"; exit 130' INT
` + waiting + `
echo '{"toolCalls": 2, "description": "raise n"}' > "$PAWL_RESULT"
`

func paused(s loop.State) bool { return s.Status == loop.Paused }

func TestPauseInterruptsTheAgentAndContinueRepeatsIt(t *testing.T) {
	t.Parallel()
	w := newWaiting(t, reporting)
	w.start(bothRoles)
	require.NoError(t, w.begin(w.spec(nil)))
	first, _ := w.agentBegins(1)
	asked := time.Now()
	w.message("pause", map[string]string{"by": "ann"})
	w.until("the loop is paused", w.is(paused))
	took := time.Since(asked)
	t.Logf("pause takes %s", seconds(took))
	require.False(t, alive(first), "the agent is ended")
	w.until("nothing runs while a loop is paused", func() bool { return len(w.processes(w.record().Token())) == 0 })
	w.message("continue", nil)
	w.agentBegins(2)
	w.letGo()
	r, err := w.end()
	require.NoError(t, err)
	o := w.outcome(r)
	require.Equal(t, raised, o.Rows)
	require.EqualValues(t, 9, r.Usage.ToolCalls, "what the interrupted call spent stays counted")
	require.EqualValues(t, 2, r.Usage.AgentCalls)
}

func TestHaltEndsTheAgentAndTheLoop(t *testing.T) {
	world.Slow(t, "TestPauseInterruptsTheAgentAndContinueRepeatsIt interrupts likewise")
	t.Parallel()
	w := newWaiting(t, reporting)
	w.start(bothRoles)
	require.NoError(t, w.begin(w.spec(nil)))
	first, _ := w.agentBegins(1)
	asked := time.Now()
	w.message("halt", map[string]string{"note": "enough"})
	r, err := w.end()
	require.NoError(t, err)
	took := time.Since(asked)
	t.Logf("halt takes %s", seconds(took))
	require.False(t, alive(first))
	require.Equal(t, string(fault.Cancelled), r.ErrorCode)
	require.Equal(t, "enough", r.Reason)
	require.EqualValues(t, 7, r.Usage.ToolCalls)
	require.Equal(t, []string{"0 10 0 yes: baseline", "1 10 0 no interrupted: a change that was not finished"}, w.outcome(r).Rows)
}

// TestAWorkerThatEndsWhileItInterrupts kills or stops the worker while the loop is to pause or to halt and the agent is
// slow to end. The service does not retry an activity whose cancellation was requested; that must not fail the loop.
func TestAWorkerThatEndsWhileItInterrupts(t *testing.T) {
	world.Slow(t, "TestPauseInterruptsTheAgentAndContinueRepeatsIt interrupts it")
	t.Parallel()
	for _, c := range world.Sample(1, []struct{ message, ending string }{
		{"pause", "killed"}, {"halt", "killed"}, {"cancel", "killed"},
		{"pause", "stopped"}, {"cancel", "stopped"}, {"halt", "stopped"},
	}) {
		t.Run(c.message+" and "+c.ending, func(t *testing.T) {
			t.Parallel()
			w := newWaiting(t, stubborn)
			w.start(engineRole)
			n := w.start(workerRole)
			require.NoError(t, w.begin(w.spec(nil)))
			w.agentBegins(1)
			if c.message == "cancel" {
				require.NoError(t, w.client.CancelWorkflow(t.Context(), w.Loop, ""))
			} else {
				w.message(c.message, nil)
			}
			w.until("the agent is asked to end", func() bool { return len(w.lines("asked")) > 0 })
			if c.ending == "killed" {
				n.kill()
			} else {
				n.stop(t)
			}
			w.start(workerRole)
			if c.message == "pause" {
				w.until("the loop is paused", w.is(paused))
				w.Write("go", "")
				w.message("continue", nil)
				w.requireRaised()
			} else {
				r, err := w.end()
				require.NoError(t, err)
				require.Equal(t, string(fault.Cancelled), r.ErrorCode)
				w.outcome(r)
			}
			w.leftNothingToATimeout()
			require.Less(t, w.historyLength(), int64(150), "waiting for an agent to end costs no history")
		})
	}
}

// TestMessagesSentWhileNobodyIsThere: they arrive when a worker starts.
func TestMessagesSentWhileNobodyIsThere(t *testing.T) {
	t.Parallel()
	w := newWaiting(t, waiting)
	w.start(engineRole)
	n := w.start(workerRole)
	require.NoError(t, w.begin(w.spec(nil)))
	w.agentBegins(1)
	n.kill()
	w.message("steer", map[string]string{"note": "take the other side", "by": "ann"})
	w.message("pause", "not a message")
	w.message("pause", nil)
	n = w.start(workerRole)
	w.until("the loop is paused", w.is(paused))
	t.Logf("start of the worker, to the messages taken: %s", seconds(time.Since(n.started)))
	w.message("continue", nil)
	w.until("the agent works again", func() bool { return len(w.agents()) >= 2 })
	w.letGo()
	o := w.requireRaised()
	require.Contains(t, strings.Join(o.Events, "\n"), string(loop.MessageRefused), "what can't be understood is on record")
}
