package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"pawl/config"
	"pawl/internal/loop"
	"pawl/internal/steward"
	"pawl/internal/steward/task"
)

// taskMessage is a command that carries a message about a task, or about the steward if it names no task.
type taskMessage struct {
	name      string
	message   string
	short     string
	needsTask bool
	argument  string // what follows the task, "" for nothing
	read      func(m *steward.Message, argument string) error
}

// priority is the one argument that is a number, which may be negative.
const priority = "PRIORITY"

// taskMessages are the commands that only carry a message. The others have files of their own: answer, extend, stop and
// submit.
var taskMessages = []taskMessage{
	{
		name: "prioritize", message: steward.MessagePrioritize, short: "Set the priority of a task; higher comes first",
		needsTask: true, argument: priority, read: readPriority,
	},
	{
		name: "tier", message: steward.MessageSetTier, short: "Set the risk of a task: T0, T1, T2 or T3",
		needsTask: true, argument: "TIER", read: readTier,
	},
	{
		name: "steer", message: loop.MessageSteer, short: "Give guidance to the next agent call of a task",
		needsTask: true, argument: "NOTE", read: readNote,
	},
	{
		name: "mode", message: loop.MessageSetMode, short: "Change the mode: mission runs tasks, plan only plans them, answer starts none",
		argument: "MODE", read: readMode,
	},
	{
		name: "interrupt", message: steward.MessageInterrupt, short: "Do a task now; a task that is at work gives way",
		needsTask: true,
	},
	{name: "pause", message: loop.MessagePause, short: "Pause a task, or, without a task, everything"},
	{name: "continue", message: loop.MessageContinue, short: "Resume after a pause or an intervention"},
	{name: "hold", message: steward.MessageHold, short: "Start no more tasks; with a task: leave that one in the queue"},
	{name: "resume", message: steward.MessageResume, short: "Start tasks again; with a task: allow that one to start"},
}

func readPriority(m *steward.Message, argument string) error {
	n, err := strconv.Atoi(argument)
	if err != nil {
		return usage(fmt.Sprintf("the priority is %q; it has to be a whole number", argument))
	}
	m.Priority = &n
	return nil
}

func readTier(m *steward.Message, argument string) error {
	m.Tier = task.Tier(argument)
	return nil
}

func readNote(m *steward.Message, argument string) error {
	m.Note = argument
	return nil
}

func readMode(m *steward.Message, argument string) error {
	m.Mode = argument
	return nil
}

// mayNameTask reports whether the message may be about a task: only one with an argument and no task can't, the mode.
func (t taskMessage) mayNameTask() bool { return t.needsTask || t.argument == "" }

// use is the usage line of the command.
func (t taskMessage) use() string {
	use := t.name + " NAME"
	switch {
	case t.needsTask:
		use += " TASK"
	case t.mayNameTask():
		use += " [TASK]"
	}
	if t.argument != "" {
		use += " " + t.argument
	}
	return use
}

// taskOptions are the flags of such a command.
type taskOptions struct {
	taskID  string // if it is not an argument
	message steward.Message
}

func (a *app) taskCommand(t taskMessage) *cobra.Command {
	var o taskOptions
	cmd := &cobra.Command{
		Use: t.use(), Short: t.short, Args: arguments(1, -1),
		RunE: a.brief(func(ctx context.Context, args []string) error { return a.runTask(ctx, t, args, o) }),
	}
	if t.argument == priority {
		cmd.Annotations = map[string]string{takesNumber: t.argument}
	}
	if t.mayNameTask() {
		taskFlags(cmd, &o.message, &o.taskID)
	} else {
		taskFlags(cmd, &o.message, nil)
	}
	return cmd
}

func (a *app) runTask(ctx context.Context, t taskMessage, args []string, o taskOptions) error {
	name, rest := args[0], args[1:]
	if o.taskID == "" && len(rest) > 0 && t.mayNameTask() {
		o.taskID = rest[0]
		rest = rest[1:]
	}
	hasArgument := len(rest) > 0
	lacksTask := t.needsTask && o.taskID == ""
	if lacksTask || hasArgument != (t.argument != "") {
		return usage("use `pawl steward " + t.use() + "`")
	}
	if hasArgument {
		if err := t.read(&o.message, strings.Join(rest, " ")); err != nil {
			return err
		}
	}
	return a.sendToSteward(ctx, name, t.message, o.taskID, o.message)
}

// taskFlags adds the flags of all messages, and --task if the message may be about a task.
func taskFlags(cmd *cobra.Command, m *steward.Message, taskID *string) {
	cmd.Flags().StringVar(&m.By, "by", config.User(), "who does this, for the record")
	cmd.Flags().StringVar(&m.Note, "note", "", "why, for the record")
	if taskID != nil {
		cmd.Flags().StringVar(taskID, "task", "", "the ID of the task")
	}
}
