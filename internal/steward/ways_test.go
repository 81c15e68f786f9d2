package steward

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"pawl/internal/loop"
	"pawl/internal/metric"
	stewardapi "pawl/internal/steward/api"
	"pawl/internal/steward/task"
)

// TestEveryWayToAnswerThatPeopleAreShownIsAccepted, and every task that waits has one, whatever has happened before.
func TestEveryWayToAnswerThatPeopleAreShownIsAccepted(t *testing.T) {
	for seed := range courses(300) {
		r := rand.New(rand.NewPCG(seed, 2))
		pick := func(of ...string) string { return of[r.IntN(len(of))] }
		c := limits()
		c.Limits.Parallel = 1 + r.IntN(3)
		if r.IntN(2) == 0 {
			c.Limits.CostUSD = new(metric.MustDecimal("5"))
		}
		o := open(t, c)
		seq := int64(0)
		for n := range 60 {
			switch r.IntN(12) {
			case 0, 1:
				in := task.Task{ID: fmt.Sprint("t", n), Body: "b", Priority: r.IntN(3)}
				if len(o.s.Tasks) > 0 && r.IntN(3) == 0 {
					in.After = []string{o.s.Tasks[r.IntN(len(o.s.Tasks))].ID}
				}
				o.submit(in, task.Tiers[r.IntN(4)], task.Step{ID: "x", Kind: "improve"}, task.Step{ID: "y", Kind: "improve"}, task.Step{ID: "z", Kind: "deliver", After: []string{"x", "y"}})
			case 2:
				d := task.Drift{Name: pick(task.DriftLedger, task.DriftArtifact, task.DriftBranch, task.DriftRemote, task.DriftCI, task.DriftEngine, task.DriftChild), What: pick("a", "b"), Theirs: pick("1", "2"), Text: "it differs"}
				if d.Name == task.DriftEngine || d.Name == task.DriftChild {
					if d.What = ""; len(o.loops) > 0 {
						d.What = pick(slices.Sorted(maps.Keys(o.loops))...)
					}
				}
				if v := (stewardapi.Validated{Drift: []task.Drift{d}}); r.IntN(4) > 0 {
					o.validated(v)
				} else {
					o.validated(stewardapi.Validated{Well: v.Drift})
				}
			case 3:
				if len(o.s.Tasks) > 0 {
					_ = o.say(pick(loop.MessagePause, loop.MessageContinue, loop.MessageHalt, MessageInterrupt, MessageHold, MessageResume, loop.MessagePause), Message{Task: id(o.s.Tasks[r.IntN(len(o.s.Tasks))].ID)})
				}
			case 4:
				_ = o.say(pick(loop.MessagePause, loop.MessageContinue, MessageHold, MessageResume), Message{})
			case 5:
				_ = o.say(loop.MessageSetMode, Message{Mode: pick("mission", "mission", "plan", "answer")})
			case 6:
				if len(o.s.Tasks) > 0 {
					_ = o.say(MessageSetTier, Message{Task: id(o.s.Tasks[r.IntN(len(o.s.Tasks))].ID), Tier: task.Tiers[r.IntN(4)]})
				}
			case 7, 8:
				if all := o.s.Open(); len(all) > 0 {
					g := all[r.IntN(len(all))]
					ways := Ways("s", g)
					w := ways[r.IntN(len(ways))]
					require.NoError(t, o.say(w.Message, o.message(w.Payload)))
				}
			default:
				running := slices.DeleteFunc(slices.Sorted(maps.Keys(o.loops)), func(id string) bool { return o.loops[id] != "running" && o.loops[id] != "asking" })
				if len(running) == 0 {
					break
				}
				id := pick(running...)
				seq++
				e := task.ChildEvent{Loop: id, Seq: seq, Event: task.IterationEnded, Result: &task.ChildResult{Status: "running", Kept: r.IntN(3) == 0, Reason: "no", Usage: task.Usage{CostUSD: metric.MustDecimal(fmt.Sprint(r.IntN(4) * r.IntN(6)))}}}
				switch r.IntN(9) {
				case 0:
					o.asks(id)
				case 1:
					if o.loops[id] == "asking" {
						o.answerAt(id)
					}
				case 2, 3:
					o.end(id, "completed", "")
				case 4:
					o.end(id, "failed", pick("ALO_TEST_FAILED", "BUDGET_EXHAUSTED"))
				case 5:
					o.end(id, "halted", pick("ALO_CANCELLED", "BUDGET_EXHAUSTED"))
				case 6:
					e.Result.RateLimit = &task.RateLimit{Said: "later"}
					if r.IntN(2) == 0 {
						e.Result.RateLimit.Until = o.now.Add(time.Hour)
					}
					o.child(e)
				default:
					o.child(e)
				}
			}
			for id := range o.loops { // those that a person has given up
				if _, st, _ := o.s.child(id); st == nil {
					o.loops[id] = "ended"
				}
			}
			o.conflicts = r.IntN(3) == 0
			o.settle()
			o.answerable(fmt.Sprint("seed ", seed, " after ", n))
		}
		require.Equal(t, loop.Fold(New("s"), o.events).At(o.s.Ledger), o.s, "seed %d", seed)
	}
}

func (o *office) message(payload map[string]any) Message {
	doc, err := json.Marshal(payload)
	require.NoError(o.t, err)
	m, err := Decode(doc)
	require.NoError(o.t, err)
	return m
}

// answerable checks that what people are shown is true.
func (o *office) answerable(when string) {
	shown := map[string]bool{}
	for _, g := range o.s.Open() {
		shown[g.Task] = true
		ways := Ways("s", g)
		require.NotEmpty(o.t, ways)
		for _, w := range ways {
			_, err := Answer(o.s, o.c, w.Message, o.message(w.Payload))
			require.NoError(o.t, err, "%s: %s is shown for %+v", when, w.Command, g)
		}
	}
	for _, t := range o.s.Tasks {
		if t.Outcome == "" && t.State == task.Waiting && !t.atLoop() && !t.doubted() && !o.s.Paused {
			require.True(o.t, shown[t.ID], "%s: nobody is asked about %s, which waits for %+v (%s)", when, t.ID, t.WaitingFor, t.Stop)
		}
		if t.Outcome == "" && t.doubted() && t.State == task.Waiting {
			require.True(o.t, slices.ContainsFunc(o.s.Drift, func(d task.Drift) bool { return d.Name == task.DriftLedger }), when)
		}
		if t.Outcome == "" && t.atLoop() && t.State == task.Waiting {
			require.Equal(o.t, "asking", o.loops[t.WaitingFor.Loop], "%s: %s", when, t.ID)
		}
	}
	require.Empty(o.t, o.s.contradictions(), when)
}
