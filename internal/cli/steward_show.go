package cli

import (
	"context"

	"github.com/spf13/cobra"

	"pawl/internal/client"
	"pawl/internal/fault"
	"pawl/internal/steward"
)

func (a *app) stewardShowCommand() *cobra.Command {
	return &cobra.Command{
		Use: "show NAME [TASK]", Short: "Show a steward: what waits, its tasks and its metrics", Args: arguments(1, 2),
		Long: `Show a steward: what waits for a person and how to answer, its tasks, its indicators,
what was spent, and where record and project differ. With TASK, everything of that task.
--json prints the complete state. If no engine answers, it shows what the ledger last
recorded.`,
		RunE: a.visiting(func(ctx context.Context, s *session, args []string) error {
			return a.showSteward(ctx, s, args[0], args[1:])
		}),
	}
}

func (a *app) showSteward(ctx context.Context, s *session, name string, tasks []string) error {
	r, err := s.Stewarding(ctx, name)
	if err != nil {
		return err
	}
	a.fromLedger(r.Source, r.State.Status)
	if len(tasks) == 0 {
		if a.json {
			if !r.Ledger {
				if r.State, err = s.Complete(ctx, name, r.State); err != nil {
					return s.Unreachable(ctx, err)
				}
			}
			return a.printJSON(struct {
				Loop string `json:"loop"` // the ID, as in a list
				steward.State
				Trouble string   `json:"trouble,omitempty"`
				Mended  []string `json:"mended,omitempty"`
			}{r.State.Steward, r.State, r.Trouble, r.Mended})
		}
		return a.printAbout(r.State.Steward, r.Source, a.style().Steward(r.State, a.deps.Now()))
	}
	t := r.State.Find(tasks[0])
	if t == nil && !r.Ledger {
		if t, err = s.Task(ctx, name, tasks[0]); err != nil { // the state lacks some of very many tasks
			return s.Unreachable(ctx, err)
		}
	}
	if t == nil {
		return fault.New(fault.LoopNotFound, "the steward %s has no task %s", name, tasks[0]).
			Advise("List its tasks with `pawl steward show " + name + "`. It keeps only the last of those that are over; `pawl log " + name + "` has all.")
	}
	body := s.TaskBody(ctx, name, t.ID)
	if a.json {
		return a.printJSON(struct {
			*steward.Task
			Body    string `json:"body,omitempty"` // what was submitted
			Trouble string `json:"trouble,omitempty"`
		}{t, body, r.Trouble})
	}

	text := a.style().Task(r.State, *t, a.deps.Now())
	plan := ""
	if t.Plan != nil {
		plan = s.Plan(ctx, name, t.ID, t.Plan.Hash)
	}
	if submitted := a.style().Submitted(t.Title, body, plan); submitted != "" {
		text += "\n\n" + submitted
	}
	if t.Plan != nil {
		text += "\n\n" + a.style().Plan(r.State, *t, plan)
	}
	return a.printAbout(r.State.Steward, client.Source{Trouble: r.Trouble}, text)
}
