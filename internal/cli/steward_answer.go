package cli

import (
	"context"

	"github.com/spf13/cobra"

	"pawl/internal/loop"
	"pawl/internal/steward"
)

// stewardAnswerOptions say what is answered.
type stewardAnswerOptions struct {
	approve bool
	taskID  string
	message steward.Message
}

func (a *app) stewardAnswerCommand() *cobra.Command {
	var o stewardAnswerOptions
	cmd := &cobra.Command{
		Use: "answer NAME", Short: "Answer what a steward asks", Args: oneSteward,
		Long: `Answer what a steward asks: --approve with the hash of the plan, or --choice with one
of the gate's choices. ` + "`pawl steward show NAME` and `pawl inbox`" + ` print the exact commands.`,
		RunE: a.brief(func(ctx context.Context, args []string) error { return a.runStewardAnswer(ctx, args[0], o) }),
	}
	taskFlags(cmd, &o.message, &o.taskID)
	cmd.Flags().StringVar(&o.message.Gate, "gate", "", "the gate to answer (default: the task's)")
	cmd.Flags().StringVar(&o.message.Hash, "hash", "", "the hash of the plan that is approved, at least its first 16 digits")
	cmd.Flags().StringVar(&o.message.Choice, "choice", "", "one of the choices that the gate lists")
	cmd.Flags().BoolVar(&o.approve, "approve", false, "approve the plan")
	return cmd
}

func (a *app) runStewardAnswer(ctx context.Context, name string, o stewardAnswerOptions) error {
	chooses := o.message.Choice != ""
	message := loop.MessageAnswer
	switch {
	case o.approve == chooses:
		return usage("answer needs --approve or --choice; `pawl steward show " + name + "` prints the commands")
	case o.approve && o.message.Hash == "":
		return usage("--approve needs --hash, the hash of the plan; `pawl steward show " + name + "` prints it")
	case o.approve:
		message = loop.MessageApprove
	}
	return a.sendToSteward(ctx, name, message, o.taskID, o.message)
}
