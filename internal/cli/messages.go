package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"pawl/config"
	"pawl/internal/fault"
	"pawl/internal/govern"
	"pawl/internal/loop"
	"pawl/internal/spec"
	"pawl/internal/ui"
)

// messageCommands are the commands that carry a message to a loop.
func (a *app) messageCommands() []*cobra.Command {
	m := loop.Message{}
	flags := func(cmd *cobra.Command, names ...string) *cobra.Command {
		cmd.Flags().StringVar(&m.By, "by", config.User(), "who says so")
		cmd.Flags().StringVar(&m.Gate, "gate", "", "the gate that is meant (default: the one that is open)")
		for _, name := range names {
			switch name {
			case "hash":
				cmd.Flags().StringVar(&m.Hash, "hash", "", "the hash of what is approved, at least its first 16 digits")
			case "note":
				cmd.Flags().StringVar(&m.Note, "note", "", "why, for the record")
			}
		}
		return cmd
	}
	simple := func(use, short string) *cobra.Command {
		name, _, _ := strings.Cut(use, " ")
		return flags(&cobra.Command{
			Use: use, Short: short, Args: oneLoop,
			RunE: a.brief(func(ctx context.Context, args []string) error { return a.message(ctx, args[0], name, m) }),
		}, "note")
	}
	reject := simple("reject ID", "Refuse what waits at a gate")
	reject.Flags().StringVar(&m.Hash, "hash", "", "the hash of what is refused")
	answer := flags(&cobra.Command{
		Use: "answer ID CHOICE", Short: "Answer a question", Args: cobra.RangeArgs(1, 2),
		RunE: a.brief(func(ctx context.Context, args []string) error {
			if len(args) > 1 {
				m.Choice = args[1]
			}
			return a.message(ctx, args[0], "answer", m)
		}),
	}, "note")
	answer.Flags().StringVar(&m.Choice, "choice", "", "the same as CHOICE")
	approve := flags(&cobra.Command{
		Use: "approve ID", Short: "Approve what waits at a gate, by its hash", Args: oneLoop,
		Long: `Approve what waits at a gate, by its hash. At a terminal and without --hash it is shown
first, and you are asked. With --apply an approved change is brought onto the branch that the loop
started from at once, as ` + "`pawl apply`" + ` does at any time later.`,
		RunE: a.brief(func(ctx context.Context, args []string) error { return a.approve(ctx, args[0], m) }),
	}, "hash", "note")
	approve.Flags().StringVar(&m.Apply, "apply", "", "apply what is approved too: ff, merge or squash")
	var limits, sets []string
	extend := flags(&cobra.Command{
		Use: "extend ID", Short: "Raise a budget that is used up", Args: oneLoop,
		Long: `Raise a budget that is used up: --limit iterations=20 --limit activeTime=1h. A limit is the whole
of it from now on, not what is added. At a terminal and without --hash the gate is shown first, and
you are asked.`,
		RunE: a.brief(func(ctx context.Context, args []string) error { return a.extend(ctx, args[0], limits, m) }),
	}, "hash", "note")
	extend.Flags().StringArrayVar(&limits, "limit", nil, "a budget and what it is from now on, such as iterations=20 (may be repeated)")
	amend := flags(&cobra.Command{
		Use: "amend ID", Short: "Correct a command that is at fault", Args: oneLoop,
		Long: `Correct a command that is at fault, where the loop asks about one:
--set verify.command='./measure.sh --fast'. The amended contract has a hash of its own and is to be
approved next. What may be amended: ` + strings.Join(spec.Amendable, ", ") + `.`,
		RunE: a.brief(func(ctx context.Context, args []string) error { return a.amend(ctx, args[0], sets, m) }),
	}, "note")
	amend.Flags().StringArrayVar(&sets, "set", nil, "a key of the spec and its value (may be repeated)")
	return []*cobra.Command{
		approve,
		reject,
		extend,
		amend,
		flags(&cobra.Command{
			Use: "mode ID MODE", Short: "Change the mode; away from mission ends the loop for good", Args: cobra.ExactArgs(2),
			Long: `Change a loop's mode (answer, plan or mission). Away from mission the loop ends for good, with its
report: autonomy is given up, not paused. This is the message setMode.`,
			RunE: a.brief(func(ctx context.Context, args []string) error {
				m.Mode = args[1]
				return a.message(ctx, args[0], "setMode", m)
			}),
		}, "note"),
		simple("pause ID", "Pause a loop; the step that is running is interrupted and repeated on continue"),
		simple("continue ID", "Go on after a pause, a breakpoint or a block"),
		simple("halt ID", "End a loop for good, with its report"),
		flags(&cobra.Command{
			Use: "steer ID NOTE...", Short: "Guidance for the next agent call", Args: cobra.MinimumNArgs(1),
			RunE: a.brief(func(ctx context.Context, args []string) error {
				if len(args) > 1 {
					m.Note = strings.Join(args[1:], " ")
				}
				return a.message(ctx, args[0], "steer", m)
			}),
		}, "note"),
		answer,
	}
}

// oneLoop is the argument of most commands: the ID of a loop.
func oneLoop(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("%s needs the ID of one loop; `pawl list` has them", cmd.CommandPath())
	}
	return nil
}

