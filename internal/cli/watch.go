package cli

import (
	"context"

	"github.com/spf13/cobra"

	"pawl/internal/fault"
)

func (a *app) watchCommand() *cobra.Command {
	return &cobra.Command{
		Use: "watch [ID]", Short: "Follow a loop that runs elsewhere, to its end", Args: atMost(1),
		Long: `Follow a loop that runs elsewhere, as ` + "`pawl run`" + ` follows its own loop. The report comes at the
end, and the exit code says how the loop ended. watch starts, answers and ends nothing: Ctrl-C only
leaves (exit code 5).`,
		RunE: a.command(func(cmd *cobra.Command, args []string) error {
			watches := a.naming(follows, func(ctx context.Context, args []string) error { return a.runWatch(ctx, args[0]) })
			return watches(cmd.Context(), args)
		}),
	}
}

func (a *app) runWatch(parent context.Context, id string) error {
	starting, stop := a.untilSignal(parent)
	s, err := a.attach(starting)
	if err == nil {
		defer s.close()
		err = s.aLoop(starting, id, "Follow it with `pawl log -f "+id+"`; `pawl inbox` shows everything that waits for you.")
	}
	if err == nil {
		err = s.followable(starting, id)
	}
	stop()
	if err != nil {
		return err
	}
	if s.SDK == nil { // it has ended
		f, e, err := a.ended(parent, s, id)
		if err != nil {
			return err
		}
		if err := f.report(parent, e); err != nil {
			return err
		}
		return ended(e.Status, e.Code)
	}
	return a.follow(parent, s, s.SDK.GetWorkflow(parent, id, ""), runOptions{watch: true})
}

// followable returns nil if a loop can be followed. If no engine runs, the loop must have ended.
func (s *session) followable(ctx context.Context, id string) error {
	if s.SDK != nil {
		if err := s.Alive(ctx, id); fault.CodeOf(err) != fault.GateClosed {
			return err
		}
		return nil
	}
	state, err := s.Recorded(ctx, id)
	if err == nil && !state.Status.Ended() {
		return s.NoEngine()
	}
	return err
}
