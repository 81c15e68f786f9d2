package span

import (
	"cmp"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"pawl/internal/loop"
)

// supervise returns the spans that end with an event of a steward's task or gate. Tasks and gates overlap, so their
// spans are made only at the end, from the stored time of the beginning.
func (c *Trace) supervise(e loop.Event) []Span {
	switch e.Type {
	case loop.TaskSubmitted:
		c.since["task "+e.Task], c.since["state "+e.Task] = e.Time, e.Time
	case loop.TaskStateChanged:
		from := c.since["state "+e.Task]
		c.since["state "+e.Task] = e.Time
		return []Span{c.stretch("task "+string(e.From), from, e, text("pawl.to", string(e.To)))}
	case loop.ActionTaken:
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
	case loop.TaskEnded:
		from := c.since["task "+e.Task]
		delete(c.since, "task "+e.Task)
		delete(c.since, "state "+e.Task)
		return []Span{c.stretch("task", from, e, text("pawl.outcome", e.Outcome), text("pawl.commit", e.Commit))}
	case loop.GateOpened:
		if g := e.Gate; g != nil {
			c.since["gate "+g.ID] = e.Time
		}
	case loop.GateClosed:
		if g := e.Gate; g != nil {
			from := c.since["gate "+g.ID]
			delete(c.since, "gate "+g.ID)
			answer := cmp.Or(e.Answer, &loop.Answer{}).Message
			return []Span{c.stretch("gate "+string(g.Kind), from, e,
				text("pawl.gate", g.ID), text("pawl.hash", g.Hash), text("pawl.answer", answer))}
		}
	}
	return nil
}

// stretch returns a span of a steward that ends with an event.
func (c *Trace) stretch(name string, from time.Time, e loop.Event, attributes ...attribute.KeyValue) Span {
	if from.IsZero() || from.Before(c.open[0].Start) {
		from = c.open[0].Start
	}
	attributes = append(append(common(e), text("pawl.task", e.Task)), attributes...)
	return Span{Trace: c.trace, ID: c.id(e.Seq), Parent: c.open[0].ID, Name: name, Start: from, End: e.Time, Attributes: said(attributes...)}
}
