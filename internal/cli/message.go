package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"pawl/config"
	"pawl/internal/cli/render"
	"pawl/internal/client"
	"pawl/internal/fault"
	"pawl/internal/lib/shell"
	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/internal/loop/rules"
	"pawl/internal/spec"
)

// messageCommands are the commands that carry a message to a loop.
func (a *app) messageCommands() (all []*cobra.Command) {
	var m loop.Message
	var limits, sets []string
	add := func(use, short, long string, args cobra.PositionalArgs, do func(context.Context, []string) error) *cobra.Command {
		cmd := &cobra.Command{Use: use, Short: short, Long: long, Args: args, RunE: a.brief(do)}
		cmd.Flags().StringVar(&m.By, "by", config.User(), "who does this, for the record")
		if rules.AnswersGates(cmd.Name()) {
			cmd.Flags().StringVar(&m.Gate, "gate", "", "the gate to answer (default: the open one)")
		}
		cmd.Flags().StringVar(&m.Note, "note", "", "why, for the record")
		all = append(all, cmd)
		return cmd
	}
	send := func(name string, u unnamed) func(context.Context, []string) error {
		return a.naming(u, func(ctx context.Context, args []string) error { return a.message(ctx, args[0], name, m) })
	}
	const hash = "the hash of what is approved, at least its first 16 digits"
	approve := add("approve [ID]", "Approve what waits at a gate, by its hash", `Approve what waits at a gate, by its hash. Without --hash, at a terminal, it is shown
first and you are asked. --apply also applies an approved change to the branch that the loop
started from, as `+"`pawl apply`"+` does. The command waits for the result, reports it, and
fails if nothing was applied.`, atMost(1), func(ctx context.Context, args []string) error { return a.approve(ctx, args, m) })
	approve.Flags().StringVar(&m.Hash, "hash", "", hash)
	approve.Flags().StringVar(&m.Apply, "apply", "", "also apply what is approved: ff, merge or squash")
	reject := add("reject [ID]", "Reject what waits at a gate", "", atMost(1), send(loop.MessageReject, answersForGood))
	reject.Flags().StringVar(&m.Hash, "hash", "", "the hash of what is rejected (not needed)")
	extend := add("extend [ID]", "Raise a budget that is used up", `Raise a budget that is used up: --limit iterations=20 --limit activeTime=1h. A limit is the new
total, not an addition. Without --hash, at a terminal, the gate is shown first and you are asked.`,
		atMost(1), func(ctx context.Context, args []string) error { return a.extend(ctx, args, limits, m) })
	extend.Flags().StringVar(&m.Hash, "hash", "", "the gate's hash, at least its first 16 digits")
	extend.Flags().StringArrayVar(&limits, "limit", nil, "a budget and its new total, such as iterations=20 (may be repeated)")
	amend := add("amend [ID]", "Correct a command that does not work, or approve a tool", `Correct a command that does not work, or approve a tool, when the loop asks about it:
--set verify.command='./measure.sh --fast', --set 'approvals.tools=[read, edit, shell]'. The
amended contract has a new hash and must be approved next. The question says which of these keys you may amend:
`+strings.Join(slices.Concat(spec.Amendable, spec.Approvable), ", ")+`.`, atMost(1), func(ctx context.Context, args []string) (err error) {
		if len(sets) == 0 {
			return usage("amend needs --set with the correction, for example --set 'verify.command=…'")
		}
		if m.Spec, err = config.Fragment("--set", sets); err != nil {
			return err
		}
		return send(loop.MessageAmend, answersGate)(ctx, args)
	})
	amend.Flags().StringArrayVar(&sets, "set", nil, "a key of the spec and its value (may be repeated)")
	add("mode [ID] MODE", "Change the mode; any mode but mission ends the loop for good", `Change a loop's mode (answer, plan or mission). Any mode but mission ends the loop for good, with
its report. The command sends the message setMode.`, arguments(1, 2), func(ctx context.Context, args []string) error {
		m.Mode = args[len(args)-1]
		if len(args) == 1 && !slices.Contains([]string{spec.ModeAnswer, spec.ModePlan, spec.ModeMission}, m.Mode) {
			return usage("something is missing: use `pawl mode [ID] MODE`")
		}
		return send(loop.MessageSetMode, ends)(ctx, args[:len(args)-1])
	})
	pause := add("pause [ID]", "Pause a loop: interrupt the running step, and repeat it on continue", "", atMost(1), send(loop.MessagePause, stillRuns))
	pause.Flags().StringVar(&m.Choice, "before", "", "step or iteration: pause before the next one and interrupt nothing")
	add("continue [ID]", "Resume a loop after a pause, a breakpoint or a block", "", atMost(1), send(loop.MessageContinue, goesOn))
	add("halt [ID]", "End a loop for good, with its report", "", atMost(1), send(loop.MessageHalt, ends))
	add("steer [ID] NOTE...", "Give guidance to the next agent call", "Give guidance to the next agent call. A note in quotes needs no ID: pawl steer \"use the cache\".", arguments(0, -1), func(ctx context.Context, args []string) error {
		switch {
		case len(args) == 0 && strings.TrimSpace(m.Note) == "":
			return usage("something is missing: use `pawl steer [ID] NOTE...`")
		case len(args) > 1:
			m.Note, args = strings.Join(args[1:], " "), args[:1]
		case len(args) == 1 && strings.ContainsAny(args[0], " \t\n"): // no ID has a space
			m.Note, args = args[0], nil
		}
		return send(loop.MessageSteer, stillRuns)(ctx, args)
	})
	answer := add("answer [ID] CHOICE", "Answer a question", "", arguments(0, 2), func(ctx context.Context, args []string) error {
		if len(args) == 2 && m.Choice != "" && m.Choice != args[1] {
			return usage("the choice is given twice: " + args[1] + " and --choice " + m.Choice)
		}
		if len(args) == 2 || len(args) == 1 && m.Choice == "" {
			m.Choice, args = args[len(args)-1], args[:len(args)-1]
		}
		if m.Choice == "" {
			return usage("something is missing: use `pawl answer [ID] CHOICE`")
		}
		return send(loop.MessageAnswer, answersForGood)(ctx, args)
	})
	answer.Flags().StringVar(&m.Choice, "choice", "", "the same as CHOICE")
	return all
}

