package cli

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"pawl/internal/loop"
	"pawl/internal/spec"
)

func (a *app) modeCommand() *cobra.Command {
	var m loop.Message
	cmd := &cobra.Command{
		Use: "mode [ID] MODE", Short: "Change the mode; any mode but mission ends the loop for good", Args: arguments(1, 2),
		Long: `Change a loop's mode (answer, plan or mission). Any mode but mission ends the loop for good, with
its report. The command sends the message setMode.`,
		RunE: a.brief(func(ctx context.Context, args []string) error { return a.runMode(ctx, args, m) }),
	}
	messageFlags(cmd, &m)
	return cmd
}

func (a *app) runMode(ctx context.Context, args []string, m loop.Message) error {
	last := len(args) - 1
	m.Mode = args[last]
	modes := []string{spec.ModeAnswer, spec.ModePlan, spec.ModeMission}
	if len(args) == 1 && !slices.Contains(modes, m.Mode) {
		return usage("something is missing: use `pawl mode [ID] MODE`")
	}
	return a.sendMessage(ctx, args[:last], ends, loop.MessageSetMode, m)
}
