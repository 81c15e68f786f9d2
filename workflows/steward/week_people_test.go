package steward

import (
	"encoding/json"
	"fmt"
	"pawl/internal/loop"
	"pawl/internal/metric"
	"pawl/internal/steward"
	"pawl/internal/steward/stuck"
	"pawl/internal/steward/task"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/testsuite"
)

// say sends the steward a message as a person does.
func (w *week) say(name, format string, args ...any) {
	w.counts["messages"]++
	w.env.UpdateWorkflow(name, fmt.Sprintf("%d", w.counts["messages"]), &testsuite.TestUpdateCallback{
		OnAccept: func() {}, OnReject: func(error) {}, OnComplete: func(any, error) {},
	}, json.RawMessage(fmt.Sprintf(format, args...)))
}

// visit is a person who comes, does something, and will come again.
func (w *week) visit() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.visits++
	v, err := w.env.QueryWorkflow("state")
	require.NoError(w.t, err)
	var s steward.State
	require.NoError(w.t, v.Get(&s))
	if s.Status.Ended() {
		return
	}
	for _, g := range s.Gates { // nobody is forgotten, and nobody is notified too often
		age := w.env.Now().Sub(g.OpenedAt)
		want := func(age time.Duration) int {
			if age < 3*time.Hour {
				return 0
			}
			return 1 + int(age/(24*time.Hour))
		}
		require.LessOrEqual(w.t, g.Escalated, want(age), g.ID)
		require.GreaterOrEqual(w.t, g.Escalated, want(age-time.Hour), g.ID)
		w.answer(s, g)
	}
	for _, id := range sorted(w.loops) {
		if l := w.loops[id]; l.status == "asking" && (w.calm || w.draw("asked", 3) == 0) {
			l.freed = true
			w.resumes(id)
		}
	}
	for _, t := range s.Tasks {
		if t.Outcome != "" {
			continue
		}
		if _, stands := t.Stands(); stands && (w.calm || w.draw("lets go", 3) == 0) {
			w.say("continue", `{"task":%q,"by":"ann"}`, t.ID)
		}
		if t.Held && w.calm {
			w.say("resume", `{"task":%q,"by":"ann"}`, t.ID)
		}
		if !w.calm && w.draw("does", 25) == 0 {
			name := []string{"interrupt", "pause", "halt", "hold", "steer", "prioritize", "setTier"}[w.draw("which", 7)]
			w.say(name, `{"task":%q,"by":"ann","note":"so","priority":%d,"tier":%q}`, t.ID, w.draw("priority", 3), task.Tiers[w.draw("tier", 4)])
		}
	}
	if s.Paused || s.Held || w.calm {
		w.say("continue", `{"by":"ann"}`)
		w.say("resume", `{"by":"ann"}`)
	} else if w.draw("everything", 30) == 0 {
		w.say([]string{"pause", "hold"}[w.draw("everything which", 2)], `{"by":"ann"}`)
	}
	every := time.Duration(20+w.draw("comes again", 300)) * time.Minute
	if w.calm {
		every = 10 * time.Minute
		if !slices.ContainsFunc(s.Tasks, func(t steward.Task) bool { return t.Outcome == "" || len(t.Ending) > 0 }) {
			w.say("halt", `{"by":"ann"}`)
		}
		require.Less(w.t, w.visits, 1000, "it never comes to rest: %s", open(s))
	}
	w.env.RegisterDelayedCallback(w.visit, every)
}

// open describes what is not over.
func open(s steward.State) (text string) {
	for _, t := range s.Tasks {
		if t.Outcome == "" || len(t.Ending) > 0 {
			t.Log, t.Window = nil, stuck.Window{}
			doc, _ := json.Marshal(t)
			text += string(doc) + "\n"
		}
	}
	return text
}

// answer answers a gate, or does nothing.
func (w *week) answer(s steward.State, g loop.Gate) {
	if !w.calm && w.draw("answers", 3) > 0 {
		return
	}
	choice := g.Choices[0]
	if !w.calm {
		choice = g.Choices[w.draw("choice", len(g.Choices))]
	}
	switch {
	case g.Kind == steward.GateTier && (w.calm || w.draw("approves", 3) > 0):
		wrong := strings.Repeat("0f", 32)
		w.env.UpdateWorkflow("approve", "wrong "+g.ID+fmt.Sprint(w.visits), &testsuite.TestUpdateCallback{
			OnAccept: func() { w.t.Errorf("%s was approved for another hash", g.ID) }, OnReject: func(error) {}, OnComplete: func(any, error) {},
		}, json.RawMessage(fmt.Sprintf(`{"task":%q,"gate":%q,"hash":%q,"by":"ann"}`, g.Task, g.ID, wrong)))
		w.say("approve", `{"task":%q,"gate":%q,"hash":%q,"by":"ann"}`, g.Task, g.ID, g.Hash)
	case g.Kind == loop.GateBudget && (w.calm || w.draw("pays", 2) == 0):
		w.say("extend", `{"task":%q,"gate":%q,"hash":%q,"limits":{"costUSD":%s},"by":"ann"}`, g.Task, g.ID, g.Hash, g.Limit.Add(metric.MustDecimal("1000")))
	default:
		w.say("answer", `{"task":%q,"gate":%q,"choice":%q,"by":"ann"}`, g.Task, g.ID, choice)
	}
}

// slot is a slot of a schedule: it submits a task as the workflow Submit does, and sometimes tries twice.
func (w *week) slot() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.calm {
		return
	}
	at := w.env.Now().UTC().Format(time.RFC3339)
	w.slots = append(w.slots, at)
	for range 1 + w.draw("slot tries", 2) {
		w.env.SignalWorkflow("submit", json.RawMessage(fmt.Sprintf(
			`{"task":{"body":"Look around.","source":"schedule nightly","dedupe":"schedule nightly %s"},"trigger":{"name":"nightly","from":"schedule","delivery":%q}}`, at, at)))
	}
	w.env.RegisterDelayedCallback(w.slot, 6*time.Hour)
}

// hand submits tasks.
func (w *week) hand() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.calm {
		return
	}
	id := fmt.Sprintf("t%d", len(w.sent))
	w.sent = append(w.sent, id)
	after := `[]`
	if n := len(w.sent); n > 1 && w.draw("after", 4) == 0 {
		after = fmt.Sprintf("[%q]", w.sent[w.draw("after which", n-1)])
	}
	w.env.SignalWorkflow("submit", json.RawMessage(fmt.Sprintf(`{"task":{"id":%q,"body":"x","priority":%d,"after":%s},"by":"ann"}`, id, w.draw("priority", 3), after)))
	w.env.RegisterDelayedCallback(w.hand, time.Duration(1+w.draw("submits", 600))*time.Minute)
}
