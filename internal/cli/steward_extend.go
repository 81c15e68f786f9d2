package cli

import (
	"context"

	"github.com/spf13/cobra"

	"pawl/config"
	"pawl/internal/loop"
	"pawl/internal/steward"
)

// stewardExtendOptions say what a task may cost now.
type stewardExtendOptions struct {
	limits  []string // as on the command line: costUSD=10
	taskID  string
	message steward.Message
}

func (a *app) stewardExtendCommand() *cobra.Command {
	var o stewardExtendOptions
	cmd := &cobra.Command{
		Use: "extend NAME", Short: "Raise what a task may cost, when its budget is used up", Args: oneSteward,
		Long: `Raise what a task may cost: --limit costUSD=10. The limit is the new total, not an
addition.`,
		RunE: a.brief(func(ctx context.Context, args []string) error { return a.runStewardExtend(ctx, args[0], o) }),
	}
	taskFlags(cmd, &o.message, &o.taskID)
	cmd.Flags().StringVar(&o.message.Gate, "gate", "", "the gate to answer (default: the task's)")
	cmd.Flags().StringVar(&o.message.Hash, "hash", "", "the gate's hash, at least its first 16 digits")
	cmd.Flags().StringArrayVar(&o.limits, "limit", nil, "the budget and its new total, costUSD=10")
	return cmd
}

func (a *app) runStewardExtend(ctx context.Context, name string, o stewardExtendOptions) error {
	if len(o.limits) == 0 || o.message.Hash == "" {
		return usage("extend needs --limit with the new total and --hash; `pawl steward show " + name + "` has an example")
	}
	limits, err := config.Fragment("--limit", o.limits)
	if err != nil {
		return err
	}
	o.message.Limits = limits
	return a.sendToSteward(ctx, name, loop.MessageExtend, o.taskID, o.message)
}
