package cli

import (
	"context"

	"github.com/spf13/cobra"

	"pawl/internal/client"
	"pawl/internal/fault"
	"pawl/internal/loop"
	"pawl/internal/loop/rules"
	"pawl/internal/spec/kind"
)

func (a *app) reportCommand() *cobra.Command {
	return &cobra.Command{
		Use: "report [ID]", Short: "Show the final report of a loop that has ended", Args: atMost(1),
		Long: `Show the final report of a loop that has ended, again: from its ledger on this host, or else
from the loop itself. --json prints the same as ` + "`pawl run --json`" + `.`,
		RunE: a.visitingLoop(looksAtEnded, func(ctx context.Context, s *session, args []string) error {
			if err := s.aLoop(ctx, args[0], "See where it stands with `pawl steward show "+args[0]+"`, and all that happened with `pawl log "+args[0]+"`."); err != nil {
				return err
			}
			f, e, err := a.ended(ctx, s, args[0])
			if err != nil {
				return err
			}
			return f.report(ctx, e)
		}),
	}
}

// aLoop returns a fault if an ID is a steward's, with instead as its advice; else nil.
func (s *session) aLoop(ctx context.Context, id, instead string) error {
	if s.FamilyOf(ctx, id) == client.Steward {
		return fault.New(fault.LoopNotFound, "%s is a steward, not a loop", id).Advise(instead)
	}
	return nil
}

// ended returns how a loop ended, and a follower to report it. The ledger comes first, because it also knows the
// later state of the proposal.
func (a *app) ended(ctx context.Context, s *session, id string) (*follower, client.Ending, error) {
	f := &follower{app: a, s: s, id: id}
	r, err := s.Snapshot(ctx, id)
	if err != nil {
		return nil, client.Ending{}, err
	}
	f.state = r.State
	if f.kind, err = kind.Of(r.State.Kind); err != nil {
		return nil, client.Ending{}, err
	}
	hasEnded := s.SDK != nil && fault.CodeOf(s.Alive(ctx, id)) == fault.GateClosed
	if !r.State.Status.Ended() && !hasEnded {
		return nil, client.Ending{}, fault.New(fault.PreconditionFailed, "the loop %s has not ended (%s)", id, r.State.Status).
			Advise("Look at it with `pawl show " + id + "`, or follow it to its end with `pawl watch " + id + "`.")
	}
	if hasEnded {
		f.runToken = s.SDK.GetWorkflow(ctx, id, "")
	}
	if !r.State.Status.Ended() { // somebody ended it without asking it
		return f, s.Await(ctx, f.runToken), ctx.Err()
	}
	e := client.Ending{Status: r.State.Status, Code: fault.Code(r.State.ErrorCode)}
	if l, head, err := s.Ledger(ctx, id); err == nil {
		if c, err := l.Contract(ctx, head); err == nil && same(ctx, s, id, r.State) {
			e.Result = *rules.Result(r.State, c.Spec)
			f.recall(l.Events(ctx, head))
			return f, e, nil
		}
	}
	if hasEnded {
		v, err := s.Events(ctx, id, 0)
		f.recall(v.Events, err)
		return f, s.Await(ctx, f.runToken), ctx.Err()
	}
	return nil, client.Ending{}, fault.New(fault.NoWorker, "neither this host's ledger nor the loop %s itself can be read", id).
		Advise("Run this on the loop's host (" + r.State.Host + ").")
}

// recall reads what the report of a delivery needs from its events, if they could be read.
func (f *follower) recall(events []loop.Event, err error) {
	if err != nil {
		return
	}
	for _, e := range events {
		if f.delivery = f.delivery.Follow(e); e.Type == loop.PushRefused {
			f.unpushed = e.Reason
		}
	}
}

// same reports whether this host's ledger belongs to the loop in this state, and not to another one of that name.
func same(ctx context.Context, s *session, id string, state loop.State) bool {
	recorded, err := s.Recorded(ctx, id)
	return err == nil && recorded.StartedAt.Equal(state.StartedAt) && recorded.Seq == state.Seq
}
