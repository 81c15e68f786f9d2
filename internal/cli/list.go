package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"pawl/internal/client/launch"
	"pawl/internal/git/userrepo"
)

// listOptions say which loops are listed.
type listOptions struct {
	all  bool // refused starts too
	here bool // only those of this folder's repository
}

func (a *app) listCommand() *cobra.Command {
	var o listOptions
	cmd := &cobra.Command{
		Use: "list", Short: "List all loops, the newest first", Args: noArguments,
		Long: `List all loops, the newest first. If no engine answers, it lists the loops of this
host as their ledgers last recorded them. COST and TOKENS are what a loop's agents reported, as
far as this host's ledger has it. TIME is how long the loop has run, waits included. A start that
was refused is left out without --all.`,
		RunE: a.visiting(func(ctx context.Context, s *session, _ []string) error { return a.runList(ctx, s, o) }),
	}
	cmd.Flags().BoolVar(&o.all, "all", false, "list refused starts too")
	cmd.Flags().BoolVar(&o.here, "here", false, "list only the loops of this folder's repository")
	return cmd
}

func (a *app) runList(ctx context.Context, s *session, o listOptions) error {
	wanted := func(r launch.Row) bool { return o.all || !r.Refused }
	if !o.here {
		none := "there are no loops yet"
		if !o.all {
			none += " (`--all` lists refused starts too)"
		}
		return a.listRows(ctx, s, wanted, none+"; `pawl demo` shows one, `pawl run` starts yours")
	}

	project, err := userrepo.ProjectOf(ctx, ".")
	if err != nil {
		return fmt.Errorf("finding this folder's repository: %w", err)
	}
	wantedHere := func(r launch.Row) bool { return wanted(r) && project.Has(r.Repo) }
	return a.listRows(ctx, s, wantedHere, "there are no loops of "+project.Root)
}

// sayRecorded says that a list is from the ledgers, if no engine answers.
func (s *session) sayRecorded() {
	switch {
	case s.SDK != nil:
	case s.Unanswered != nil:
		s.app.explain(s.Unanswered)
		s.app.say("this is what the ledgers of this host last recorded")
	default:
		s.app.say("no engine is running; this is what the ledgers of this host last recorded (`pawl up` starts one)")
	}
}

// listRows lists the loops and stewards that wanted selects, or prints ifNone if there are none.
func (a *app) listRows(ctx context.Context, s *session, wanted func(launch.Row) bool, ifNone string) error {
	s.sayRecorded()
	listed, err := s.Listed(ctx)
	if err != nil {
		return err
	}
	rows := slices.DeleteFunc(append([]launch.Row{}, listed...), func(r launch.Row) bool { return !wanted(r) })
	if len(rows) == 0 && !a.json {
		a.say("%s", ifNone)
		return nil
	}
	return a.output(rows, a.style().List(rows, a.deps.Now()))
}
