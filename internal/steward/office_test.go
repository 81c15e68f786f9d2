package steward

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"pawl/internal/loop"
	"pawl/internal/metric"
	stewardapi "pawl/internal/steward/api"
	"pawl/internal/steward/charter"
	"pawl/internal/steward/task"
	"pawl/test/harness/tier"
)

// office is a steward with simulated loops, which do what the course of the test says.
type office struct {
	t       testing.TB
	s       State
	c       charter.Charter
	now     time.Time
	events  []loop.Event
	loops   map[string]string // running, paused, ended
	parked  map[string]bool   // the loops that were told to pause while they ask
	told    []string          // loop, message and choice of each message to a loop
	started map[string]int
	tiers   map[string]task.Tier
	steps   map[string][]task.Step
	seen    map[loop.Type]int // events

	assessed []string // tasks whose plans were assessed again
	problems []string // the problems that an assessment finds

	conflicts bool // the work of several steps can't be joined
}

func open(t testing.TB, c charter.Charter) *office {
	o := &office{
		t: t, s: New("s"), c: c, now: time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC), loops: map[string]string{}, parked: map[string]bool{}, started: map[string]int{},
		tiers: map[string]task.Tier{}, steps: map[string][]task.Step{}, seen: map[loop.Type]int{},
	}
	o.emit(loop.Event{Type: loop.StewardOpened, How: "mission"})
	return o
}

func limits() charter.Charter {
	c, err := charter.Parse([]byte(`{"kind":"steward","name":"s","repo":{"path":"/src/shop"},"defaults":{
		"scope":["**"],"verify":{"command":"true"},"test":{"command":"true"},"agent":{"command":["agent"]},"approvals":{"tools":["*"]}}}`))
	if err != nil {
		panic(err)
	}
	return c
}

func (o *office) emit(events ...loop.Event) {
	for _, e := range events {
		e.Seq, e.Time = o.s.Seq+1, o.now
		if e.Type == loop.GateOpened {
			g := *e.Gate
			require.Empty(o.t, g.ID, "gates get their IDs in one place")
			g.ID, g.OpenedAt = fmt.Sprintf("%s-%d", g.Kind, e.Seq), o.now
			e.Gate = &g
		}
		if !strings.Contains(e.Reason, "(limits.actions)") { // the warning about a plan that leaves no room
			require.NotEqual(o.t, loop.Warned, e.Type, e.Reason)
		}
		before := o.s
		if o.seen[e.Type]++; o.seen[e.Type] <= 2 { // the others would take long
			defer func(was string) {
				require.Equal(o.t, was, written(o.t, before), "%s changes the state before it", e.Type)
			}(written(o.t, before))
		}
		o.s = o.s.Apply(e)
		o.check(before, e)
		o.events = append(o.events, e)
		o.now = o.now.Add(time.Second)
	}
	o.s.Ledger = fmt.Sprint("l", o.s.Seq)
}

func written(t testing.TB, s State) string {
	doc, err := json.Marshal(s)
	require.NoError(t, err)
	return string(doc)
}

// check checks what must be true of every event.
func (o *office) check(before State, e loop.Event) {
	if e.Type == loop.TaskStateChanged && e.From == task.Waiting && e.To == task.Idle {
		require.NotEmpty(o.t, e.Evidence.Answer, "WAITING_FOR_HUMAN became IDLE without a person")
	}
	if e.Type == loop.TaskEnded {
		require.False(o.t, slices.ContainsFunc(before.Gates, func(g loop.Gate) bool { return g.Task == e.Task }), "%s ended with an open gate", e.Task)
	}
	if e.Type == loop.StepBegun {
		t := before.Find(e.Task)
		if t.Tier == task.T1 || t.Tier == task.T2 || len(t.Plan.Needs) > 0 {
			require.NotEmpty(o.t, t.ApprovedBy, "%s began without an approval", e.Task)
		}
	}
	require.LessOrEqual(o.t, len(o.s.Tasks), o.s.TasksCount)
}

func (o *office) say(name string, m Message) error {
	reply, err := Answer(o.s, o.c, name, m)
	if err == nil {
		o.emit(reply.Events...)
	}
	return err
}

func id(task string) json.RawMessage { b, _ := json.Marshal(task); return b }

func (o *office) submit(t task.Task, tier task.Tier, steps ...task.Step) {
	o.tiers[t.ID], o.steps[t.ID] = tier, steps
	doc, err := json.Marshal(t)
	require.NoError(o.t, err)
	require.NoError(o.t, o.say(MessageSubmit, Message{Task: doc}))
}

// settle does all jobs until there are none.
func (o *office) settle() {
	for range 1000 {
		events, jobs := Next(o.s, o.c, nil)
		if len(events) > 0 {
			o.emit(events...)
			continue
		}
		if len(jobs) == 0 || jobs[0].Do == End {
			require.Empty(o.t, o.s.contradictions())
			return
		}
		seen := map[string]bool{}
		for _, j := range jobs {
			require.False(o.t, seen[j.Key()], j.Key())
			seen[j.Key()] = true
			o.job(j)
		}
	}
	require.Fail(o.t, "it never comes to rest")
}

