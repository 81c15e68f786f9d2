package cli

import (
	"context"

	"github.com/spf13/cobra"

	"pawl/internal/launch"
)

func (a *app) listCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List all loops, the newest first", Args: cobra.NoArgs,
		Long: `List all loops, the newest first. If no engine is running, it lists the loops of this
host as their ledgers last recorded them.`,
		RunE: a.brief(func(ctx context.Context, _ []string) error { return a.list(ctx) }),
	}
}

func (a *app) list(ctx context.Context) error {
	s, err := a.visit(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	var rows []launch.Row
	if s.SDK != nil {
		rows, err = s.Listed(ctx)
	} else {
		a.say("no engine is running; this is what the ledgers of this host last recorded (start it with `pawl up`)")
		rows, err = s.Kept(ctx)
	}
	if err != nil {
		return err
	}
	if a.json {
		if rows == nil {
			rows = []launch.Row{}
		}
		return a.printJSON(rows)
	}
	if len(rows) == 0 {
		a.say("there are no loops yet; `pawl demo` shows one, `pawl run` starts yours")
		return nil
	}
	return a.print(a.style().List(rows))
}
