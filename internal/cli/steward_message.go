package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"pawl/config"
	"pawl/internal/cli/render"
	"pawl/internal/fault"
	"pawl/internal/integrations/schedule"
	"pawl/internal/lib/list"
	"pawl/internal/loop"
	"pawl/internal/metric"
	"pawl/internal/steward"
	"pawl/internal/steward/charter"
	"pawl/internal/steward/task"
)

func (a *app) submitCommand() *cobra.Command {
	var by string
	cmd := &cobra.Command{
		Use: "submit NAME FILE", Short: "Submit a task", Args: arguments(2, 2),
		Long: `Submit a task to the steward NAME. FILE is Markdown: front matter with keys of the task,
if any (id, title, priority, after, tier, plan, dedupe), then what is wanted. FILE can also
be a task as YAML, TOML or JSON. Use - for stdin. A task with the same id or the same dedupe
key as an earlier task is the same task.`,
		RunE: a.brief(func(ctx context.Context, args []string) error {
			t, err := config.LoadTask(args[1], a.in)
			if err != nil {
				return fmt.Errorf("%w: %w", errTask, err)
			}
			return a.toSteward(ctx, args[0], steward.MessageSubmit, t, steward.Message{By: by})
		}),
	}
	cmd.Flags().StringVar(&by, "by", config.User(), "who does this, for the record")
	return cmd
}

// errTask is the fault of a file that has no task or an invalid one.
var errTask = errors.New("the task is invalid")

func (a *app) stewardAnswerCommand() *cobra.Command {
	var m steward.Message
	var id string
	var approve bool
	cmd := &cobra.Command{
		Use: "answer NAME", Short: "Answer what a steward asks", Args: oneSteward,
		Long: `Answer what a steward asks: --approve with the hash of the plan, or --choice with one
of the gate's choices. ` + "`pawl steward show NAME` and `pawl inbox`" + ` print the exact commands.`,
		RunE: a.brief(func(ctx context.Context, args []string) error {
			message := loop.MessageAnswer
			switch {
			case approve == (m.Choice != ""):
				return usage("answer needs --approve or --choice; `pawl steward show " + args[0] + "` prints the commands")
			case approve && m.Hash == "":
				return usage("--approve needs --hash, the hash of the plan; `pawl steward show " + args[0] + "` prints it")
			case approve:
				message = loop.MessageApprove
			}
			return a.toSteward(ctx, args[0], message, id, m)
		}),
	}
	recordFlags(cmd, &m, &id)
	cmd.Flags().StringVar(&m.Gate, "gate", "", "the gate to answer (default: the task's)")
	cmd.Flags().StringVar(&m.Hash, "hash", "", "the hash of the plan that is approved, at least its first 16 digits")
	cmd.Flags().StringVar(&m.Choice, "choice", "", "one of the choices that the gate lists")
	cmd.Flags().BoolVar(&approve, "approve", false, "approve the plan")
	return cmd
}

// taskMessage is a command that carries a message about a task, or about the steward if it names no task.
type taskMessage struct {
	name, message, short string
	needs                bool   // it has to name a task
	value                string // the argument that follows, "" for none
	read                 func(m *steward.Message, value string) error
}

// priority is the one argument that is a number, which may be negative.
const priority = "PRIORITY"

// taskMessages are all such commands except submit, answer and extend.
var taskMessages = []taskMessage{
	{"prioritize", steward.MessagePrioritize, "Set the priority of a task; higher comes first", true, priority, func(m *steward.Message, value string) error {
		n, err := strconv.Atoi(value)
		if err != nil {
			return usage(fmt.Sprintf("the priority is %q; it has to be a whole number", value))
		}
		m.Priority = &n
		return nil
	}},
	{"tier", steward.MessageSetTier, "Set the risk of a task: T0, T1, T2 or T3", true, "TIER", func(m *steward.Message, value string) error {
		m.Tier = task.Tier(value)
		return nil
	}},
	{"steer", loop.MessageSteer, "Give guidance to the next agent call of a task", true, "NOTE", func(m *steward.Message, value string) error {
		m.Note = value
		return nil
	}},
	{"mode", loop.MessageSetMode, "Change the mode: mission runs tasks, plan only plans them, answer starts none", false, "MODE", func(m *steward.Message, value string) error {
		m.Mode = value
		return nil
	}},
	{name: "interrupt", message: steward.MessageInterrupt, short: "Do a task now; a task that is at work gives way", needs: true},
	{name: "pause", message: loop.MessagePause, short: "Pause a task, or, without a task, everything"},
	{name: "continue", message: loop.MessageContinue, short: "Resume after a pause or an intervention"},
	{name: "hold", message: steward.MessageHold, short: "Start no more tasks; with a task: leave that one in the queue"},
	{name: "resume", message: steward.MessageResume, short: "Start tasks again; with a task: allow that one to start"},
}

func (a *app) taskCommands() (all []*cobra.Command) {
	all = append(list.Map(taskMessages, a.taskCommand), a.stopCommand())
	var limits []string
	var m steward.Message
	var id string
	extend := &cobra.Command{
		Use: "extend NAME", Short: "Raise what a task may cost, when its budget is used up", Args: oneSteward,
		Long: `Raise what a task may cost: --limit costUSD=10. The limit is the new total, not an
addition.`,
		RunE: a.brief(func(ctx context.Context, args []string) (err error) {
			if len(limits) == 0 || m.Hash == "" {
				return usage("extend needs --limit with the new total and --hash; `pawl steward show " + args[0] + "` has an example")
			}
			if m.Limits, err = config.Fragment("--limit", limits); err != nil {
				return err
			}
			return a.toSteward(ctx, args[0], loop.MessageExtend, id, m)
		}),
	}
	recordFlags(extend, &m, &id)
	extend.Flags().StringVar(&m.Gate, "gate", "", "the gate to answer (default: the task's)")
	extend.Flags().StringVar(&m.Hash, "hash", "", "the gate's hash, at least its first 16 digits")
	extend.Flags().StringArrayVar(&limits, "limit", nil, "the budget and its new total, costUSD=10")
	return append(all, extend)
}