func (o *office) job(j Job) {
	switch j.Do {
	case Plan:
		steps := o.steps[j.Task]
		if steps == nil {
			steps = []task.Step{{ID: "one", Kind: "deliver"}}
		}
		p := task.Plan{Hash: fmt.Sprintf("%064d", len(o.events)), Steps: steps}
		o.emit(AfterPlan(o.s, o.c, j, stewardapi.TaskPlanned{Plan: &p, Tier: o.tiers[j.Task], TierBy: "rules", Governance: o.s.Governance})...)
	case Assess:
		o.assessed = append(o.assessed, j.Task)
		p := stewardapi.TaskPlanned{Plan: o.s.Find(j.Task).Plan, Tier: o.tiers[j.Task], TierBy: "rules", Governance: o.s.Governance, Governs: o.tiers[j.Task] == task.T1, Problems: o.problems}
		o.emit(AfterAssess(o.s, o.c, j, p)...)
	case Begin:
		if o.conflicts && len(j.After) > 1 {
			o.emit(AfterJoin(o.s, o.c, j, stewardapi.Joined{Conflicts: []string{"main.go"}})...)
			return
		}
		o.started[j.Loop]++
		o.loops[j.Loop] = "running"
		running := 0
		for _, status := range o.loops {
			if status == "running" {
				running++
			}
		}
		require.LessOrEqual(o.t, running, o.c.Limits.Parallel)
		o.emit(AfterBegin(o.s, j)...)
	case Tell:
		o.told = append(o.told, j.Loop+" "+j.Message+" "+j.Choice)
		o.emit(AfterTell(j, "")...)
		switch {
		case o.loops[j.Loop] == "ended":
		case j.Message == loop.MessagePause && o.loops[j.Loop] == "asking":
			o.parked[j.Loop] = true // it pauses as soon as it is answered
		case j.Message == loop.MessagePause:
			o.loops[j.Loop] = "paused"
			o.child(task.ChildEvent{Loop: j.Loop, Event: task.ChildAsks, Gate: &task.ChildGate{ID: "pause-1", Kind: "pause"}})
		case j.Message == loop.MessageContinue:
			o.loops[j.Loop] = "running"
			o.child(task.ChildEvent{Loop: j.Loop, Event: task.ChildAnswered, Gate: &task.ChildGate{ID: "pause-1", Kind: "pause"}})
		case j.Message == loop.MessageHalt:
			o.end(j.Loop, "halted", "ALO_CANCELLED")
		}
	}
}

func (o *office) child(e task.ChildEvent) { o.emit(AfterChild(o.s, o.c, e)...) }

func (o *office) iterate(id string, kept bool, value string) {
	m := metric.MustDecimal(value)
	o.child(task.ChildEvent{Loop: id, Event: task.IterationEnded, Result: &task.ChildResult{Status: "running", Kept: kept, Metric: &m, Reason: "no improvement"}})
}

func (o *office) end(id, status, code string) {
	o.loops[id] = "ended"
	o.child(task.ChildEvent{Loop: id, Event: task.ChildEnded, Result: &task.ChildResult{
		Status: status, ErrorCode: code, Head: "h-" + id, Proposal: &task.ChildProposal{Hash: fmt.Sprintf("%064x", len(id)), State: "approved"},
	}})
}

// next records the events that follow, and returns the jobs.
func (o *office) next(underWay []Job) []Job {
	for {
		events, jobs := Next(o.s, o.c, underWay)
		if len(events) == 0 {
			return jobs
		}
		o.emit(events...)
	}
}

// asks lets a loop ask a question; answerAt is a person's answer at the loop.
func (o *office) asks(id string) {
	o.loops[id] = "asking"
	o.child(task.ChildEvent{Loop: id, Event: task.ChildAsks, Gate: &task.ChildGate{ID: "question-1", Kind: "question", Summary: "which?"}})
}

func (o *office) answerAt(id string) {
	o.loops[id] = "running"
	pauses := o.parked[id]
	if pauses {
		o.loops[id] = "paused"
		delete(o.parked, id)
	}
	o.child(task.ChildEvent{Loop: id, Event: task.ChildAnswered, Gate: &task.ChildGate{ID: "question-1", Kind: "question"}})
	if pauses {
		o.child(task.ChildEvent{Loop: id, Event: task.ChildAsks, Gate: &task.ChildGate{ID: "pause-2", Kind: "pause", By: loop.StewardName("s")}})
	}
}

func (o *office) answer(id_ string, name string, m Message) {
	m.Task = id(id_)
	require.NoError(o.t, o.say(name, m))
}

// courses returns how many random courses a test runs: a fifth of them without -tags nightly.
func courses(all uint64) uint64 {
	if tier.Nightly {
		return all
	}
	return all / 5
}
