package cli

import (
	"context"

	"github.com/spf13/cobra"

	"pawl/internal/loop"
)

func (a *app) rejectCommand() *cobra.Command {
	var m loop.Message
	cmd := &cobra.Command{
		Use: "reject [ID]", Short: "Reject what waits at a gate", Args: atMost(1),
		RunE: a.brief(func(ctx context.Context, args []string) error {
			return a.sendMessage(ctx, args, answersForGood, loop.MessageReject, m)
		}),
	}
	messageFlags(cmd, &m)
	cmd.Flags().StringVar(&m.Hash, "hash", "", "the hash of what is rejected (not needed)")
	return cmd
}
