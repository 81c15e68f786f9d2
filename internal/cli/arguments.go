package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"pawl/internal/cli/render"
	"pawl/internal/lib/shell"
)

// arguments checks how many arguments a command gets: at least minimum, and at most maximum unless that is negative. The error
// shows the whole command line, in place of the library's counts of "arg(s)".
func arguments(minimum, maximum int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < minimum:
			return usage(fmt.Sprintf("something is missing: use `%s`", commandLine(cmd)))
		case maximum >= 0 && len(args) > maximum:
			return usage(fmt.Sprintf("%s is too much: use `%s`", shell.Quote(args[maximum]), commandLine(cmd)))
		}
		return nil
	}
}

// oneSteward is the argument of commands for a steward.
var oneSteward = one("the name of one steward; `pawl steward list` shows them")

func one(text string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return fmt.Errorf("%s needs %s", cmd.CommandPath(), text)
		}
		return nil
	}
}

// commandLine returns how a command is called, without its flags.
func commandLine(cmd *cobra.Command) string { return strings.TrimSuffix(cmd.UseLine(), " [flags]") }

// noArguments is for a command that takes none. An unknown command is named with those that it may have been meant for.
func noArguments(cmd *cobra.Command, args []string) error {
	if !cmd.HasSubCommands() || len(args) == 0 {
		return arguments(0, 0)(cmd, args)
	}
	return unknown(cmd, args[0])
}

// unknown is the error for a command that does not exist. The library's own names no similar commands.
func unknown(cmd *cobra.Command, name string) error {
	text := fmt.Sprintf("unknown command %q for %q", name, cmd.CommandPath())
	cmd.SuggestionsMinimumDistance = min(2, len(name)/2) // letters that may differ
	similar := cmd.SuggestionsFor(name)
	if cmd.Flag(name) != nil {
		similar = append(similar, "--"+name)
	}
	return usage(text + meaning(strings.Join(similar, " or ")))
}

// meaning is how an error ends that knows what was meant, "" if it does not.
func meaning(name string) string { return render.Around("; did you mean ", name, "?") }

// helpCommand is the library's command, except that a topic that does not exist is an error.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND...]", Short: "Show what a command does, and its flags",
		Long: `Show what a command does, its arguments and its flags: pawl help steward answer.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			topic, rest, err := cmd.Root().Find(args)
			if err == nil && len(rest) > 0 {
				err = unknown(topic, rest[0])
			}
			if err != nil {
				return err
			}
			topic.InitDefaultHelpFlag()
			return topic.Help()
		},
	}
}

// takesNumber annotates a command whose last argument is a number.
const takesNumber = "number"

// negative moves a negative number behind `--` if the command takes a number. Elsewhere a word such as -5 is a flag.
func negative(root *cobra.Command, args []string) []string {
	cmd, _, err := root.Find(args)
	if err != nil || cmd.Annotations[takesNumber] == "" || slices.Contains(args, "--") {
		return args
	}
	i := slices.IndexFunc(args, func(arg string) bool {
		n, err := strconv.Atoi(arg)
		return err == nil && n < 0
	})
	if i < 0 {
		return args
	}
	if flag, long := strings.CutPrefix(args[i-1], "--"); long {
		if f := cmd.Flag(flag); f != nil && f.NoOptDefVal == "" {
			return args // the value of that flag
		}
	}
	return append(slices.Delete(slices.Clone(args), i, i+1), "--", args[i])
}
