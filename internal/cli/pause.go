package cli

import (
	"context"

	"github.com/spf13/cobra"

	"pawl/internal/loop"
)

func (a *app) pauseCommand() *cobra.Command {
	var m loop.Message
	cmd := &cobra.Command{
		Use: "pause [ID]", Short: "Pause a loop: interrupt the running step, and repeat it on continue", Args: atMost(1),
		RunE: a.brief(func(ctx context.Context, args []string) error {
			return a.sendMessage(ctx, args, stillRuns, loop.MessagePause, m)
		}),
	}
	messageFlags(cmd, &m)
	cmd.Flags().StringVar(&m.Choice, "before", "", "step or iteration: pause before the next one and interrupt nothing")
	return cmd
}
