package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"pawl/config"
	"pawl/internal/loop"
)

// extendOptions say which budgets are raised.
type extendOptions struct {
	limits  []string // as on the command line: iterations=20
	message loop.Message
}

func (a *app) extendCommand() *cobra.Command {
	var o extendOptions
	cmd := &cobra.Command{
		Use: "extend [ID]", Short: "Raise a budget that is used up", Args: atMost(1),
		Long: `Raise a budget that is used up: --limit iterations=20 --limit activeTime=1h. A limit is the new
total, not an addition. Without --hash, at a terminal, the gate is shown first and you are asked.`,
		RunE: a.brief(func(ctx context.Context, args []string) error { return a.runExtend(ctx, args, o) }),
	}
	messageFlags(cmd, &o.message)
	cmd.Flags().StringVar(&o.message.Hash, "hash", "", "the gate's hash, at least its first 16 digits")
	cmd.Flags().StringArrayVar(&o.limits, "limit", nil, "a budget and its new total, such as iterations=20 (may be repeated)")
	return cmd
}

// runExtend raises budgets with the gate's hash, or shows what waits and asks.
func (a *app) runExtend(ctx context.Context, args []string, o extendOptions) error {
	if len(o.limits) == 0 {
		return usage("extend needs --limit with the new total; `" + showLine(args) + "` has an example")
	}
	m := o.message
	if m.Hash == "" && !a.terminal() {
		return usage("extend needs --hash, the hash of the gate; `" + showLine(args) + "` prints it")
	}
	for _, limit := range o.limits {
		if !strings.Contains(limit, "=") {
			return usage("--limit is a budget and its new total, such as iterations=20, not " + limit)
		}
	}
	limits, err := config.Fragment("--limit", o.limits)
	if err != nil {
		return err
	}
	m.Limits = limits

	extend := a.naming(answersGate, func(ctx context.Context, args []string) error {
		return a.visit(ctx, func(s *session) error { return a.extendLoop(ctx, s, args[0], m) })
	})
	return extend(ctx, args)
}

func (a *app) extendLoop(ctx context.Context, s *session, id string, m loop.Message) (err error) {
	if m.Hash == "" {
		if m, err = a.lookUp(ctx, s, id, "Raise the limit?", m); err != nil {
			return err
		}
	}
	return a.deliver(ctx, s, id, loop.MessageExtend, m)
}
