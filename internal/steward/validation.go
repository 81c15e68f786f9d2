package steward

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"pawl/internal/loop"
	"pawl/internal/metric"
	stewardapi "pawl/internal/steward/api"
	"pawl/internal/steward/charter"
	"pawl/internal/steward/delivery"
	"pawl/internal/steward/task"
)

// AfterRecord returns what follows from what an entry of the ledger found in the project: governance files that have
// changed, so that plans are assessed again (S12), and drift.
func AfterRecord(s State, out stewardapi.TasksRecorded) (events []loop.Event) {
	if out.Governance != "" && out.Governance != s.Governance {
		events = append(events, loop.Event{
			Type: loop.Warned, Governance: out.Governance, Reason: "the governance files have changed: plans are assessed again before their next steps start",
		})
	}
	return append(append(events, s.drifted(out.Drift)...), s.passed(out.Well)...)
}

// Unanswered returns what a validation has found without the drift that a person has answered since it began, in the
// state previous: it may have looked at the world before the answer took effect. The next validation sees what is so.
func (s State) Unanswered(previous State, found []task.Drift) []task.Drift {
	return slices.DeleteFunc(slices.Clone(found), func(d task.Drift) bool {
		isFound := func(candidate task.Drift) bool { return same(candidate, d) }
		return slices.ContainsFunc(previous.Drift, isFound) && !slices.ContainsFunc(s.Drift, isFound)
	})
}

// AfterValidation returns what follows from comparing the world with the record (S11, S12): drift, contradictions
// within the state, slots that schedules missed, and health checks that fail (S5).
func AfterValidation(s State, c charter.Charter, v stewardapi.Validated) []loop.Event {
	v.Drift = append(slices.Clip(v.Drift), s.contradictions()...)
	v.Well = append(slices.Clip(v.Well), s.consistent()...)
	events := []loop.Event{{Type: loop.StewardValidated, Reason: found(v), Head: v.Base, Governance: v.Governance, Remote: v.Remote, Missed: v.Missed, Slots: v.Slots}}
	events = append(append(events, s.drifted(v.Drift)...), s.passed(v.Well)...)
	for _, name := range slices.Sorted(maps.Keys(v.Missed)) {
		if n := v.Missed[name] - s.Missed[name]; n > 0 {
			events = append(events, loop.Event{Type: loop.TriggerReceived, Trigger: &task.Trigger{
				Name: name, From: "schedule", Result: "missed: " + metric.Counted(n, "slot") + " came later than the catch-up window allows",
			}})
		}
	}
	for _, h := range v.Health {
		events = append(events, examined(loop.Fold(s, events), c, h, fmt.Sprint(s.Seq))...)
	}
	return events
}

// The results of a health check.
const (
	Failing = "failing"
	Healthy = "healthy"
)

// examined returns what follows from a health check. The first failure submits a task; further failures do so only
// after the check was well again. seq is the number of the ledger's last event.
func examined(s State, c charter.Charter, h stewardapi.Health, seq string) []loop.Event {
	earlier, ill := s.Ill[h.Name]
	tr := task.Trigger{Name: h.Name, From: charter.Health, Result: Healthy, Task: earlier}
	if h.Ill == "" {
		if !ill {
			return nil
		}
		return []loop.Event{{Type: loop.TriggerReceived, Trigger: &tr}}
	}
	i := slices.IndexFunc(c.Triggers, func(t charter.Trigger) bool { return t.Name == h.Name && t.From == charter.Health })
	if ill || i < 0 {
		return nil
	}
	tr.Result, tr.Delivery = Failing, seq // no earlier failure has this number
	work, wanted, err := delivery.Fill(h.Name, c.Triggers[i].Task, delivery.Event{
		Key: h.Name + " " + tr.Delivery, Delivery: tr.Delivery, Title: "The health check " + h.Name + " fails", Body: h.Ill, Name: h.Name, Action: Failing,
	})
	failed := []loop.Event{{Type: loop.TriggerReceived, Trigger: &tr}}
	if err == nil && !wanted {
		return failed
	}
	var doc []byte
	if err == nil {
		doc, err = json.Marshal(work)
	}
	if err == nil {
		reply, refused := submit(s, c, Message{Task: doc, By: work.Source, Trigger: &tr})
		if err = refused; err == nil {
			for i := range reply.Events {
				if got := reply.Events[i].Trigger; got != nil {
					got.Result = Failing
				}
			}
			return reply.Events
		}
	}
	return append(failed, loop.Event{Type: loop.Warned, Reason: loop.Clip("the health check "+h.Name+" fails, and its task is not valid: "+err.Error(), 500)})
}

// contradictions returns where the state contradicts itself. No event should ever cause that.
func (s State) contradictions() (drifts []task.Drift) {
	loops := map[string]string{}
	for _, t := range s.Tasks {
		say := func(format string, args ...any) {
			drifts = append(drifts, task.Drift{Name: task.DriftState, What: t.ID, Text: "the task " + t.ID + " " + fmt.Sprintf(format, args...)})
		}
		switch {
		case !slices.Contains(task.States, t.State):
			say("is in an unknown state: %q", t.State)
		case t.Outcome != "" && t.State != task.Idle:
			say("is over, but its state is %s", t.State)
		case t.State == task.Executing && t.Plan == nil:
			say("is EXECUTING without a plan")
		case t.State == task.Waiting && t.WaitingFor == nil:
			say("waits, but for nothing")
		}
		if w := t.WaitingFor; w != nil && t.Outcome == "" && w.Loop == "" && w.Gate != "" && s.Waits(w.Gate) == nil {
			say("waits for the gate %s, which is not open", w.Gate)
		}
		for _, id := range t.Loops {
			if owner := loops[id]; owner != "" && owner != t.ID {
				say("has the loop %s, which is also a loop of %s", id, owner)
			}
			loops[id] = t.ID
		}
	}
	for _, g := range s.Gates {
		if t := s.Find(g.Task); g.Task != "" && (t == nil || t.Outcome != "") {
			drifts = append(drifts, task.Drift{Name: task.DriftState, What: g.ID, Text: "the gate " + g.ID + " belongs to the task " + g.Task + ", which is over"})
		}
	}
	return drifts
}

