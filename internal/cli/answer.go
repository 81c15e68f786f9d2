package cli

import (
	"context"

	"github.com/spf13/cobra"

	"pawl/internal/loop"
)

func (a *app) answerCommand() *cobra.Command {
	var m loop.Message
	cmd := &cobra.Command{
		Use: "answer [ID] CHOICE", Short: "Answer a question", Args: arguments(0, 2),
		RunE: a.brief(func(ctx context.Context, args []string) error { return a.runAnswer(ctx, args, m) }),
	}
	messageFlags(cmd, &m)
	cmd.Flags().StringVar(&m.Choice, "choice", "", "the same as CHOICE")
	return cmd
}

func (a *app) runAnswer(ctx context.Context, args []string, m loop.Message) error {
	last := len(args) - 1
	switch {
	case len(args) == 2 && m.Choice != "" && m.Choice != args[last]:
		return usage("the choice is given twice: " + args[last] + " and --choice " + m.Choice)
	case len(args) == 2, len(args) == 1 && m.Choice == "":
		m.Choice = args[last]
		args = args[:last]
	}
	if m.Choice == "" {
		return usage("something is missing: use `pawl answer [ID] CHOICE`")
	}
	return a.sendMessage(ctx, args, answersForGood, loop.MessageAnswer, m)
}
