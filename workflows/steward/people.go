package steward

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/workflow"

	"pawl/internal/client/launch"
	"pawl/internal/lib/list"
	"pawl/internal/lib/shell"
	"pawl/internal/lib/text/markdown"
	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/internal/loop/rules"
	"pawl/internal/metric"
	"pawl/internal/steward"
	"pawl/workflows/display"
)

// How many entries of a list a query shows. The counts beside the lists cover all entries.
const shown = 100

func (r *run) handleQueries(ctx workflow.Context) error {
	return errors.Join(
		display.Answer(ctx, "state", "The steward's state", func() (steward.State, error) { return r.standing().Shown(shown), nil }),
		display.AnswerFrom(ctx, "tasks", "All tasks, a hundred at a time; the argument, a number, is where to begin", func(offset int) launch.TasksView {
			s := r.standing()
			tasks, next := page(s.Tasks, offset)
			return launch.TasksView{Tasks: tasks, Count: len(s.Tasks), Next: next, Ledger: s.Ledger}
		}),
		display.Answer(ctx, "task", "One task; the argument is its ID", func(argument json.RawMessage) (*steward.Task, error) {
			id, err := launch.Text(argument)
			if err != nil {
				return nil, err
			}
			if t := r.standing().Find(id); t != nil {
				return t, nil
			}
			return nil, fmt.Errorf("there is no task %q", loop.Clip(id, 80))
		}),
		display.AnswerFrom(ctx, "gates", "What waits for a person, a hundred at a time; the argument, a number, is where to begin", func(offset int) launch.GatesView {
			s := r.State()
			gates, next := page(s.Gates, offset)
			return launch.GatesView{Gates: gates, Count: len(s.Gates), Next: next, Ledger: s.Ledger}
		}),
		display.AnswerEvents(ctx, r.Journal),
	)
}

// standing returns the state as people see it, with the jobs under way.
func (r *run) standing() steward.State { return r.State().Standing(r.underWay()) }

// page returns the part of a list that begins at a position, and the position of the rest.
func page[T any](list []T, offset int) (part []T, next int) {
	offset = min(max(offset, 0), len(list))
	end := min(offset+shown, len(list))
	if end < len(list) {
		next = end
	}
	return list[offset:end], next
}

// watch waits on each open gate, to remind people and to escalate. It notifies people of new gates.
func (r *run) watch(ctx workflow.Context) {
	if r.State().HaltRequested != "" {
		return
	}
	for _, g := range r.State().Gates {
		if r.watched[g.ID] {
			continue
		}
		r.watched[g.ID] = true
		if g.Escalated == 0 && !r.told[g.ID] {
			r.notify(ctx, loop.GateOpened, g.ID, g.Summary)
		}
		r.told[g.ID] = true
		workflow.Go(ctx, func(ctx workflow.Context) {
			defer delete(r.watched, g.ID)
			_ = r.keeper.Watch(ctx, g.ID)
		})
	}
}

// sleep waits for the ends of rate limits, each with its own timer. A new run makes the timers again.
func (r *run) sleep(ctx workflow.Context) {
	for _, t := range r.State().Tasks {
		if t.Until.IsZero() || t.Outcome != "" {
			continue
		}
		key := t.ID + " " + t.Until.Format(time.RFC3339Nano)
		if r.asleep[key] {
			continue
		}
		r.asleep[key] = true
		workflow.Go(ctx, func(ctx workflow.Context) {
			defer delete(r.asleep, key)
			left := max(t.Until.Sub(workflow.Now(ctx)), time.Millisecond)
			if workflow.NewTimerWithOptions(ctx, left, workflow.TimerOptions{Summary: "until the rate limit of " + markdown.Text(t.ID) + " is over"}).Get(ctx, nil) == nil {
				_ = r.follow(ctx, func(s steward.State) []loop.Event { return steward.Slept(s, t.ID, t.Until) })
			}
		})
	}
}

// notify notifies the people whom the charter names, without waiting. A failure becomes a warning.
func (r *run) notify(ctx workflow.Context, event loop.Type, gate, reason string) {
	s := r.State()
	notice := api.Notice{Loop: s.Steward, Kind: r.charter.Kind, Event: event, Status: s.Status, Reason: loop.Clip(reason, 1000), Time: workflow.Now(ctx).UTC()}
	notice = display.About(notice, s.Waits(gate), func(g loop.Gate) []rules.Way { return steward.Ways(s.Steward, g) })
	r.notifier.Tell(ctx, r.queue(), r.opened.Ref, r.charter.Notify, notice, func(ctx workflow.Context, warning string) {
		_ = r.emit(ctx, loop.Event{Type: loop.Warned, Reason: warning})
	})
}

// show keeps the current details in step with the state, for the Temporal UI and the CLI.
func (r *run) show(ctx workflow.Context) {
	workflow.SetCurrentDetails(ctx, Details(r.standing()))
	if r.opened.Attributes {
		r.attributes.Publish(ctx, launch.PublishedOfSteward(r.State()))
	}
}

// detailed is how many gates and tasks the details list: Temporal stores them with the workflow.
const detailed = 20

