package cli

import (
	"context"
	"fmt"
	"regexp"

	"github.com/spf13/cobra"
	sdk "go.temporal.io/sdk/client"

	"pawl/internal/cli/render"
	"pawl/internal/client"
	"pawl/internal/spec"
	"pawl/internal/spec/kind"
)

func (a *app) startCommand() *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use: "start [FILE]", Short: "Start a loop and leave it to the worker", Args: arguments(0, 1),
		Long: `Start the loop of a spec file (default pawl.yaml), print how to follow it, and exit.
A worker runs it: the one of ` + "`pawl up`" + `, or another one of the same Temporal service.
If the worker of this host would refuse the loop, start says so and starts nothing.
With --yes the contract is approved automatically (approvals.plan: auto); otherwise
the loop waits for your approval.`,
		RunE: a.brief(func(ctx context.Context, args []string) error {
			o.use(args)
			return a.runStart(ctx, o)
		}),
	}
	o.starts(cmd)
	cmd.Flags().StringVar(&o.ledger, "ledger", "", "resume from this commit of the loop's ledger, which the repository or the worker's host must have")
	return cmd
}

var wholeHash = regexp.MustCompile(`^[0-9a-f]{40}$`)

// runStart starts a loop and leaves it to a worker. It starts none, because the loop should outlive this process.
func (a *app) runStart(ctx context.Context, o runOptions) error {
	sp, id, err := o.load()
	if err != nil {
		return err
	}
	if o.yes { // later there may be no worker to ask for the contract's hash, and this process leaves
		sp.Approvals.Plan = spec.Auto
	}
	if o.ledger != "" && !wholeHash.MatchString(o.ledger) {
		return usage("--ledger needs the 40 hex digits of a commit, as `git ls-remote REPOSITORY 'refs/pawl-ledger/*'` shows them")
	}
	if o.ledger == "" {
		if err := a.startsHere(ctx, o, id, sp); err != nil {
			return err
		}
	}
	s, err := a.reach(ctx, false)
	if err != nil {
		return err
	}
	defer s.close()
	run, err := s.Start(ctx, id, sp, o.ledger)
	if err != nil {
		return err
	}
	v, err := s.started(ctx, run, launched{id: id, kind: sp.Kind, repo: sp.Repo.Address()})
	if err != nil {
		return err
	}
	return a.output(v, a.style().Started(v, o.ledger == "" && sp.Approvals.Plan != spec.Auto)) // a ledger has its approval
}

// launched is a loop or a steward that was started.
type launched struct {
	id, kind, repo string
	served         bool // this process works for it
}

// started returns what to tell about a loop or a steward that was started. It says at once if no worker serves it, and
// notes it on this host if only the engine of this process knows it.
func (s *session) started(ctx context.Context, run sdk.WorkflowRun, l launched) (render.Started, error) {
	started := render.Started{
		Loop: l.id, Run: run.GetRunID(), Address: s.temporal.Address, Namespace: s.temporal.Namespace,
		Worker: l.served || s.Served(ctx), UI: s.link(l.id),
	}
	if started.Worker {
		return started, nil
	}
	family := client.Loop
	if l.kind == kind.Steward.Name {
		family = client.Steward
	}
	s.app.say("no worker takes loops now; this %s waits until one does: %s", family.Word, s.AWorker())
	if s.engine == nil { // any host may take it
		return started, nil
	}
	if err := s.NoteStarted(l.id, run.GetRunID(), l.kind, l.repo); err != nil {
		return started, fmt.Errorf("noting that %s was started: %w", l.id, err)
	}
	return started, nil
}
