package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"pawl/internal/cli/render"
	"pawl/internal/engine/auth"
	hostworker "pawl/internal/worker"
)

func (a *app) upCommand() *cobra.Command {
	const authFlag = "auth"
	cmd := workerFlags(&cobra.Command{
		Use: "up", Short: "Serve the engine, the Temporal UI and the worker until interrupted", Args: noArguments,
		Long: `Serve the engine, the Temporal UI and this host's worker until interrupted. Loops
that an earlier process left unfinished continue where they stopped. A second pawl
joins the first and takes over when that one exits.

With --auth the engine requires a token, which is in $PAWL_HOME: other users of this
machine and agents in a sandbox can't read it. pawl sends the token by itself. For the
Temporal CLI, "pawl up" prints a profile to use, and for a browser a link. The engine
keeps requiring the token, also in "pawl run", until you pass --auth=false.`,
		PreRunE: a.command(func(cmd *cobra.Command, args []string) error {
			if f := cmd.Flags().Lookup(authFlag); f.Changed {
				if a.auth = auth.Unwanted; f.Value.String() == "true" {
					a.auth = auth.Wanted
				}
			}
			return a.configureWorker(cmd, args)
		}),
		RunE: a.brief(func(ctx context.Context, _ []string) error { return a.runUp(ctx) }),
	})
	cmd.Flags().Bool(authFlag, false, "require a token from everyone who connects to the engine (default: only where agents can't have a network of their own)")
	return cmd
}

// workerCommand is the whole command line of a program that is only a worker.
func (a *app) workerCommand() *cobra.Command {
	return a.versioned(workerFlags(&cobra.Command{
		Use: a.deps.Program, Short: "Serve loops as this host's worker until interrupted", Args: noArguments,
		Long: `Serve loops as this host's worker until interrupted, for the Temporal service that
TEMPORAL_ADDRESS or a profile in temporal.toml names. Its identity and its loops' trees
are in $PAWL_HOME, so a worker that starts there again continues where the last one
stopped. A second worker stands by and takes over. The log goes to stderr.`,
		PreRunE: a.command(a.configureWorker),
		RunE:    a.brief(func(ctx context.Context, _ []string) error { return a.runUp(ctx) }),
	}))
}

func (a *app) runUp(ctx context.Context) error {
	s, err := a.reach(ctx, true)
	if err != nil {
		return err
	}
	defer s.close()
	s.startWorker(context.WithoutCancel(ctx))
	if err := a.serving(s); err != nil {
		return err
	}
	return a.serve(ctx, s)
}

// serve stays while the worker runs, until it is interrupted, and reports what changes.
func (a *app) serve(ctx context.Context, s *session) error {
	w := s.worker
	owner, polling := s.engine != nil && s.engine.Owner(), false
	if s.engine != nil && !owner {
		a.say("another pawl runs the engine; this one takes over when that one exits")
	}
	var disk room
	look := time.NewTicker(500 * time.Millisecond)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			a.say("stopping; the loops stay where they are, and the next worker of this host resumes them")
			a.stopUnlessPressed(w)
			return nil
		case <-w.done:
			return fmt.Errorf("the worker ended: %w; see %s", w.err, s.logPath())
		case ours := <-w.ready:
			switch {
			case !ours:
				a.say("another pawl is this host's worker; this one takes over when that one exits")
			case !polling:
				polling = true
				a.say("the worker is ready%s", a.going(ctx, s))
			}
		case address := <-w.triggers:
			if address == "" {
				a.say("no steward with triggers runs any more; the endpoint is closed")
			} else {
				a.say("stewards' triggers are served at http://%s/v1/STEWARD/TRIGGER", address)
			}
		case <-look.C:
			disk.look(s, "Loops continue")
			if s.engine != nil && !owner && s.engine.Owner() {
				owner = true
				s.reached(s.engine.Found())
				a.say("took over the engine at %s; Temporal UI %s", s.temporal.Address, s.page(""))
			}
		}
	}
}

// stopUnlessPressed ends the worker and waits for it, at most until the next Ctrl-C.
func (a *app) stopUnlessPressed(w *localWorker) {
	stopped := make(chan struct{})
	go func() {
		w.stop(a.stopTimeout())
		close(stopped)
	}()
	select {
	case <-stopped:
	case <-a.deps.Signals:
	}
}

// serving prints the addresses and names of everything.
func (a *app) serving(s *session) error {
	v := render.Serving{
		Address: s.temporal.Address, UI: s.page(""), Namespace: s.temporal.Namespace,
		Worker: hostworker.Identity(s.hostID), Engine: "external", Log: s.logPath(),
	}
	if s.engine != nil {
		v.Engine = "another's"
		if s.engine.Owner() {
			v.Engine = "ours"
		}
		if s.engine.Found().Pass != nil {
			v.CLI = auth.WithProfile(s.Home.Engine())
		}
	}
	if a.json {
		return a.printJSON(v)
	}
	if a.told != nil {
		a.told.Info("serving", "address", v.Address, "namespace", v.Namespace, "worker", v.Worker, "ui", v.UI)
		return nil
	}
	return a.print(a.style().Serving(v))
}

// going names the loops that continue.
func (a *app) going(ctx context.Context, s *session) string {
	loops, err := hostworker.ActiveLoops(ctx, s.Home, s.SDK, s.temporal.Namespace)
	if err != nil || len(loops) == 0 {
		return ""
	}
	return fmt.Sprintf("; %d not ended: %s", len(loops), strings.Join(loops, ", "))
}
