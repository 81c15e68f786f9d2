package steward

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"

	"pawl/internal/lib/list"
	"pawl/internal/loop"
	"pawl/internal/steward/charter"
	"pawl/internal/steward/task"
)

// New returns an empty steward of that name. Its lists are empty, not nil, so that JSON shows them.
func New(name string) State {
	return State{Steward: name, Status: loop.Running, State: task.Idle, Tasks: []Task{}, Queue: []string{}, Gates: []loop.Gate{}, Drift: []task.Drift{}}
}

// At returns the state with ledger as the commit that it follows.
func (s State) At(ledger string) State { s.Ledger = ledger; return s }

// Stamp returns the event with the steward's name.
func (s State) Stamp(e loop.Event) loop.Event { e.Loop = s.Steward; return e }

// Last returns the number of the last event applied.
func (s State) Last() int64 { return s.Seq }

// Code returns the project commit of a ledger entry: the project's head.
func (s State) Code() string { return s.Base }

// Halting returns why the steward is ending, or "".
func (s State) Halting() string { return s.HaltRequested }

// Waits returns the open gate with that ID, or nil.
func (s State) Waits(id string) *loop.Gate {
	return copied(find(s.Gates, func(g loop.Gate) bool { return g.ID == id }))
}

// AnswerTo returns the answer that closed the gate with that ID, nil if there is none or it is too old to be kept.
func (s State) AnswerTo(id string) *loop.Answer {
	return copied(find(s.Answered, func(a loop.Answer) bool { return a.Gate == id }))
}

// copied returns a copy of an entry that outlives a change of its list, such as an event's.
func copied[T any](entry *T) *T {
	if entry == nil {
		return nil
	}
	return new(*entry)
}

// find returns the first entry of a list which matches, or nil.
func find[T any](list []T, matches func(T) bool) *T {
	if i := slices.IndexFunc(list, matches); i >= 0 {
		return &list[i]
	}
	return nil
}

// Apply returns the state after the event. Nothing else changes a state.
func (s State) Apply(e loop.Event) State {
	s.Seq = e.Seq
	s.Tasks = slices.Clone(s.Tasks)
	switch e.Type {
	case loop.StewardOpened:
		if o := e.Opened; o != nil {
			s.Repo, s.Base, s.Desk, s.Host = o.Repo, o.Base, o.Desk, o.Host
			s.Known = append(slices.Clip(s.Known), o.Known...)
		}
		s.Charter = cmp.Or(e.Commit, s.Charter)
		if s.StartedAt.IsZero() {
			s.StartedAt, s.Mode = e.Time, e.How
		}
	case loop.TaskSubmitted:
		s.submitted(e)
	case loop.TierSet:
		s.asksAnew(e.Gate)
	case loop.Warned:
		s.Governance = cmp.Or(e.Governance, s.Governance)
	case loop.GateOpened:
		s.Gates = append(slices.Clone(s.Gates), *e.Gate)
	case loop.GateEscalated:
		s.Gates = slices.Clone(s.Gates)
		for i := range s.Gates {
			if s.Gates[i].ID == e.Gate.ID {
				s.Gates[i].Escalated++
			}
		}
	case loop.GateClosed:
		s.Gates = slices.DeleteFunc(slices.Clone(s.Gates), func(g loop.Gate) bool { return g.ID == e.Answer.Gate })
		s.Answered = list.Last(append(slices.Clip(s.Answered), *e.Answer), KeepAnswers)
		if e.Drift != nil {
			s.Drift = slices.DeleteFunc(slices.Clone(s.Drift), func(drift task.Drift) bool { return same(drift, *e.Drift) })
			if e.Answer.Choice == Keep && e.Drift.Well == "" { // drift that has passed is asked about if it comes again
				s.Accepted = list.Last(append(slices.Clip(s.Accepted), *e.Drift), KeepAnswers)
			}
		}
	case loop.DriftFound:
		if e.Gate == nil && e.Drift.Well != "" { // what a person accepted is no more
			s.Accepted = slices.DeleteFunc(slices.Clone(s.Accepted), func(drift task.Drift) bool { return same(drift, *e.Drift) })
			break
		}
		if i := slices.IndexFunc(s.Drift, func(d task.Drift) bool { return same(d, *e.Drift) }); i < 0 {
			s.Drift = append(slices.Clip(s.Drift), *e.Drift)
		} else if e.Gate != nil {
			s.Drift = slices.Clone(s.Drift)
			s.Drift[i] = *e.Drift
		}
		s.asksAnew(e.Gate)
	case loop.StewardValidated:
		s.ValidatedAt = e.Time
		s.Base, s.Remote = cmp.Or(e.Head, s.Base), e.Remote
		if e.Missed != nil {
			s.Missed, s.Slots = e.Missed, e.Slots
		}
		s.Governance = cmp.Or(e.Governance, s.Governance)
	case loop.TriggerReceived:
		s.triggered(*e.Trigger)
	case loop.MessageReceived:
		s.received(e)
	case loop.StewardEnded:
		s.Status, s.Reason = cmp.Or(e.Status, loop.Completed), e.Reason
	}
	if t := s.Find(e.Task); t != nil {
		t.Steps, t.Ending = slices.Clone(t.Steps), slices.Clone(t.Ending) // which the state before the event has, too
		s.applied(t, e)
	}
	s.derive()
	return s
}

