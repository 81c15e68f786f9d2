package stewarding

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"pawl/internal/act"
	"pawl/internal/govern"
	"pawl/internal/loop"
	"pawl/internal/spec"
	"pawl/internal/steward"
	"pawl/internal/task"
)

// How many entries of a list a query shows; the counts beside them are of all.
const shown = 100

// TasksView is what the query `tasks` answers: tasks from a position on, and how many there are.
type TasksView struct {
	Tasks  []steward.Task `json:"tasks"`
	Count  int            `json:"count"`
	Next   int            `json:"next,omitempty"` // where the rest begins, 0 where there is none
	Ledger string         `json:"ledger"`
}

// GatesView is what the query `gates` answers.
type GatesView struct {
	Gates  []loop.Gate `json:"gates"`
	Count  int         `json:"count"`
	Ledger string      `json:"ledger"`
}

// EventsView is what the query `events` answers: the last ones, those after a sequence number where one
// is given.
type EventsView struct {
	Events []loop.Event `json:"events"`
	Seq    int64        `json:"seq"`
	Ledger string       `json:"ledger"`
}

func (r *run) handleQueries(ctx workflow.Context) error {
	queries := []struct {
		name, description string
		handler           any
	}{
		{"state", "The steward's state", func() (steward.State, error) { return r.State().Shown(shown), nil }},
		{"tasks", "All tasks, a hundred at a time; the argument, a number, is where to begin", func(from int) (TasksView, error) {
			s := r.State()
			from = min(max(from, 0), len(s.Tasks))
			to := min(from+shown, len(s.Tasks))
			v := TasksView{Tasks: s.Tasks[from:to], Count: len(s.Tasks), Ledger: s.Ledger}
			if to < len(s.Tasks) {
				v.Next = to
			}
			return v, nil
		}},
		{"task", "One task; the argument is its ID", func(id string) (*steward.Task, error) {
			if t := r.State().Find(id); t != nil {
				return t, nil
			}
			return nil, fmt.Errorf("there is no task %q", loop.Clip(id, 80))
		}},
		{"gates", "What waits for a person", func() (GatesView, error) {
			s := r.State()
			return GatesView{s.Gates[:min(shown, len(s.Gates))], len(s.Gates), s.Ledger}, nil
		}},
		{"events", "The last events; the argument, a number, asks for those after it", func(after int64) (EventsView, error) {
			return EventsView{r.Since(after), r.State().Seq, r.Ledger()}, nil
		}},
	}
	for _, q := range queries {
		if err := workflow.SetQueryHandlerWithOptions(ctx, q.name, q.handler, workflow.QueryHandlerOptions{Description: q.description}); err != nil {
			return err
		}
	}
	return nil
}

// watch waits on each gate that is open, to remind and to escalate. People are told of new ones.
func (r *run) watch(ctx workflow.Context) {
	for _, g := range r.State().Gates {
		if r.watched[g.ID] {
			continue
		}
		r.watched[g.ID] = true
		if g.Escalated == 0 {
			r.notify(ctx, loop.GateOpened, g.ID, g.Summary)
		}
		workflow.Go(ctx, func(ctx workflow.Context) {
			defer delete(r.watched, g.ID)
			_ = r.keeper.Watch(ctx, g.ID)
		})
	}
}

// Telling somebody is bounded: a steward that ends waits for it.
const (
	notifyAttempt = 40 * time.Second
	notifyBound   = 3 * time.Minute
)

var notifyRetries = &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumAttempts: 3}

// notify tells whom the charter names, and waits for nobody. Where that fails it is a warning.
func (r *run) notify(ctx workflow.Context, event loop.Type, gate, reason string) {
	s := r.State()
	notice := act.Notice{
		Loop: s.Steward, Kind: r.charter.Kind, Event: event, Status: s.Status, How: []act.How{}, Reason: loop.Clip(reason, 1000), Time: workflow.Now(ctx).UTC(),
	}
	if g := s.Waits(gate); g != nil {
		notice.Gate = &act.NoticeGate{ID: g.ID, Kind: g.Kind, Summary: g.Summary, Hash: g.Hash, Answers: g.Answers}
		for _, w := range steward.Ways(s.Steward, *g) {
			notice.How = append(notice.How, act.How{Answer: w.Message, Payload: w.Payload, Command: w.Command})
		}
	}
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	for _, to := range r.charter.Notify {
		r.telling++
		workflow.Go(ctx, func(ctx workflow.Context) {
			defer func() { r.telling-- }()
			o := r.options(act.NotifyName, string(event)+": tell "+spec.Addressee(to))
			o.StartToCloseTimeout, o.ScheduleToCloseTimeout, o.HeartbeatTimeout, o.RetryPolicy = notifyAttempt, notifyBound, 0, notifyRetries
			err := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, o), act.NotifyName, act.Notify{Ref: r.opened.Ref, To: to, Notice: notice}).Get(ctx, nil)
			if err != nil {
				_ = r.emit(ctx, loop.Event{Type: loop.Warned, Reason: loop.Clip(spec.Addressee(to)+" could not be told: "+plain(err), 500)})
			}
		})
	}
}

