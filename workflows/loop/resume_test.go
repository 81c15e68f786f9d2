package loop_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"pawl/internal/fault"
	"pawl/internal/lib/list"
	"pawl/internal/loop"
	"pawl/internal/loop/api"
	loopworkflow "pawl/workflows/loop"
)

// isLost lets the run be lost with its engine at the n-th activity of its host: before the activity begins, or after it
// is done. The next run finds the ledger as this one left it.
func (w *world) isLost(t *testing.T, n int, done bool, c disturbed) (where string) {
	did := 0
	w.host = func(name string, do func() error) (err error) {
		w.mu.Lock()
		did++
		now := did
		w.mu.Unlock()
		if now < n {
			return do()
		}
		if now == n {
			where = name
			if done {
				_ = do()
			}
		}
		return temporal.NewNonRetryableApplicationError("the run is lost", string(fault.LedgerAhead), nil) // so it records nothing more
	}
	payload, err := converter.GetDefaultDataConverter().ToPayload(c.doc)
	require.NoError(t, err)
	runOnce(t, w, converter.NewRawValue(payload), loopworkflow.Resume{}, answering(t))
	w.goesOn()
	return where
}

// goesOn prepares what the next run finds.
func (w *world) goesOn() {
	w.host, w.unsaid, w.head = nil, "", "base"
	if w.ledgerAt == 0 {
		return
	}
	left := w.state
	left.Ledger, w.head = w.at(), left.Head
	w.resume, w.since, w.unjudged = &left, nil, ""
	if left.Unjudged() != nil {
		w.unjudged = w.says
	}
	if left.Underway() {
		w.since = slices.Clone(w.ledger[lastOf(w.ledger, loop.CheckpointCreated):])
	}
}

func lastOf(events []loop.Event, of loop.Type) (at int) {
	for i, e := range events {
		if e.Type == of {
			at = i
		}
	}
	return at
}

// The run is lost at each activity, in loops of both kinds, and in one with candidates. Each loop ends as it would have
// ended, an iteration later if that iteration could not continue.
func TestALoopGoesOnFromItsLedgerWhereverItsRunIsLost(t *testing.T) {
	several := disturbed{kind: "several", doc: specOf(map[string]any{"guard": map[string]any{"command": "guard"}, "limits": map[string]any{"parallel": 2, "iterations": 4}})}
	several.world = func() *world {
		m := newTeam(t, map[int]float64{1: 1, 2: 2, 3: -1, 4: 1})
		m.breaks[4] = true
		return m.world
	}
	several.undisturbed = play(t, several.world(), several.doc, answering(t))
	altered := disturbed{kind: "altered", doc: specOf(map[string]any{"guard": map[string]any{"command": "guard"}, "limits": map[string]any{"iterations": 2}})}
	altered.world = func() *world {
		return altering(t, "guard", 1, map[int][]try{1: {{Says: "x", Metric: "20"}}, 2: {{Says: "y", Metric: "21"}}})
	}
	altered.undisturbed = play(t, altered.world(), altered.doc, answering(t))
	for _, c := range append(bothKinds(t), several, altered) {
		repairs := list.Map(c.undisturbed.agents, func(call api.Call) string { return call.Repair })
		for _, done := range []bool{false, true} {
			for n := 1; ; n += min(thin(), 2) {
				w := c.world()
				where := w.isLost(t, n, done, c)
				if where == "" {
					require.Greater(t, n, 12, "that was all of it")
					break
				}
				if w.state.Status.Ended() {
					continue
				}
				p := play(t, w, c.doc, func(env *testsuite.TestWorkflowEnvironment) {
					answering(t)(env)
					env.SetContinueAsNewSuggested(done && w.runs == 0)
				})
				at := fmt.Sprintf("%s: thing %d, %s, done: %v", c.kind, n, where, done)
				require.Nil(t, p.err, at)
				require.Equal(t, c.undisturbed.final.Status, p.final.Status, at)
				for _, call := range p.agents {
					require.True(t, c.kind == "deliver" || call.Repair == "" || call.Evidence != "", "%s: an agent that is called again sees why", at)
					if c.kind == "altered" {
						require.Contains(t, repairs, call.Repair, at)
					}
				}
				if !strings.Contains(strings.Join(p.course(), "\n"), " interrupted") {
					require.Equal(t, c.undisturbed.course(), p.course(), at)
					require.Equal(t, recorded(t, c.undisturbed), recorded(t, p), at)
				}
			}
		}
	}
}

// recorded returns the records of a loop's iterations, without what differs from run to run.
func recorded(t *testing.T, p played) string {
	records := slices.Clone(p.final.Iterations)
	for i := range records {
		if len(records[i].Evidence) > 0 { // a step that is run again has another log
			records[i].Evidence = []string{"some"}
		}
		records[i].Commit, records[i].Tree, records[i].Files, records[i].DurationMs, records[i].EndedAt = "", "", nil, 0, time.Time{}
	}
	return toJSON(t, records)
}

// A person pauses a loop, or halts it, and the run is lost before that has begun or ended.
func TestA6_WhatAPersonWantsOutlivesTheRun(t *testing.T) {
	doc := specOf(map[string]any{"limits": map[string]any{"iterations": 3}})
	for _, c := range []struct {
		message, choice string
		last            loop.Type // of the ledger
	}{
		{"pause", "", loop.MessageReceived}, {"pause", "", loop.GateOpened}, {"pause", "step", loop.MessageReceived}, {"pause", "step", loop.GateOpened},
		{"pause", "iteration", loop.MessageReceived}, {"pause", "iteration", loop.GateOpened},
		{"halt", "", loop.MessageReceived}, {"halt", "", loop.IterationFailed},
	} {
		for _, known := range []bool{true, false} { // where the iteration was
			w, said := newWorld(t, nil), false
			first := play(t, w, doc, func(env *testsuite.TestWorkflowEnvironment) {
				w.onSettle = func(int) string {
					if !said {
						env.SignalWorkflow(c.message, map[string]any{"by": "ann", "choice": c.choice})
					}
					said = true
					return ""
				}
				at(t, env, time.Hour, func(loop.State) { env.SignalWorkflow("continue", nil) })
			})
			asked := slices.IndexFunc(first.ledger, func(e loop.Event) bool { return e.Type == loop.MessageReceived })
			cut := asked + slices.IndexFunc(first.ledger[asked:], func(e loop.Event) bool { return e.Type == c.last })
			next := newWorld(t, nil)
			next.ledger, next.ledgerAt = slices.Clone(first.ledger[:cut+1]), 1
			next.state = loop.Fold(loop.New("default-test-workflow-id", "improve"), next.ledger)
			if next.goesOn(); !known {
				next.since = nil
			}
			paused := loop.State{}
			p := play(t, next, doc, func(env *testsuite.TestWorkflowEnvironment) {
				at(t, env, time.Hour, func(s loop.State) {
					paused = s
					env.SignalWorkflow("continue", nil)
				})
			})
			at := fmt.Sprintf("%s %s, %s, known: %v", c.message, c.choice, c.last, known)
			if c.message == "halt" {
				require.Equal(t, loop.Halted, p.final.Status, at)
				require.Equal(t, first.final.Reason, p.final.Reason, at)
				continue
			}
			require.Equal(t, loop.Paused, paused.Status, at)
			require.Equal(t, "ann", paused.PausedBy, at)
			require.Equal(t, loop.Completed, p.final.Status, at)
			require.Empty(t, p.final.PausedBy, at)
			require.Equal(t, 1, strings.Count(toJSON(t, p.types()[cut+1:]), `"gate_opened"`), at)
		}
	}
}
