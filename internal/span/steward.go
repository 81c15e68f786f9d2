package span

import (
	"maps"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"pawl/internal/loop"
)

// A steward's tasks and gates overlap. So a span is made only at the end, from the stored time of the beginning.

// since has the beginnings of what has not ended, by task or gate.
type since struct {
	tasks  map[string]time.Time // when the task was submitted
	states map[string]time.Time // when the task entered its current state
	gates  map[string]time.Time
}

func init() {
	maps.Copy(transitions, map[loop.Type]func(*Trace, loop.Event) []Span{
		loop.StewardOpened: func(c *Trace, e loop.Event) []Span {
			if o := e.Opened; o != nil && !c.steward {
				c.note(ofLoop, text("pawl.kind", o.Kind), text("pawl.base", o.Base), text("pawl.host", o.Host))
			}
			c.steward = true
			return nil
		},
		loop.TaskSubmitted: func(c *Trace, e loop.Event) []Span {
			c.since.tasks[e.Task], c.since.states[e.Task] = e.Time, e.Time
			return nil
		},
		loop.TaskStateChanged: func(c *Trace, e loop.Event) []Span {
			s := c.stretch("task "+string(e.From), c.since.states[e.Task], e, text("pawl.to", string(e.To)))
			c.since.states[e.Task] = e.Time
			return []Span{s}
		},
		loop.ActionTaken: func(c *Trace, e loop.Event) []Span {
			a := e.Action
			if a == nil {
				return nil
			}
			took := a.ActiveMs
			if u := e.Usage; u != nil { // the planner's time, which does not count as executing time
				took = max(took, u.ActiveMs)
			}
			s := c.stretch("action "+a.What, e.Time.Add(-time.Duration(took)*time.Millisecond), e,
				text("pawl.step", a.Step), text("pawl.loop_id", a.Loop), text("pawl.result", a.Outcome))
			if a.Error != "" {
				s.Failed = a.Outcome
			}
			return []Span{s}
		},
		loop.TaskEnded: func(c *Trace, e loop.Event) []Span {
			s := c.stretch("task", c.since.tasks[e.Task], e, text("pawl.outcome", e.Outcome), text("pawl.commit", e.Commit))
			delete(c.since.tasks, e.Task)
			delete(c.since.states, e.Task)
			return []Span{s}
		},
		loop.StewardEnded: endLoop,
	})
}

// stretch returns a span of a steward that ends with an event.
func (c *Trace) stretch(name string, from time.Time, e loop.Event, attributes ...attribute.KeyValue) Span {
	if from.IsZero() || from.Before(c.open[0].Start) {
		from = c.open[0].Start
	}
	attributes = append(append(common(e), text("pawl.task", e.Task)), attributes...)
	return Span{Trace: c.trace, ID: c.id(e.Seq), Parent: c.open[0].ID, Name: name, Start: from, End: e.Time, Attributes: said(attributes...)}
}

// gate returns the span of a steward's gate once the gate is closed.
func (c *Trace) gate(e loop.Event) []Span {
	if e.Gate == nil {
		return nil
	}
	if e.Type == loop.GateOpened {
		c.since.gates[e.Gate.ID] = e.Time
		return nil
	}
	from := c.since.gates[e.Gate.ID]
	delete(c.since.gates, e.Gate.ID)
	answer := ""
	if e.Answer != nil {
		answer = e.Answer.Message
	}
	return []Span{c.stretch("gate "+string(e.Gate.Kind), from, e,
		text("pawl.gate", e.Gate.ID), text("pawl.hash", e.Gate.Hash), text("pawl.answer", answer))}
}
