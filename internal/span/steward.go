package span

import (
	"time"

	"pawl/internal/loop"
)

// A steward's tasks and gates overlap: their spans are made when they end, out of when they began.

// since is what of a steward has begun and not ended.
type since struct {
	tasks  map[string]time.Time // submitted
	states map[string]time.Time // in the state that the task is in
	gates  map[string]time.Time
}

func init() {
	for kind, step := range map[loop.Type]func(*Trace, loop.Event) []Span{
		loop.StewardOpened: func(c *Trace, e loop.Event) []Span {
			if o := e.Opened; o != nil && !c.steward {
				c.note(ofLoop, Attribute{"pawl.kind", o.Kind}, Attribute{"pawl.base", o.Base}, Attribute{"pawl.host", o.Host})
			}
			c.steward = true
			return nil
		},
		loop.TaskSubmitted: func(c *Trace, e loop.Event) []Span {
			c.since.tasks = noted(c.since.tasks, e.Task, e.Time)
			c.since.states = noted(c.since.states, e.Task, e.Time)
			return nil
		},
		loop.TaskStateChanged: func(c *Trace, e loop.Event) []Span {
			s := c.stretch("task "+string(e.From), c.since.states[e.Task], e, Attribute{"pawl.to", string(e.To)})
			c.since.states = noted(c.since.states, e.Task, e.Time)
			return []Span{s}
		},
		loop.ActionTaken: func(c *Trace, e loop.Event) []Span {
			a := e.Action
			if a == nil {
				return nil
			}
			took := a.ActiveMs
			if u := e.Usage; u != nil { // a planner's, which is no executing time
				took = max(took, u.ActiveMs)
			}
			s := c.stretch("action "+a.What, e.Time.Add(-time.Duration(took)*time.Millisecond), e,
				Attribute{"pawl.step", a.Step}, Attribute{"pawl.loop_id", a.Loop}, Attribute{"pawl.result", a.Outcome})
			if a.Error != "" {
				s.Failed = a.Outcome
			}
			return []Span{s}
		},
		loop.TaskEnded: func(c *Trace, e loop.Event) []Span {
			s := c.stretch("task", c.since.tasks[e.Task], e, Attribute{"pawl.outcome", e.Outcome}, Attribute{"pawl.commit", e.Commit})
			delete(c.since.tasks, e.Task)
			delete(c.since.states, e.Task)
			return []Span{s}
		},
		loop.StewardEnded: endLoop,
	} {
		transitions[kind] = step
	}
}

func noted(m map[string]time.Time, key string, at time.Time) map[string]time.Time {
	if m == nil {
		m = map[string]time.Time{}
	}
	m[key] = at
	return m
}

// stretch is a span of a steward that ends with an event.
func (c *Trace) stretch(name string, from time.Time, e loop.Event, attributes ...Attribute) Span {
	if from.IsZero() || from.Before(c.open[0].Start) {
		from = c.open[0].Start
	}
	s := Span{Trace: c.trace, ID: c.id(e.Seq), Parent: c.open[0].ID, Name: name, Start: from, End: e.Time}
	s.Attributes = append(append(common(e), said(Attribute{"pawl.task", e.Task})...), said(attributes...)...)
	return s
}

// gate is the span of a steward's gate, once it is closed.
func (c *Trace) gate(e loop.Event) []Span {
	if e.Gate == nil {
		return nil
	}
	if e.Type == loop.GateOpened {
		c.since.gates = noted(c.since.gates, e.Gate.ID, e.Time)
		return nil
	}
	from := c.since.gates[e.Gate.ID]
	delete(c.since.gates, e.Gate.ID)
	answer := ""
	if e.Answer != nil {
		answer = e.Answer.Message
	}
	return []Span{c.stretch("gate "+string(e.Gate.Kind), from, e, Attribute{"pawl.gate", e.Gate.ID}, Attribute{"pawl.hash", e.Gate.Hash}, Attribute{"pawl.answer", answer})}
}