// Details renders a state as Markdown: what waits and exactly how to answer, then the tasks as a table.
func Details(s steward.State) string {
	var w strings.Builder
	open := s.Open()
	for _, g := range open[:min(len(open), detailed)] {
		state, about := "", ""
		if !g.OpenedAt.IsZero() {
			state = ", since " + g.OpenedAt.Format(time.RFC3339)
		}
		if g.Task != "" {
			about = " of the task " + markdown.Code(g.Task)
		}
		first, points := g.Listed()
		fmt.Fprintf(&w, "### Waiting: %s%s\n\n%s (gate %s%s)\n\n", g.Kind, about, markdown.Text(first), markdown.Code(g.ID), state)
		for i, point := range points {
			w.WriteString("- " + markdown.Text(point) + "\n")
			if i == len(points)-1 {
				w.WriteString("\n")
			}
		}
		if g.Kind == steward.GateDrift {
			w.WriteString(steward.AsFound + "\n\n")
		}
		if t := s.Find(g.Task); t != nil && g.Kind == steward.GateTier {
			w.WriteString(plan(s, *t))
		}
		w.WriteString(display.Ways(steward.Ways(s.Steward, g)))
		w.WriteString("\n")
	}
	if further := len(open) - detailed; further > 0 {
		fmt.Fprintf(&w, "%d more: see the query `gates`, or `pawl inbox`.\n\n", further)
	}
	asked := list.Filter(s.Tasks, s.AtLoop)
	for _, t := range asked[:min(len(asked), detailed)] {
		f := t.WaitingFor
		fmt.Fprintf(&w, "### Waiting at the loop %s\n\n%s (gate %s): %s says how to answer\n\n", markdown.Code(f.Loop), markdown.Text(f.What), markdown.Code(f.Gate), markdown.Code(shell.Join("pawl", "show", f.Loop)))
	}
	switch further := len(asked) - detailed; {
	case further == 1:
		w.WriteString("One more loop waits: see `pawl inbox`.\n\n")
	case further > 1:
		fmt.Fprintf(&w, "%d more loops wait: see `pawl inbox`.\n\n", further)
	}
	w.WriteString("| | |\n|---|---|\n")
	if !s.Status.Ended() {
		fmt.Fprintf(&w, "| state | %s |\n| mode | %s |\n| queue | %d |\n", string(s.State)+standing(s), markdown.Text(s.Mode), len(s.Queue))
	}
	fmt.Fprintf(&w, "| status | %s |\n| tasks | %d, done %d, cancelled %d |\n| cost | %s US dollars |\n",
		s.Status, s.TasksCount, s.Indicators.Done, s.Indicators.Cancelled, s.Usage.CostUSD)
	if len(s.Tasks) == 0 {
		return w.String()
	}
	w.WriteString("\n| task | state | tier | priority | step | actions | what |\n|---|---|---|---|---|---|---|\n")
	for _, t := range s.Foremost(detailed) {
		state := s.Position(t)
		if reason := s.StandstillOf(t, func(t time.Time) string { return t.Format(time.RFC3339) }); reason != "" {
			state += ", " + markdown.Text(reason)
		}
		fmt.Fprintf(&w, "| %s | %s | %s | %d | %s | %d | %s |\n", markdown.Text(t.ID), state, dash(string(t.Tier)), t.Priority, dash(t.Step), t.Actions, markdown.Text(loop.Clip(t.Title, 120)))
	}
	if further := len(s.Tasks) - detailed; further > 0 {
		fmt.Fprintf(&w, "\n%d more: see the query `tasks`.\n", further)
	}
	return w.String()
}

// How much of a plan the details show: steps, and of each its spec in bytes.
const (
	maxSteps    = 10
	maxStepSpec = 400
)

// plan returns the steps of the plan that a gate asks about, and where its text is: only the ledger has that.
func plan(s steward.State, t steward.Task) string {
	p := t.Plan
	if p == nil {
		return ""
	}
	var w strings.Builder
	fmt.Fprintf(&w, "The plan, %s, whose SHA-256 begins with %s:\n\n", metric.Counted(len(p.Steps), "step"), markdown.Code(p.Hash[:min(len(p.Hash), 16)]))
	for i, step := range p.Steps {
		if i == maxSteps {
			fmt.Fprintf(&w, "- and %d more\n", len(p.Steps)-i)
			break
		}
		spec := "by the steward's defaults"
		if doc, err := json.Marshal(step.Spec); err == nil && len(step.Spec) > 0 {
			spec = markdown.Code(loop.Clip(string(doc), maxStepSpec))
		}
		fmt.Fprintf(&w, "- %s (%s): %s\n", markdown.Code(step.ID), markdown.Text(step.Kind), spec)
	}
	fmt.Fprintf(&w, "\n%s prints PLAN.md. So does, in the repository, %s.\n\n",
		markdown.Code(shell.Join("pawl", "steward", "show", s.Steward, t.ID)), markdown.Code(shell.Join("git", "show", s.Ledger+":tasks/"+t.ID+"/PLAN.md")))
	return w.String()
}

// standing returns why the steward begins nothing, and the message that ends that.
func standing(s steward.State) string {
	switch {
	case s.Paused:
		return ", paused: everything goes on with `continue`"
	case s.Held:
		return ", held: tasks start again with `resume`"
	}
	return ""
}

func dash(text string) string {
	if text == "" {
		return "–"
	}
	return markdown.Text(text)
}
