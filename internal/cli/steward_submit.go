package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"pawl/config"
	"pawl/internal/steward"
)

// stewardSubmitOptions say who submits a task.
type stewardSubmitOptions struct {
	by string
}

func (a *app) stewardSubmitCommand() *cobra.Command {
	var o stewardSubmitOptions
	cmd := &cobra.Command{
		Use: "submit NAME FILE", Short: "Submit a task", Args: arguments(2, 2),
		Long: `Submit a task to the steward NAME. FILE is Markdown: front matter with keys of the task,
if any (id, title, priority, after, tier, plan, dedupe), then what is wanted. FILE can also
be a task as YAML, TOML or JSON. Use - for stdin. A task with the same id or the same dedupe
key as an earlier task is the same task.`,
		RunE: a.brief(func(ctx context.Context, args []string) error {
			return a.runStewardSubmit(ctx, args[0], args[1], o)
		}),
	}
	cmd.Flags().StringVar(&o.by, "by", config.User(), "who does this, for the record")
	return cmd
}

// errTask is the fault of a file that has no task or an invalid one.
var errTask = errors.New("the task is invalid")

func (a *app) runStewardSubmit(ctx context.Context, name, file string, o stewardSubmitOptions) error {
	submitted, err := config.LoadTask(file, a.in)
	if err != nil {
		return fmt.Errorf("%w: %w", errTask, err)
	}
	return a.sendToSteward(ctx, name, steward.MessageSubmit, submitted, steward.Message{By: o.by})
}
