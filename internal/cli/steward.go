package cli

import (
	"github.com/spf13/cobra"
)

func (a *app) stewardCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "steward", Short: "Start, see and answer stewards, which run loops for tasks", Args: noArguments,
		Long: `A steward looks after one project. It takes tasks, plans them, runs loops for them,
notices when it goes in circles, and asks a person when it has to.`,
		RunE: a.command(func(cmd *cobra.Command, _ []string) error { return cmd.Help() }),
	}
	cmd.AddCommand(
		a.stewardUpCommand(), a.stewardListCommand(), a.stewardShowCommand(), a.stewardSubmitCommand(),
		a.stewardAnswerCommand(), a.stewardExtendCommand(), a.stewardStopCommand(),
	)
	for _, message := range taskMessages {
		cmd.AddCommand(a.taskCommand(message))
	}
	return cmd
}
