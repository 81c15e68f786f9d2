package cli

import (
	"context"
	"regexp"
	"time"

	"github.com/spf13/cobra"
	enumspb "go.temporal.io/api/enums/v1"

	"pawl/internal/act"
	"pawl/internal/spec"
	"pawl/internal/ui"
)

func (a *app) startCommand() *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use: "start [FILE]", Short: "Start a loop and leave it to the worker", Args: cobra.MaximumNArgs(1),
		Long: `Start the loop of a spec file (default pawl.yaml), say how to follow it, and leave. A
worker takes it up: that of ` + "`pawl up`" + `, or one that serves the same Temporal. With --yes
its contract is approved as it is drawn (approvals.plan: auto); else it waits there.`,
		RunE: a.brief(func(ctx context.Context, args []string) error {
			o.take(args)
			return a.start(ctx, o)
		}),
	}
	o.flags(cmd)
	cmd.Flags().StringVar(&o.ledger, "ledger", "", "go on from this commit of the loop's ledger, which this host's worker or the repository has")
	return cmd
}

var wholeHash = regexp.MustCompile(`^[0-9a-f]{40}$`)

// Started is what `pawl start --json` prints.
type Started struct {
	Loop      string `json:"loop"`
	Run       string `json:"run"`
	Address   string `json:"address"`
	Namespace string `json:"namespace"`
	Worker    bool   `json:"worker"` // one takes loops now; else the loop waits for one
	UI        string `json:"ui,omitempty"`
}

// start starts a loop and leaves it to a worker. It never starts one: the loop is to outlive this
// process.
func (a *app) start(ctx context.Context, o runOptions) error {
	sp, id, err := o.load()
	if err != nil {
		return err
	}
	if o.yes { // there may be nobody at work to ask for the contract's hash, and this process leaves
		sp.Approvals.Plan = spec.Auto
	}
	if o.ledger != "" && !wholeHash.MatchString(o.ledger) {
		return usage("--ledger wants the 40 hex digits of a commit, as `git ls-remote REPOSITORY 'refs/pawl-ledger/*'` shows them")
	}
	s, err := a.reach(ctx, false)
	if err != nil {
		return err
	}
	defer s.close()
	run, err := s.start(ctx, id, sp, o.ledger)
	if err != nil {
		return err
	}
	v := Started{
		Loop: id, Run: run.GetRunID(), Address: s.temporal.Address, Namespace: s.temporal.Namespace,
		Worker: s.served(ctx), UI: s.link(id),
	}
	if !v.Worker {
		a.say("no worker takes loops now; this one waits until one does: %s", s.aWorker())
	}
	if a.json {
		return a.printJSON(v)
	}
	return a.print(a.style().Started(ui.Started{
		Loop: id, Run: v.Run, Temporal: v.Address + ", namespace " + v.Namespace, UI: v.UI, Asks: sp.Approvals.Plan != spec.Auto,
	}))
}

// A worker asks for tasks in polls of a minute; one that did not ask within this time is gone.
const lastPoll = 70 * time.Second

// served reports whether a worker takes loops now, as far as the service knows.
func (s *session) served(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, workerTimeout)
	defer cancel()
	d, err := s.client.DescribeTaskQueue(ctx, act.TaskQueue, enumspb.TASK_QUEUE_TYPE_WORKFLOW)
	if err != nil {
		return false
	}
	for _, p := range d.GetPollers() {
		if s.app.deps.Now().Sub(p.GetLastAccessTime().AsTime()) < lastPoll {
			return true
		}
	}
	return false
}

// aWorker names the command that starts a worker for this session's service.
func (s *session) aWorker() string {
	if s.temporal.Explicit {
		return "`worker`, or `pawl up` with the same settings"
	}
	return "`pawl up`"
}
