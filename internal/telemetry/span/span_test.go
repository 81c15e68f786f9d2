package span_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"pawl/internal/loop"
	"pawl/internal/metric"
	"pawl/internal/spec/phase"
	"pawl/internal/telemetry/span"
)

var noon = time.Date(2026, 3, 27, 12, 0, 0, 0, time.UTC)

// at numbers events and sets the time of event n to second n.
func at(events ...loop.Event) []loop.Event {
	for i := range events {
		events[i].Seq, events[i].Loop = int64(i+1), "climb"
	}
	return events
}

func second(n int, e loop.Event) loop.Event {
	e.Time = noon.Add(time.Duration(n) * time.Second)
	return e
}

func took(ms int64) *loop.Usage { return &loop.Usage{ActiveMs: ms, AgentCalls: 1, InputTokens: 7} }

// course returns the events of a loop with a gate, an iteration that is repaired and kept, and one that is not kept.
func course() []loop.Event {
	metric := metric.MustDecimal("2")
	contract, pause := &loop.Gate{ID: "contract-6", Kind: loop.GateContract, Hash: "abc"}, &loop.Gate{ID: "pause-18", Kind: loop.GatePause}
	return at(
		second(0, loop.Event{Type: loop.PhaseEntered, Phase: phase.Precheck}),
		second(1, loop.Event{Type: loop.LoopOpened, Phase: phase.Precheck, Opened: &loop.Opened{Kind: "improve", Goal: "a secret plan"}}),
		second(1, loop.Event{Type: loop.PhaseEntered, Phase: phase.Baseline}),
		second(3, loop.Event{Type: loop.StepEnded, Phase: phase.Baseline, Step: "verify", Reason: "ok", Usage: took(1500)}),
		second(3, loop.Event{Type: loop.BaselineMeasured, Phase: phase.Baseline, Metric: &metric}),
		second(3, loop.Event{Type: loop.GateOpened, Phase: phase.Baseline, Gate: contract}),
		second(60, loop.Event{Type: loop.GateClosed, Phase: phase.Baseline, Gate: contract, Answer: &loop.Answer{Message: "approve", By: "Ann"}}),
		second(60, loop.Event{Type: loop.AutonomyStarted, Phase: phase.Baseline}),
		second(60, loop.Event{Type: loop.PhaseEntered, Phase: phase.Review}),
		second(60, loop.Event{Type: loop.CheckpointCreated, Iteration: 1, Phase: phase.Review}),
		second(60, loop.Event{Type: loop.IterationStarted, Iteration: 1, Phase: phase.Review}),
		second(60, loop.Event{Type: loop.PhaseEntered, Iteration: 1, Phase: phase.Modify, Attempt: 1}),
		second(65, loop.Event{Type: loop.StepEnded, Iteration: 1, Phase: phase.Modify, Step: "modify", Role: "writer", Attempt: 1, Reason: "exit 3", Usage: took(90000)}),
		second(65, loop.Event{Type: loop.IterationFailed, Iteration: 1, Phase: phase.Log, FailureReason: "error:agent", Record: &loop.Iteration{N: 1, Description: "a secret"}}),
		second(66, loop.Event{Type: loop.PhaseEntered, Iteration: 1, Phase: phase.Review}),
		second(68, loop.Event{Type: loop.IterationStarted, Iteration: 2, Phase: phase.Review}),
		second(68, loop.Event{Type: loop.PhaseEntered, Iteration: 2, Phase: phase.Verify, Attempt: 1}),
		second(69, loop.Event{Type: loop.GateOpened, Iteration: 2, Phase: phase.Verify, Gate: pause}),
		second(70, loop.Event{Type: loop.MessageReceived, Iteration: 2, Phase: phase.Verify, Message: "halt", Note: "a secret"}),
		second(71, loop.Event{Type: loop.PhaseEntered, Iteration: 2, Phase: phase.Complete}),
		second(72, loop.Event{Type: loop.AutonomyHalted, Iteration: 2, Phase: phase.Complete, Status: loop.Halted, ErrorCode: "ALO_CANCELLED", Usage: took(5)}),
		second(73, loop.Event{Type: loop.PushRefused, Iteration: 2, Phase: phase.Complete}),
	)
}