// stopCommand ends a steward, or stops one of its tasks. At a terminal it asks first if tasks are open.
func (a *app) stopCommand() *cobra.Command {
	var m steward.Message
	var id string
	var yes bool
	cmd := &cobra.Command{
		Use: "stop NAME [TASK]", Short: "End a steward and its loops; with a task: stop that one", Args: arguments(1, 2),
		Long: `End a steward and its loops. A steward that was stopped can't continue: "pawl steward up" starts
another one, without its open tasks. What its loops have kept stays on their branches. At a
terminal the command lists the open tasks and asks first, unless you pass --yes. To let it rest
instead, use "pawl steward pause" or "pawl steward hold".

With TASK, only that task stops: one at work waits for you, any other one is cancelled.`,
		RunE: a.brief(func(ctx context.Context, args []string) error {
			switch {
			case len(args) == 2 && id != "", len(args) == 2 && args[1] == "":
				return usage("use `pawl steward stop NAME [TASK]`")
			case len(args) == 2:
				id = args[1]
			}
			if id == "" {
				if err := a.confirmStop(ctx, args[0], yes); err != nil {
					return err
				}
			}
			return a.toSteward(ctx, args[0], loop.MessageHalt, id, m)
		}),
	}
	recordFlags(cmd, &m, &id)
	cmd.Flags().BoolVar(&yes, "yes", false, "end it without asking")
	return cmd
}

// confirmStop lists the open tasks of a steward, which end with it, and asks at a terminal.
func (a *app) confirmStop(ctx context.Context, name string, yes bool) error {
	if yes || a.json {
		return nil
	}
	var open []steward.Task
	err := a.visit(ctx, func(s *session) error {
		found, err := s.Stewarding(ctx, name)
		if err == nil && !found.State.Status.Ended() {
			open = list.Filter(found.State.Tasks, func(t steward.Task) bool { return t.Outcome == "" })
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
	if more := len(open) - maxOpen; more > 0 {
		text += fmt.Sprintf("\n  and %d more", more)
	}
	a.say("%s", text)
	if !a.terminal() {
		return nil
	}
	return a.askAbout(ctx, nil, "", nil, "End the steward, its loops and these tasks?", "nothing was stopped")
}

// maxOpen is how many open tasks are listed before a steward is stopped.
const maxOpen = 20

// taskCommand makes one command of the table. The task may be an argument, or --task. mode is for the whole steward.
func (a *app) taskCommand(t taskMessage) *cobra.Command {
	var m steward.Message
	var id string
	cmd := &cobra.Command{Use: t.name + " NAME", Short: t.short, Args: arguments(1, -1)}
	ofTask := t.needs || t.value == ""
	switch {
	case t.needs:
		cmd.Use += " TASK"
	case ofTask:
		cmd.Use += " [TASK]"
	}
	if t.value != "" {
		cmd.Use += " " + t.value
	}
	cmd.RunE = a.brief(func(ctx context.Context, args []string) error {
		name, rest := args[0], args[1:]
		if id == "" && len(rest) > 0 && ofTask {
			id, rest = rest[0], rest[1:]
		}
		if (t.value == "") != (len(rest) == 0) || t.needs && id == "" {
			return usage("use `pawl steward " + cmd.Use + "`")
		}
		if t.value != "" {
			if err := t.read(&m, strings.Join(rest, " ")); err != nil {
				return err
			}
		}
		return a.toSteward(ctx, name, t.message, id, m)
	})
	if t.value == priority {
		cmd.Annotations = map[string]string{takesNumber: t.value}
	}
	if ofTask {
		recordFlags(cmd, &m, &id)
	} else {
		recordFlags(cmd, &m, nil)
	}
	return cmd
}

// recordFlags adds the flags of all messages, and --task if the message may be about a task.
func recordFlags(cmd *cobra.Command, m *steward.Message, id *string) {
	cmd.Flags().StringVar(&m.By, "by", config.User(), "who does this, for the record")
	cmd.Flags().StringVar(&m.Note, "note", "", "why, for the record")
	if id != nil {
		cmd.Flags().StringVar(id, "task", "", "the ID of the task")
	}
}

// toSteward sends a message about a task: a new one, or the ID of one, "" for none.
func (a *app) toSteward(ctx context.Context, name, message string, task any, m steward.Message) (err error) {
	if task != "" {
		if m.Task, err = json.Marshal(task); err != nil {
			return err
		}
	}
	return a.visit(ctx, func(s *session) error {
		sent, err := s.SendTask(ctx, name, message, m)
		over := err == nil || fault.CodeOf(err) == fault.GateClosed
		if over && !sent.Untold && s.SDK != nil && message == loop.MessageHalt && m.Task == nil { // its schedules have no steward
			if err := schedule.Remove(ctx, s.SDK.ScheduleClient(), charter.Charter{Name: name}); err != nil {
				a.say("the schedules of %s could not be removed: %v", render.Clean(name), err)
			}
		}
		if err != nil {
			return err
		}
		return a.reportSent(s, sent)
	})
}
