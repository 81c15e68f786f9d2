package steward

import (
	"fmt"
	"slices"

	"pawl/internal/loop"
	"pawl/internal/metric"
	"pawl/internal/steward/charter"
	"pawl/internal/steward/stuck"
	"pawl/internal/steward/task"
)

// BySteward is the author of an answer that closes a gate which nobody has to answer any more.
const BySteward = "the steward"

// MessageSettled is the message of an answer that no person gave, because the question has settled itself.
const MessageSettled = "settled"

// settle closes gates of waiting tasks whose loops have done every step meanwhile, so that these tasks continue to
// their end. This takes no decision away from a person: a new limit would change nothing, because the rest costs
// nothing. It also closes check-ins, because no check-in is due after a milestone.
func (n *next) settle() {
	for _, t := range n.Tasks {
		if t.State != task.Waiting || !t.complete() {
			continue
		}
		var reason string
		elsewhere := false
		for _, g := range n.Gates {
			switch {
			case g.Task != t.ID:
			case g.Kind == loop.GateBudget:
				reason = "the loops have done every step meanwhile, so the task needs no more money"
				n.events = append(n.events, settled(g, reason))
			case g.Kind == GateStuck && g.About == stuck.Executing:
				reason = "the loops have done every step meanwhile, so no check-in is due"
				n.events = append(n.events, settled(g, reason))
			default:
				elsewhere = true
			}
		}
		if reason != "" && !elsewhere {
			n.resume(t.ID, reason)
		}
	}
}

// settled closes a gate that nobody has to answer any more.
func settled(g loop.Gate, reason string) loop.Event {
	return closed(g, MessageSettled, "", BySteward, reason)
}

// closed returns the event of a gate that an answer closes.
func closed(g loop.Gate, message, choice, person, note string) loop.Event {
	return loop.Event{
		Type: loop.GateClosed, Task: g.Task, By: person, Note: note, Gate: &g, Message: message,
		Answer: &loop.Answer{Gate: g.ID, Message: message, Choice: choice, By: person, Note: note},
	}
}

// finish ends a task. It closes the task's gates; questions about drift no longer offer to cancel it.
func (n *next) finish(t Task, outcome, reason string) {
	for _, g := range loop.Fold(n.State, n.events).Gates {
		if g.Task == t.ID {
			n.events = append(n.events, settled(g, "the task is over: "+reason))
		}
	}
	for _, d := range n.Drift { // the question stays, but without the choice to cancel
		if d.Task == t.ID {
			d.Task = ""
			n.events = append(n.events, loop.Fold(n.State, n.events).told(d)...)
		}
	}
	ended := loop.Event{
		Type: loop.TaskEnded, Task: t.ID, Outcome: outcome, Actions: t.Actions, Reason: reason, Head: t.Head,
		Usage: usageOf(t.Cost), ExecutingMs: t.ExecutingMs,
	}
	if outcome == Done {
		ended.Commit = t.Proposal
	}
	n.events = append(n.events, ended)
}

// complete reports whether every step of the task's plan is done.
func (t Task) complete() bool {
	return len(t.Steps) > 0 && !slices.ContainsFunc(t.Steps, func(st Step) bool { return st.Status != Over })
}

// tight warns about a plan that a healthy task may not finish within limits.actions. All actions of the task count,
// whatever progress it makes (S8, S10). It returns no event if the limit leaves room.
func tight(s State, c charter.Charter, id string) []loop.Event {
	t := s.Find(id)
	if t == nil || t.Plan == nil {
		return nil
	}
	limit := c.Limits.Actions
	minimum := t.Window.Actions - t.Window.Granted
	maximum := minimum
	for _, st := range t.Plan.Steps {
		iterations := 1
		if sp, err := LoopSpec(s, c, Job{Task: id, Step: st}, "", ""); err == nil {
			iterations = max(iterations, sp.Limits.Iterations)
		}
		minimum, maximum = minimum+2, maximum+1+iterations // a loop has at least one iteration, and its end is an action too
		if len(st.After) > 1 {
			minimum, maximum = minimum+1, maximum+1 // joining their work is an action
		}
	}
	duration := ""
	switch {
	case minimum > limit:
		duration = fmt.Sprintf("takes at least %d actions", minimum)
	case maximum > limit:
		duration = fmt.Sprintf("may take up to %d actions", maximum)
	default:
		return nil
	}
	return []loop.Event{{Type: loop.Warned, Task: id, Reason: fmt.Sprintf(
		"this plan has %s and %s; the limit is %d (limits.actions). A task that exceeds it stops and asks, even if it makes progress",
		metric.Counted(len(t.Plan.Steps), "step"), duration, limit,
	)}}
}
