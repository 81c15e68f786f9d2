package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"pawl/internal/loop"
)

func (a *app) steerCommand() *cobra.Command {
	var m loop.Message
	cmd := &cobra.Command{
		Use: "steer [ID] NOTE...", Short: "Give guidance to the next agent call", Args: arguments(0, -1),
		Long: "Give guidance to the next agent call. A note in quotes needs no ID: pawl steer \"use the cache\".",
		RunE: a.brief(func(ctx context.Context, args []string) error { return a.runSteer(ctx, args, m) }),
	}
	messageFlags(cmd, &m)
	return cmd
}

func (a *app) runSteer(ctx context.Context, args []string, m loop.Message) error {
	switch {
	case len(args) == 0 && strings.TrimSpace(m.Note) == "":
		return usage("something is missing: use `pawl steer [ID] NOTE...`")
	case len(args) > 1:
		m.Note = strings.Join(args[1:], " ")
		args = args[:1]
	case len(args) == 1 && strings.ContainsAny(args[0], " \t\n"): // no ID has a space
		m.Note = args[0]
		args = nil
	}
	return a.sendMessage(ctx, args, stillRuns, loop.MessageSteer, m)
}