// asksAnew replaces the text and the choices of an open gate.
func (s *State) asksAnew(g *loop.Gate) {
	if g == nil {
		return
	}
	s.Gates = slices.Clone(s.Gates)
	for i := range s.Gates {
		if s.Gates[i].ID == g.ID {
			s.Gates[i].Summary, s.Gates[i].Choices = g.Summary, g.Choices
		}
	}
	if t := s.Find(g.Task); t != nil && t.WaitingFor != nil && t.WaitingFor.Gate == g.ID {
		w := *t.WaitingFor
		w.What, t.WaitingFor = g.Summary, &w
	}
}

// triggered records which health checks fail.
func (s *State) triggered(tr task.Trigger) {
	if tr.From != charter.Health {
		return
	}
	s.Ill = maps.Clone(s.Ill)
	if tr.Result == Healthy {
		delete(s.Ill, tr.Name)
		return
	}
	if s.Ill == nil {
		s.Ill = map[string]string{}
	}
	s.Ill[tr.Name] = tr.Task
}

func same(a, b task.Drift) bool { return a.Name == b.Name && a.What == b.What }

// Key returns the digest by which a task is recognised.
func Key(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:6])
}

func (s *State) submitted(e loop.Event) {
	submitted := e.Submitted
	s.Tasks = append(s.Tasks, Task{
		ID: submitted.ID, Title: submitted.Title, Tier: submitted.Tier, TierBy: by(e), State: task.Idle, Priority: submitted.Priority, After: submitted.After, Source: submitted.Source,
		Loops: []string{}, Submitted: e.Time, Since: e.Time,
	})
	s.TasksCount++
	s.Known = append(slices.Clip(s.Known), Known{Key: Key("id " + submitted.ID), Task: submitted.ID})
	if submitted.Dedupe != "" {
		s.Known = append(s.Known, Known{Key: Key("dedupe " + submitted.Dedupe), Task: submitted.ID})
	}
}

// by returns who set the tier that a task came with, or "".
func by(e loop.Event) string {
	switch submitted := e.Submitted; {
	case submitted.Tier == "":
		return ""
	case e.By == submitted.Source && (strings.HasPrefix(e.By, task.Scheduled) || task.Foreign(e.By)):
		return byCharter
	}
	return byPerson
}

// received applies a message to the steward. Messages about a task are applied to the task.
func (s *State) received(e loop.Event) {
	if e.Task != "" {
		return
	}
	switch e.Message {
	case MessageHold:
		s.Held = true
	case MessageResume:
		s.Held = false
	case loop.MessagePause:
		s.Paused = true
	case loop.MessageContinue:
		s.Paused = false
	case loop.MessageHalt:
		s.HaltRequested = cmp.Or(e.Reason, e.Message)
	case loop.MessageSetMode:
		s.Mode = e.How
	}
}
