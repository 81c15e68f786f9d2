package cli

import (
	"context"

	"github.com/spf13/cobra"

	"pawl/internal/fault"
	"pawl/internal/govern"
	"pawl/internal/kind"
	"pawl/internal/loop"
)

func (a *app) watchCommand() *cobra.Command {
	return &cobra.Command{
		Use: "watch ID", Short: "Follow a loop that runs elsewhere, to its end", Args: oneLoop,
		Long: `Follow a loop that runs elsewhere, as ` + "`pawl run`" + ` follows its own, with its report at the end and
the exit code of how it ended. It starts nothing, answers nothing and ends nothing: Ctrl-C just
leaves (exit code 5).`,
		RunE: a.command(func(cmd *cobra.Command, args []string) error { return a.watchLoop(cmd.Context(), args[0]) }),
	}
}

func (a *app) watchLoop(parent context.Context, id string) error {
	starting, stop := a.untilSignal(parent)
	s, err := a.visit(starting)
	if err == nil {
		defer s.close()
		err = s.followable(starting, id)
	}
	stop()
	if err != nil {
		return err
	}
	if s.client == nil { // it has ended
		f, e, err := a.ended(parent, s, id)
		if err != nil {
			return err
		}
		if err := f.report(e); err != nil {
			return err
		}
		return ended(e.status, e.code)
	}
	return a.follow(parent, s, elsewhere(), s.client.GetWorkflow(parent, id, ""), runOptions{watch: true})
}

// followable says that a loop is there to be followed: where no engine runs, that it has ended.
func (s *session) followable(ctx context.Context, id string) error {
	if s.client != nil {
		if err := s.alive(ctx, id); fault.CodeOf(err) != fault.GateClosed {
			return err
		}
		return nil
	}
	state, err := s.recorded(ctx, id)
	if err == nil && !state.Status.Ended() {
		return noEngine()
	}
	return err
}

func (a *app) reportCommand() *cobra.Command {
	return &cobra.Command{
		Use: "report ID", Short: "Show the final report of a loop that has ended", Args: oneLoop,
		Long: `Show the final report of a loop that has ended once more: from its ledger on this host, else from
the loop itself. With --json it is what ` + "`pawl run --json`" + ` has printed.`,
		RunE: a.brief(func(ctx context.Context, args []string) error {
			s, err := a.visit(ctx)
			if err != nil {
				return err
			}
			defer s.close()
			f, e, err := a.ended(ctx, s, args[0])
			if err != nil {
				return err
			}
			return f.report(e)
		}),
	}
}

// ended is how a loop ended, and who reports it. The ledger comes first: it knows what became of the
// proposal afterwards, too.
func (a *app) ended(ctx context.Context, s *session, id string) (*follower, ending, error) {
	f := &follower{app: a, s: s, w: elsewhere(), id: id}
	r, err := s.read(ctx, id)
	if err != nil {
		return nil, ending{}, err
	}
	f.state = r.state
	if f.kind, err = kind.Of(r.state.Kind); err != nil {
		return nil, ending{}, err
	}
	over := s.client != nil && fault.CodeOf(s.alive(ctx, id)) == fault.GateClosed
	if !r.state.Status.Ended() && !over {
		return nil, ending{}, fault.New(fault.PreconditionFailed, "the loop %s has not ended (%s)", id, r.state.Status).
			Advise("Look at it with `pawl show " + id + "`, or follow it to its end with `pawl watch " + id + "`.")
	}
	if over {
		f.runToken = s.client.GetWorkflow(ctx, id, "")
	}
	if !r.state.Status.Ended() { // somebody ended it without asking it
		return f, s.await(ctx, f.runToken), ctx.Err()
	}
	e := ending{status: r.state.Status, code: fault.Code(r.state.ErrorCode)}
	if l, head, err := s.openLedger(ctx, id); err == nil {
		if c, err := l.Contract(ctx, head); err == nil && same(ctx, s, id, r.state) {
			e.result = *govern.Result(r.state, c.Spec)
			f.recall(l.Events(ctx, head))
			return f, e, nil
		}
	}
	if over {
		v, err := s.events(ctx, id, 0)
		f.recall(v.Events, err)
		return f, s.await(ctx, f.runToken), ctx.Err()
	}
	return nil, ending{}, fault.New(fault.EngineUnreachable, "neither this host's ledger nor the loop %s itself can be read", id).
		Advise("Run this on the loop's host (" + r.state.Host + ").")
}

// recall takes in what the report of a delivery is about, as far as it can be read.
func (f *follower) recall(events []loop.Event, err error) {
	if err != nil {
		return
	}
	for _, e := range events {
		f.delivery = f.delivery.Follow(e)
	}
}

// same reports whether the ledger on this host is that of the loop in this state, and not of another
// one of that name.
func same(ctx context.Context, s *session, id string, state loop.State) bool {
	recorded, err := s.recorded(ctx, id)
	return err == nil && recorded.StartedAt.Equal(state.StartedAt) && recorded.Seq == state.Seq
}
