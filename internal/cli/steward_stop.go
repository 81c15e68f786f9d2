package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"pawl/internal/cli/render"
	"pawl/internal/lib/list"
	"pawl/internal/loop"
	"pawl/internal/metric"
	"pawl/internal/steward"
)

// stewardStopOptions say what is stopped.
type stewardStopOptions struct {
	yes     bool // without asking
	taskID  string
	message steward.Message
}

// stewardStopCommand ends a steward, or stops one of its tasks. At a terminal it asks first if tasks are open.
func (a *app) stewardStopCommand() *cobra.Command {
	var o stewardStopOptions
	cmd := &cobra.Command{
		Use: "stop NAME [TASK]", Short: "End a steward and its loops; with a task: stop that one", Args: arguments(1, 2),
		Long: `End a steward and its loops. A steward that was stopped can't continue: "pawl steward up" starts
another one, without its open tasks. What its loops have kept stays on their branches. At a
terminal the command lists the open tasks and asks first, unless you pass --yes. To let it rest
instead, use "pawl steward pause" or "pawl steward hold".

With TASK, only that task stops: one at work waits for you, any other one is cancelled.`,
		RunE: a.brief(func(ctx context.Context, args []string) error { return a.runStewardStop(ctx, args[0], args[1:], o) }),
	}
	taskFlags(cmd, &o.message, &o.taskID)
	cmd.Flags().BoolVar(&o.yes, "yes", false, "end it without asking")
	return cmd
}

func (a *app) runStewardStop(ctx context.Context, name string, tasks []string, o stewardStopOptions) error {
	if len(tasks) == 1 {
		if o.taskID != "" || tasks[0] == "" {
			return usage("use `pawl steward stop NAME [TASK]`")
		}
		o.taskID = tasks[0]
	}
	if o.taskID == "" {
		if err := a.confirmStop(ctx, name, o.yes); err != nil {
			return err
		}
	}
	return a.sendToSteward(ctx, name, loop.MessageHalt, o.taskID, o.message)
}

// confirmStop lists the open tasks of a steward, which end with it, and asks at a terminal.
func (a *app) confirmStop(ctx context.Context, name string, yes bool) error {
	if yes || a.json {
		return nil
	}
	var open []steward.Task
	err := a.visit(ctx, func(s *session) error {
		snapshot, err := s.Stewarding(ctx, name)
		if err == nil && !snapshot.State.Status.Ended() {
			open = list.Filter(snapshot.State.Tasks, func(t steward.Task) bool { return t.Outcome == "" })
		}
		return nil // the message says what is wrong
	})
	if err != nil || len(open) == 0 {
		return err
	}
	text := fmt.Sprintf("%s of %s will not be done, and a steward that was stopped can't continue:", metric.Counted(len(open), "open task"), render.Clean(name))
	for _, t := range open[:min(len(open), maxOpen)] {
		text += fmt.Sprintf("\n  %s  %s  %s", render.Clean(t.ID), t.State, render.Clean(t.Title))
	}
	if further := len(open) - maxOpen; further > 0 {
		text += fmt.Sprintf("\n  and %d more", further)
	}
	a.say("%s", text)
	if !a.terminal() {
		return nil
	}
	return a.askAbout(ctx, nil, "", nil, "End the steward, its loops and these tasks?", "nothing was stopped")
}

// maxOpen is how many open tasks are listed before a steward is stopped.
const maxOpen = 20
