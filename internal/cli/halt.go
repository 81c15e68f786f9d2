package cli

import (
	"context"

	"github.com/spf13/cobra"

	"pawl/internal/loop"
)

func (a *app) haltCommand() *cobra.Command {
	var m loop.Message
	cmd := &cobra.Command{
		Use: "halt [ID]", Short: "End a loop for good, with its report", Args: atMost(1),
		RunE: a.brief(func(ctx context.Context, args []string) error {
			return a.sendMessage(ctx, args, ends, loop.MessageHalt, m)
		}),
	}
	messageFlags(cmd, &m)
	return cmd
}