// plain is an error in words, without what Temporal wraps around it.
func plain(err error) string {
	var app *temporal.ApplicationError
	var late *temporal.TimeoutError
	switch {
	case errors.As(err, &app):
		return app.Message()
	case errors.As(err, &late):
		return "no host took it in time"
	}
	return err.Error()
}

// show keeps the current details in step with the state, for the Temporal UI and the CLI.
func (r *run) show(ctx workflow.Context) {
	workflow.SetCurrentDetails(ctx, Details(r.State()))
}

// details are bounded: Temporal keeps them with the workflow.
const detailed = 20

// Details renders a state as Markdown: what waits and exactly how to answer, then the tasks as a table.
func Details(s steward.State) string {
	var w strings.Builder
	for i, g := range s.Gates {
		if i == detailed {
			fmt.Fprintf(&w, "%d more gates wait: see the query `gates`, or `pawl inbox`.\n\n", len(s.Gates)-detailed)
			break
		}
		fmt.Fprintf(&w, "### Waiting: %s\n\n%s (gate `%s`, since %s)\n\n", g.Kind, cell(g.Summary), g.ID, g.OpenedAt.Format(time.RFC3339))
		w.WriteString("| answer | signal or update, JSON input | shell |\n|---|---|---|\n")
		for _, way := range steward.Ways(s.Steward, g) {
			w.WriteString(wayRow(way))
		}
		w.WriteString("\n")
	}
	for _, t := range s.Tasks {
		if f := t.WaitingFor; f != nil && f.Loop != "" {
			fmt.Fprintf(&w, "### Waiting at the loop `%s`\n\n%s (gate `%s`): `pawl show %s` says how to answer\n\n", f.Loop, cell(f.What), f.Gate, f.Loop)
		}
	}
	fmt.Fprintf(&w, "| | |\n|---|---|\n| state | %s |\n| status | %s |\n| queue | %d |\n| tasks | %d, done %d, cancelled %d |\n| cost | %s US dollars |\n",
		s.State, s.Status, len(s.Queue), s.TasksCount, s.Indicators.Done, s.Indicators.Cancelled, s.Usage.CostUSD)
	if len(s.Tasks) == 0 {
		return w.String()
	}
	w.WriteString("\n| task | state | tier | priority | step | actions | what |\n|---|---|---|---|---|---|---|\n")
	for i, t := range active(s.Tasks) {
		if i == detailed {
			fmt.Fprintf(&w, "\n%d more: see the query `tasks`.\n", len(s.Tasks)-detailed)
			break
		}
		state := string(t.State)
		if t.Outcome != "" {
			state = t.Outcome
		}
		fmt.Fprintf(&w, "| %s | %s | %s | %d | %s | %d | %s |\n", cell(t.ID), state, dash(string(t.Tier)), t.Priority, dash(t.Step), t.Actions, cell(loop.Clip(t.Title, 120)))
	}
	return w.String()
}

// active are the tasks with those first that are at work or wait, the newest that are over at last.
func active(tasks []steward.Task) (all []steward.Task) {
	var over []steward.Task
	for _, t := range tasks {
		if t.Outcome == "" {
			if t.State != task.Idle {
				all = append(all, t)
			}
		} else {
			over = append([]steward.Task{t}, over...)
		}
	}
	for _, t := range tasks {
		if t.Outcome == "" && t.State == task.Idle {
			all = append(all, t)
		}
	}
	return append(all, over...)
}

func wayRow(way govern.Way) string {
	payload, err := json.Marshal(way.Payload)
	if err != nil {
		payload = []byte("{}") // only plain values are in it
	}
	return fmt.Sprintf("| %s | `%s` with `%s` | `%s` |\n", cell(way.What), way.Message, cell(string(payload)), cell(way.Command))
}

func dash(text string) string {
	if text == "" {
		return "–"
	}
	return cell(text)
}

// cell makes text safe for a Markdown table: one line, no column breaks.
func cell(text string) string {
	return strings.NewReplacer("|", "\\|", "\n", " ", "\r", " ").Replace(text)
}