// message sends a message and says what came of it.
func (a *app) message(ctx context.Context, id, name string, m loop.Message) error {
	s, err := a.visit(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	if name == "reject" {
		if sent, done, err := s.review(ctx, id, name, m); done {
			return a.reportReview(s, sent, err)
		}
	}
	sent, err := s.send(ctx, id, name, m)
	if err != nil {
		return err
	}
	return a.reportSent(s, sent)
}

func (a *app) reportReview(s *session, sent Sent, err error) error {
	if err != nil {
		return err
	}
	return a.reportSent(s, sent)
}

func (a *app) reportSent(s *session, sent Sent) error {
	if sent.Via == "signal" {
		a.say("no worker answered, so %s was sent as a signal; it takes effect when a worker runs (%s)", sent.Message, s.aWorker())
	}
	if a.json {
		return a.printJSON(sent)
	}
	if sent.Reply != "" {
		return a.print(sent.Loop + ": " + ui.Clean(sent.Reply))
	}
	return nil
}

// extend raises budgets: by the gate's hash, or shows what waits and asks.
func (a *app) extend(ctx context.Context, id string, limits []string, m loop.Message) error {
	if len(limits) == 0 {
		return usage("extend needs --limit: what is the budget from now on? `pawl show " + id + "` has an example")
	}
	if m.Hash == "" && !a.terminal() {
		return usage("extend needs --hash: which gate is meant must be named; `pawl show " + id + "` has it")
	}
	var err error
	if m.Limits, err = config.Fragment("--limit", limits); err != nil {
		return err
	}
	s, err := a.visit(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	if m.Hash == "" {
		if m, err = a.look(ctx, s, id, "Extend so?", m); err != nil {
			return err
		}
	}
	sent, err := s.send(ctx, id, "extend", m)
	if err != nil {
		return err
	}
	return a.reportSent(s, sent)
}

// amend sends a corrected command.
func (a *app) amend(ctx context.Context, id string, sets []string, m loop.Message) error {
	if len(sets) == 0 {
		return usage("amend needs --set: what is to be corrected? For example --set 'verify.command=…'")
	}
	var err error
	if m.Spec, err = config.Fragment("--set", sets); err != nil {
		return err
	}
	return a.message(ctx, id, "amend", m)
}

// approve approves by hash, or shows what waits and asks.
func (a *app) approve(ctx context.Context, id string, m loop.Message) error {
	if m.Apply != "" && !slices.Contains(govern.AppliedAtOnce, m.Apply) {
		return usage("--apply is one of " + strings.Join(govern.AppliedAtOnce, ", "))
	}
	if m.Hash == "" && !a.terminal() {
		return usage("approve needs --hash: what is approved must be named; `pawl show " + id + "` has it")
	}
	s, err := a.visit(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	if p, _, over := s.proposed(ctx, id); over && m.Gate == "" && m.Hash == "" {
		if err := a.lookAtProposal(ctx, s, id, p); err != nil {
			return err
		}
		m.Hash = p.Hash
	}
	if sent, done, err := s.review(ctx, id, "approve", m); done {
		if err == nil && m.Apply != "" {
			return a.applyReviewed(ctx, s, m, sent)
		}
		return a.reportReview(s, sent, err)
	}
	if m.Hash == "" {
		if m, err = a.look(ctx, s, id, "Approve?", m); err != nil {
			return err
		}
	}
	sent, err := s.send(ctx, id, "approve", m)
	if err != nil {
		return err
	}
	return a.reportSent(s, sent)
}

// look shows what waits and asks; the answer carries the hash of what was shown.
func (a *app) look(ctx context.Context, s *session, id, question string, m loop.Message) (loop.Message, error) {
	if s.client == nil {
		return m, noEngine()
	}
	if err := s.alive(ctx, id); err != nil {
		return m, err
	}
	g, err := s.gate(ctx, id)
	switch {
	case err != nil && ctx.Err() != nil:
		return m, context.Cause(ctx)
	case err != nil:
		return m, fault.New(fault.EngineUnreachable, "no worker answers, so what waits can't be shown").
			Advise("Start one (" + s.aWorker() + "), or approve by --hash.")
	case g == nil:
		return m, fault.New(fault.GateClosed, "no gate is open: there is nothing to approve")
	}
	a.showGate(ctx, s, id, *g)
	m.Hash, m.Gate = g.Hash, g.ID
	return m, a.ask(ctx, question, "not answered; the loop goes on waiting")
}

// ask wants a yes.
func (a *app) ask(ctx context.Context, question, otherwise string) error {
	answers := make(chan string, 1)
	go func() { answers <- readLine(a.in) }()
	a.screen.Ask(question + " [y/N] ")
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case line := <-answers:
		if !yes(line) {
			return &leaving{code: exitInterrupted, why: otherwise}
		}
	}
	return nil
}

// showGate shows what waits, whole where it is a contract.
func (a *app) showGate(ctx context.Context, s *session, id string, g loop.Gate) {
	style := a.screen.Style()
	if g.Kind == loop.GateContract {
		if c, err := s.contract(ctx, id); err == nil {
			a.screen.Print("\n" + style.Contract(c) + "\n")
			return
		} else if !errors.Is(err, context.Canceled) {
			a.say("the contract can't be shown: %v", err)
		}
	}
	if g.Kind == loop.GateDiff {
		a.showProposal(ctx, s, id)
	}
	var state loop.State
	_ = s.query(ctx, workerTimeout, id, &state, "state") // without it only an example's number is missing
	a.screen.Print("\n" + style.Gate(id, g, state.Budget, a.deps.Now()) + "\n")
}

func yes(line string) bool {
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return true
	}
	return false
}
