package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"pawl/config"
	"pawl/internal/loop"
	"pawl/internal/spec"
)

// amendOptions say what is corrected.
type amendOptions struct {
	sets    []string // as on the command line: verify.command=./measure.sh
	message loop.Message
}

func (a *app) amendCommand() *cobra.Command {
	var o amendOptions
	cmd := &cobra.Command{
		Use: "amend [ID]", Short: "Correct a command that does not work, or approve a tool", Args: atMost(1),
		Long: `Correct a command that does not work, or approve a tool, when the loop asks about it:
--set verify.command='./measure.sh --fast', --set 'approvals.tools=[read, edit, shell]'. The
amended contract has a new hash and must be approved next. The question says which of these keys you may amend:
` + strings.Join(slices.Concat(spec.Amendable, spec.Approvable), ", ") + `.`,
		RunE: a.brief(func(ctx context.Context, args []string) error { return a.runAmend(ctx, args, o) }),
	}
	messageFlags(cmd, &o.message)
	cmd.Flags().StringArrayVar(&o.sets, "set", nil, "a key of the spec and its value (may be repeated)")
	return cmd
}

func (a *app) runAmend(ctx context.Context, args []string, o amendOptions) error {
	if len(o.sets) == 0 {
		return usage("amend needs --set with the correction, for example --set 'verify.command=…'")
	}
	correction, err := config.Fragment("--set", o.sets)
	if err != nil {
		return err
	}
	o.message.Spec = correction
	return a.sendMessage(ctx, args, answersGate, loop.MessageAmend, o.message)
}