// consistent returns the contradictions that were found in the state and that it has no more, as what has passed.
func (s State) consistent() (drifts []task.Drift) {
	now := s.contradictions()
	for _, d := range slices.Concat(s.Drift, s.Accepted) {
		if d.Name == task.DriftState && !slices.ContainsFunc(now, func(c task.Drift) bool { return same(c, d) }) {
			drifts = append(drifts, task.Drift{Name: d.Name, What: d.What, Text: "the record does not contradict itself about " + d.What + " any more"})
		}
	}
	return drifts
}

// drifted records drift that is not known yet, and asks a person about it.
func (s State) drifted(drift []task.Drift) (events []loop.Event) {
	for _, d := range drift {
		if i := slices.IndexFunc(s.Drift, func(drift task.Drift) bool { return same(drift, d) }); i >= 0 {
			if s.Drift[i].Well != "" { // the drift is back
				d.Task = s.Drift[i].Task
				events = append(events, s.told(d)...)
			}
			continue
		}
		if slices.ContainsFunc(s.Accepted, func(drift task.Drift) bool { return same(drift, d) && drift.Theirs == d.Theirs }) {
			continue
		}
		answers := []string{Keep}
		if d.Name == task.DriftArtifact || d.Restorable { // nothing else can be restored
			answers = append(answers, Restore)
		}
		if d.Task = s.concerned(d); d.Task != "" {
			answers = append(answers, Cancel)
		}
		events = append(events, loop.Event{Type: loop.DriftFound, Drift: &d}, loop.Event{Type: loop.GateOpened, Drift: &d, Gate: &loop.Gate{
			Kind: GateDrift, Choices: answers, Summary: asked(d), About: about(d),
		}})
	}
	return events
}

// passed records that drift has passed. Only a person closes its gate, whose text then says how things are now.
func (s State) passed(healed []task.Drift) (events []loop.Event) {
	for _, w := range healed {
		for _, d := range s.Drift {
			if same(d, w) && d.Well == "" {
				d.Well = w.Text
				events = append(events, s.told(d)...)
			}
		}
	}
	return append(events, s.forgotten(healed)...)
}

// forgotten records that drift has passed that a person accepted. The steward asks again if it comes back.
func (s State) forgotten(healed []task.Drift) (events []loop.Event) {
	for _, w := range healed {
		if slices.ContainsFunc(s.Accepted, func(drift task.Drift) bool { return same(drift, w) }) {
			events = append(events, loop.Event{Type: loop.DriftFound, Drift: &task.Drift{Name: w.Name, What: w.What, Well: cmp.Or(w.Well, w.Text)}})
		}
	}
	return events
}

// told returns the events that update known drift and its gate.
func (s State) told(d task.Drift) (events []loop.Event) {
	for _, g := range s.Gates {
		if g.Kind == GateDrift && g.About == about(d) {
			g.Summary = asked(d)
			if d.Task == "" {
				g.Choices = slices.DeleteFunc(slices.Clone(g.Choices), func(c string) bool { return c == Cancel })
			}
			events = append(events, loop.Event{Type: loop.DriftFound, Drift: &d, Gate: &g})
		}
	}
	return events
}

// AsFound dates the text of a drift gate for people.
const AsFound = "This is how things were when they were found. It is updated only once they are right again, or differ anew."

func about(d task.Drift) string { return d.Name + " " + d.What }

func asked(d task.Drift) string {
	text := loop.Clip(d.Now(), 1900)
	if d.Task != "" {
		text += " (" + Cancel + " ends the task " + d.Task + ")"
	}
	return text
}

// concerned returns the task that has the loop, branch or plan that differs, "" if none has. What differs elsewhere,
// as in the project's branch or its CI, is no task's own, so no task may be ended because of it.
func (s State) concerned(d task.Drift) string {
	for _, t := range s.Tasks {
		if t.Outcome == "" && t.concernedBy(d) {
			return t.ID
		}
	}
	return ""
}

func (t Task) concernedBy(d task.Drift) bool {
	switch d.Name {
	case task.DriftArtifact:
		return strings.HasPrefix(d.What, "tasks/"+t.ID+"/")
	case task.DriftBranch:
		return slices.ContainsFunc(t.Steps, func(st Step) bool { return st.on(d.What) })
	case task.DriftEngine, task.DriftChild:
		return slices.ContainsFunc(t.Steps, func(st Step) bool { return st.Loop != "" && st.Loop == d.What })
	case task.DriftState:
		return t.ID == d.What
	}
	return false
}

// StepOn returns the step with that branch, nil if there is none.
func (s State) StepOn(branch string) *Step {
	for _, t := range s.Tasks {
		if st := find(t.Steps, func(st Step) bool { return st.on(branch) }); st != nil {
			return st
		}
	}
	return nil
}

// on reports whether the step's loop works on that branch.
func (s Step) on(branch string) bool {
	return s.Branch != "" && (branch == s.Branch || branch == strings.TrimPrefix(s.Branch, "refs/heads/"))
}

func found(v stewardapi.Validated) string {
	text := "everything is as recorded"
	if n := len(v.Drift); n > 0 {
		text = metric.Counted(n, "difference")
	}
	if v.Remote != "" {
		text += "; " + v.Remote
	}
	return text
}
