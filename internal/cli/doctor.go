package cli

import (
	"context"
	"log/slog"

	"github.com/spf13/cobra"
	sdk "go.temporal.io/sdk/client"

	"pawl/activities/workspace"
	"pawl/config"
	"pawl/internal/cli/doctor"
	"pawl/internal/client"
	"pawl/internal/home"
)

func (a *app) doctorCommand() *cobra.Command {
	return &cobra.Command{
		Use: "doctor", Short: "Check that everything pawl needs is installed", Args: noArguments,
		Long: `Check everything that pawl needs: Temporal, the engine, git, free disk space, agents,
what a sandbox can be built from, the clock. Each problem is listed with its fix. The
exit code is 1 if something keeps pawl from working.`,
		RunE: a.brief(func(ctx context.Context, _ []string) error { return a.runDoctor(ctx) }),
	}
}

// Diagnosis is what `pawl doctor --json` prints.
type Diagnosis struct {
	OK   bool         `json:"ok"`
	Rows []doctor.Row `json:"rows"`
}

func (a *app) runDoctor(ctx context.Context) error {
	o := doctor.Options{Dial: func(ctx context.Context, t config.Temporal) (sdk.Client, error) {
		return a.deps.Dial(ctx, t, "pawl-doctor", slog.New(slog.DiscardHandler))
	}}
	o.Home, o.HomeErr = home.Open()
	o.Temporal, o.TemporalErr = config.Connect()
	o.Which = workspace.LookUp
	o.Worker = func() ([]string, bool) {
		if o.HomeErr != nil {
			return nil, false
		}
		return workspace.WorkersEnvironment(o.Home)
	}
	if a.deps.Embedded != nil {
		o.Engine = a.deps.Embedded.Look
	}
	if o.HomeErr == nil && o.TemporalErr == nil {
		o.Troubles = func(ctx context.Context) (found []client.Trouble, err error) {
			err = a.visit(ctx, func(s *session) error {
				found, err = s.Troubles(ctx)
				return err
			})
			return found, err
		}
	}
	a.screen.Live("checking …")
	rows := doctor.Examine(ctx, o)
	a.screen.Still()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	d := Diagnosis{OK: doctor.Sound(rows), Rows: rows}
	err := a.output(d, a.style().Findings(rows))
	if err == nil && !d.OK {
		err = &leaving{code: exitInternal}
	}
	return err
}