func (a *app) message(ctx context.Context, id, name string, m loop.Message) error {
	return a.visit(ctx, func(s *session) error { return a.deliver(ctx, s, id, name, m) })
}

// deliver sends a message and reports the result.
func (a *app) deliver(ctx context.Context, s *session, id, name string, m loop.Message) error {
	sent, err := s.Send(ctx, id, name, m)
	if err != nil {
		return err
	}
	return a.reportSent(s, sent)
}

func (a *app) reportSent(s *session, sent client.Sent) error {
	if sent.Proposal != nil {
		sent.Reply = "proposal " + render.Proposal(*sent.Proposal)
	}
	if sent.Already {
		sent.Reply += "; it had this answer before, so nothing changes"
	}
	if sent.Via == "signal" {
		a.say("no worker answered, so %s was sent as a signal; it takes effect when a worker runs (%s)", sent.Message, s.AWorker())
	}
	if a.json {
		return a.printJSON(sent)
	}
	if sent.Reply != "" {
		return a.print(sent.Loop + ": " + render.Clean(sent.Reply))
	}
	return nil
}

// extend raises budgets with the gate's hash, or shows what waits and asks.
func (a *app) extend(ctx context.Context, args []string, limits []string, m loop.Message) error {
	if len(limits) == 0 {
		return usage("extend needs --limit with the new total; `" + showLine(args) + "` has an example")
	}
	if m.Hash == "" && !a.terminal() {
		return usage("extend needs --hash, the hash of the gate; `" + showLine(args) + "` prints it")
	}
	for _, limit := range limits {
		if !strings.Contains(limit, "=") {
			return usage("--limit is a budget and its new total, such as iterations=20, not " + limit)
		}
	}
	var err error
	if m.Limits, err = config.Fragment("--limit", limits); err != nil {
		return err
	}
	raises := a.naming(answersGate, func(ctx context.Context, args []string) error {
		return a.visit(ctx, func(s *session) error {
			if m.Hash == "" {
				if m, err = a.lookUp(ctx, s, args[0], "Raise the limit?", m); err != nil {
					return err
				}
			}
			return a.deliver(ctx, s, args[0], loop.MessageExtend, m)
		})
	})
	return raises(ctx, args)
}

