package cli

import (
	"context"

	"github.com/spf13/cobra"

	"pawl/internal/client/launch"
)

func (a *app) stewardListCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List all stewards, the newest first", Args: noArguments,
		RunE: a.visiting(func(ctx context.Context, s *session, _ []string) error {
			return a.listRows(ctx, s, launch.Row.Steward, "there are no stewards yet; `pawl steward up FILE` starts one")
		}),
	}
}
