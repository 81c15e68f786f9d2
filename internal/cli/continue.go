package cli

import (
	"context"

	"github.com/spf13/cobra"

	"pawl/internal/loop"
)

func (a *app) continueCommand() *cobra.Command {
	var m loop.Message
	cmd := &cobra.Command{
		Use: "continue [ID]", Short: "Resume a loop after a pause, a breakpoint or a block", Args: atMost(1),
		RunE: a.brief(func(ctx context.Context, args []string) error {
			return a.sendMessage(ctx, args, goesOn, loop.MessageContinue, m)
		}),
	}
	messageFlags(cmd, &m)
	return cmd
}