// showLine is the command that shows what waits.
func showLine(args []string) string { return strings.Join(append([]string{"pawl show"}, args...), " ") }

// approve approves with a hash, or shows what waits and asks.
func (a *app) approve(ctx context.Context, args []string, m loop.Message) error {
	if m.Apply != "" && !slices.Contains(rules.AppliedAtOnce, m.Apply) {
		return usage("--apply is one of " + strings.Join(rules.AppliedAtOnce, ", "))
	}
	if m.Hash == "" && !a.terminal() {
		return usage("approve needs --hash, the hash of what you approve; `" + showLine(args) + "` prints it")
	}
	approved := a.naming(approves, func(ctx context.Context, args []string) error { return a.approveLoop(ctx, args[0], m) })
	return approved(ctx, args)
}

func (a *app) approveLoop(ctx context.Context, id string, m loop.Message) error {
	return a.visit(ctx, func(s *session) (err error) {
		p, _, over, err := s.Proposed(ctx, id)
		if err != nil {
			return err
		}
		switch {
		case m.Hash != "":
		case over && m.Gate == "":
			err, m.Hash = a.lookAtProposal(ctx, s, id, p), p.Hash
		default:
			m, err = a.lookUp(ctx, s, id, "Approve?", m)
		}
		if err != nil {
			return err
		}
		return a.sendApproval(ctx, s, id, over, m)
	})
}

// sayWhatFollows says what an approval leads to, if it is one of a contract or of a change.
func (a *app) sayWhatFollows(ctx context.Context, s *session, sent client.Sent, hash string) {
	if a.json || sent.Already || sent.Via == "signal" {
		return
	}
	id := shell.Quote(sent.Loop)
	applies := func(approved string) bool { return strings.HasPrefix(approved, strings.ToLower(hash)) }
	if sent.Proposal != nil {
		a.say("your repository has not changed: `pawl apply %s` brings the change to it", id)
		return
	}
	state, err := s.State(ctx, sent.Loop)
	switch {
	case err != nil || state.Steward != "":
	case state.Proposal != nil && applies(state.Proposal.Hash):
		a.say("your repository has not changed: `pawl apply %s` brings the change to it", id)
	case state.Contract != nil && applies(state.Contract.Hash):
		a.say("the loop starts: `pawl log -f %s` follows it", id)
	}
}

// sendApproval carries an approval to the proposal of a loop that is over, or to a gate. With --apply it also applies the
// change, or waits until the loop has applied it or that has failed.
func (a *app) sendApproval(ctx context.Context, s *session, id string, over bool, m loop.Message) error {
	var from int64
	if m.Apply != "" && !over {
		if state, err := s.State(ctx, id); err == nil {
			from = state.Seq
		}
	}
	sent, err := s.Send(ctx, id, loop.MessageApprove, m)
	if err != nil {
		return err
	}
	if m.Apply == "" || sent.Via == "signal" || !a.json { // with --json, one document is enough
		if err := a.reportSent(s, sent); err != nil {
			return err
		}
	}
	if m.Apply == "" {
		a.sayWhatFollows(ctx, s, sent, m.Hash)
		return nil
	}
	switch {
	case sent.Proposal != nil:
		return a.apply(ctx, s, api.Apply{Loop: sent.Loop, Hash: m.Hash, How: m.Apply, By: m.By}, "")
	case sent.Via == "signal":
		return fault.New(fault.NoWorker, "nothing is applied yet: the loop does it once a worker runs (%s)", s.AWorker()).
			Advise("`pawl show " + id + "` says whether it has.")
	}
	a.screen.Live("applying the change …")
	done, err := s.AwaitApplied(ctx, id, from)
	a.screen.Still()
	if err != nil {
		return err
	}
	return a.reportApplied(done, "")
}
