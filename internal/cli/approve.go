package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"pawl/internal/client"
	"pawl/internal/fault"
	"pawl/internal/lib/shell"
	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/internal/loop/rules"
)

func (a *app) approveCommand() *cobra.Command {
	var m loop.Message
	cmd := &cobra.Command{
		Use: "approve [ID]", Short: "Approve what waits at a gate, by its hash", Args: atMost(1),
		Long: `Approve what waits at a gate, by its hash. Without --hash, at a terminal, it is shown
first and you are asked. --apply also applies an approved change to the branch that the loop
started from, as ` + "`pawl apply`" + ` does. The command waits for the result, reports it, and
fails if nothing was applied.`,
		RunE: a.brief(func(ctx context.Context, args []string) error { return a.runApprove(ctx, args, m) }),
	}
	messageFlags(cmd, &m)
	cmd.Flags().StringVar(&m.Hash, "hash", "", "the hash of what is approved, at least its first 16 digits")
	cmd.Flags().StringVar(&m.Apply, "apply", "", "also apply what is approved: ff, merge or squash")
	return cmd
}

// runApprove approves with a hash, or shows what waits and asks.
func (a *app) runApprove(ctx context.Context, args []string, m loop.Message) error {
	if m.Apply != "" && !slices.Contains(rules.AppliedAtOnce, m.Apply) {
		return usage("--apply is one of " + strings.Join(rules.AppliedAtOnce, ", "))
	}
	if m.Hash == "" && !a.terminal() {
		return usage("approve needs --hash, the hash of what you approve; `" + showLine(args) + "` prints it")
	}
	approve := a.naming(approves, func(ctx context.Context, args []string) error {
		return a.visit(ctx, func(s *session) error { return a.approveLoop(ctx, s, args[0], m) })
	})
	return approve(ctx, args)
}

func (a *app) approveLoop(ctx context.Context, s *session, id string, m loop.Message) error {
	proposal, _, hasEnded, err := s.Proposed(ctx, id)
	if err != nil {
		return err
	}

	switch {
	case m.Hash != "":
	case hasEnded && m.Gate == "":
		err = a.lookAtProposal(ctx, s, id, proposal)
		m.Hash = proposal.Hash
	default:
		m, err = a.lookUp(ctx, s, id, "Approve?", m)
	}
	if err != nil {
		return err
	}
	return a.sendApproval(ctx, s, id, hasEnded, m)
}

// sendApproval carries an approval to the proposal of a loop that is over, or to a gate. With --apply it also applies the
// change, or waits until the loop has applied it or that has failed.
func (a *app) sendApproval(ctx context.Context, s *session, id string, hasEnded bool, m loop.Message) error {
	var fromSeq int64
	if m.Apply != "" && !hasEnded {
		if state, err := s.State(ctx, id); err == nil {
			fromSeq = state.Seq
		}
	}
	sent, err := s.Send(ctx, id, loop.MessageApprove, m)
	if err != nil {
		return err
	}

	reportsLater := m.Apply != "" && sent.Via != "signal" && a.json // one document is enough
	if !reportsLater {
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
		return a.applyProposal(ctx, s, api.Apply{Loop: sent.Loop, Hash: m.Hash, How: m.Apply, By: m.By}, "")
	case sent.Via == "signal":
		return fault.New(fault.NoWorker, "nothing is applied yet: the loop does it once a worker runs (%s)", s.AWorker()).
			Advise("`pawl show " + id + "` says whether it has.")
	}
	a.screen.Live("applying the change …")
	applied, err := s.AwaitApplied(ctx, id, fromSeq)
	a.screen.Still()
	if err != nil {
		return err
	}
	return a.reportApplied(applied, "")
}

// sayWhatFollows says what an approval leads to, if it is one of a contract or of a change.
func (a *app) sayWhatFollows(ctx context.Context, s *session, sent client.Sent, hash string) {
	if a.json || sent.Already || sent.Via == "signal" {
		return
	}
	id := shell.Quote(sent.Loop)
	isApproved := func(hashOfIt string) bool { return strings.HasPrefix(hashOfIt, strings.ToLower(hash)) }
	if sent.Proposal != nil {
		a.say("your repository has not changed: `pawl apply %s` brings the change to it", id)
		return
	}
	state, err := s.State(ctx, sent.Loop)
	switch {
	case err != nil || state.Steward != "":
	case state.Proposal != nil && isApproved(state.Proposal.Hash):
		a.say("your repository has not changed: `pawl apply %s` brings the change to it", id)
	case state.Contract != nil && isApproved(state.Contract.Hash):
		a.say("the loop starts: `pawl log -f %s` follows it", id)
	}
}