func all(events []loop.Event) (out []span.Span) {
	var c span.Trace
	for _, e := range events {
		out = append(out, c.Add(e)...)
	}
	return out
}

// tree renders spans as people see them: as a tree from the loop down, in the order in which they began.
func tree(spans []span.Span) string {
	var b strings.Builder
	var show func(parent [8]byte, depth int)
	show = func(parent [8]byte, depth int) {
		inside := slices.DeleteFunc(slices.Clone(spans), func(s span.Span) bool { return s.Parent != parent })
		slices.SortStableFunc(inside, func(a, b span.Span) int { return a.Start.Compare(b.Start) })
		for _, s := range inside {
			fmt.Fprintf(&b, "%s%s %s-%s", strings.Repeat("  ", depth), s.Name, s.Start.Sub(noon), s.End.Sub(noon))
			for _, p := range s.Points {
				fmt.Fprintf(&b, " (%s)", p.Name)
			}
			if s.Failed != "" {
				fmt.Fprintf(&b, " failed: %s", s.Failed)
			}
			b.WriteByte('\n')
			show(s.ID, depth+1)
		}
	}
	show([8]byte{}, 0)
	return b.String()
}

func TestL12EventsMakeATreeOfSpans(t *testing.T) {
	require.Equal(t, `loop 0s-1m12s
  phase precheck 0s-1s
  phase baseline 1s-1m0s (baseline_measured) (autonomy_started)
    step verify 1.5s-3s
    gate contract 3s-1m0s
  iteration 1m0s-1m5s failed: error:agent
    phase review 1m0s-1m0s (checkpoint_created)
    phase modify 1m0s-1m5s
      step modify 1m0s-1m5s failed: exit 3
  phase review 1m6s-1m8s
  iteration 1m8s-1m12s
    phase review 1m8s-1m8s
    phase verify 1m8s-1m11s
      gate pause 1m9s-1m11s (message_received)
    phase complete 1m11s-1m12s
`, tree(all(course())))
}

func TestL12SpansHaveTheSameIDsWheneverTheyAreMade(t *testing.T) {
	events := course()
	first := all(events)
	require.Equal(t, first, all(events))
	ids := map[[8]byte]bool{}
	for _, s := range first {
		require.NotZero(t, s.ID)
		require.NotZero(t, s.Trace)
		require.Equal(t, first[0].Trace, s.Trace)
		require.False(t, ids[s.ID], "two spans have one ID")
		ids[s.ID] = true
	}
	for i := range events {
		events[i].Time = events[i].Time.Add(time.Hour)
	}
	require.NotEqual(t, first[0].Trace, all(events)[0].Trace, "a loop of the same name that began at another time")
}

func TestL12AnEventThatWasAddedBeforeChangesNothing(t *testing.T) {
	var once, twice span.Trace
	for _, e := range course() {
		spans := once.Add(e)
		require.Equal(t, spans, twice.Add(e))
		require.Empty(t, twice.Add(e))
	}
}

// TestL12ATraceGoesOnFromAnyEntry lets the worker die between any two events. The next one reads the events so far and
// continues.
func TestL12ATraceGoesOnFromAnyEntry(t *testing.T) {
	events := course()
	want := all(events)
	for cut := range events {
		var before, after span.Trace
		var got []span.Span
		for _, e := range events[:cut] {
			got = append(got, before.Add(e)...)
			after.Add(e)
		}
		for _, e := range events[cut:] {
			got = append(got, after.Add(e)...)
		}
		require.Equal(t, want, got, "cut before event %d", cut+1)
	}
}

func TestL12NothingThatAnybodyWroteIsInASpan(t *testing.T) {
	require.NotContains(t, fmt.Sprintf("%+v", all(course())), "secret")
}

func TestL12AFloodOfMessagesIsBounded(t *testing.T) {
	events := course()[:3]
	for range 1000 {
		events = append(events, second(3, loop.Event{Type: loop.MessageRefused, Phase: phase.Baseline}))
	}
	events = append(events, second(4, loop.Event{Type: loop.LoopFailed, ErrorCode: "PRECONDITION_FAILED"}))
	for _, s := range all(at(events...)) {
		require.LessOrEqual(t, len(s.Points), 100)
	}
}
