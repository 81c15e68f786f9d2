package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"pawl/activities/preflight"
	"pawl/config"
	"pawl/internal/fault"
	"pawl/internal/home"
	"pawl/internal/integrations/schedule"
	"pawl/internal/lib/list"
	"pawl/internal/metric"
	"pawl/internal/spec/kind"
	"pawl/internal/steward/charter"
)

func (a *app) stewardUpCommand() *cobra.Command {
	var o stewardStart
	cmd := &cobra.Command{
		Use: "up [FILE]", Short: "Start a steward and serve it until interrupted", Args: arguments(0, 1),
		Long: `Start the steward of a spec file (default steward.yaml) and serve it until interrupted:
the engine and this host's worker run in this process, unless another process runs them.
Once the steward runs, this command tries the commands in defaults on the unchanged code,
as "pawl validate" does (without the canary), and lists what would keep loops from working.
Ctrl-C leaves; the steward stays as it is, and ` + "`pawl up`" + ` serves it again. --detach
starts it and leaves it to the worker of ` + "`pawl up`" + `, or to another one of the same
Temporal service.`,
		PreRunE: a.command(a.configureWorker),
		RunE: a.brief(func(ctx context.Context, args []string) error {
			file := "steward.yaml"
			if len(args) == 1 {
				file = args[0]
			}
			o.detach = o.detach || a.deps.Thin
			return a.runStewardUp(ctx, file, o)
		}),
	}
	cmd.Flags().StringArrayVar(&o.sets, "set", nil, "override a key of the spec: --set limits.parallel=2 (may be repeated)")
	cmd.Flags().BoolVar(&o.detach, "detach", false, "leave the steward to a worker that runs elsewhere")
	cmd.Flags().StringVar(&o.ledger, "ledger", "", "resume from this commit of the steward's ledger, which the repository or the worker's host must have")
	return cmd
}

// secretsAreThere checks that this host has the secrets of a charter, if it is the steward's host.
func (a *app) secretsAreThere(c charter.Charter) error {
	h, err := home.Open()
	if err != nil {
		return err
	}
	missing := secrets(h, c)
	if ok, err := a.worksHere(h, c); err != nil || !ok || len(missing) == 0 {
		return err
	}
	texts := list.Map(missing, func(p preflight.Problem) string { return p.What })
	return fault.New(fault.PreconditionFailed, "%s", strings.Join(texts, "; ")).Advise(missing[0].Do)
}

// worksHere reports whether a charter's project is on this host.
func (a *app) worksHere(h home.Home, c charter.Charter) (bool, error) {
	host, err := h.HostID()
	return !a.deps.Thin && c.Repo.Path != "" && (c.Repo.Host == "" || c.Repo.Host == host), err
}

// stewardStart says how a steward is started.
type stewardStart struct {
	sets   []string
	detach bool
	ledger string
}

func (a *app) runStewardUp(ctx context.Context, file string, o stewardStart) error {
	c, err := config.LoadCharter(file, o.sets)
	if err != nil {
		return err
	}
	if err := a.secretsAreThere(c); err != nil {
		return err
	}
	s, err := a.reach(ctx, !o.detach)
	if err != nil {
		return err
	}
	defer s.close()
	if !o.detach {
		s.startWorker(context.WithoutCancel(ctx))
	}
	tasks, last := s.LeftBehind(ctx, c.Name)
	run, err := s.StartSteward(ctx, c, config.User(), o.ledger)
	if err != nil {
		return err
	}
	if err := schedule.Ensure(ctx, s.SDK.ScheduleClient(), c); err != nil {
		return fault.New(fault.InfrastructureError, "the steward %s was started, but its schedules could not be set: %v", c.Name, err).
			Advise("Stop it with `pawl steward stop " + c.Name + "` and start it again.")
	}
	v, err := s.started(ctx, run, launched{id: c.Name, kind: kind.Steward.Name, repo: c.Repo.Address(), served: !o.detach})
	if err != nil {
		return err
	}
	if err := a.output(v, a.style().StewardStarted(v)); err != nil {
		return err
	}
	if tasks > 0 && o.ledger == "" {
		a.say("note: nobody stopped the last steward %[1]s, which left %[2]s open. This one begins with no tasks. To continue with what was left, stop this one (pawl steward stop %[1]s) and start it again with --ledger %[3]s",
			c.Name, metric.Counted(tasks, "task"), last)
	}
	if ok, err := a.worksHere(s.Home, c); err == nil && ok {
		a.sayCharter(ctx, c)
	}
	if o.detach {
		return nil
	}
	return a.serve(ctx, s)
}
