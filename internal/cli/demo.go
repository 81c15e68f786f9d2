package cli

import (
	"context"
	"os/exec"

	"github.com/spf13/cobra"

	"pawl/config"
	"pawl/internal/demo"
	"pawl/internal/fault"
	"pawl/internal/home"
)

func (a *app) demoCommand() *cobra.Command {
	return &cobra.Command{
		Use: "demo", Short: "Show a whole loop with a repository and an agent of its own", Args: cobra.NoArgs,
		Long: `Show a whole loop: a small repository with a real problem (a round trip through the
cities of Europe) and an agent that is a script with prepared changes. It needs go
and git, and no API key. The demo approves its own contract.`,
		PreRunE: a.command(func(cmd *cobra.Command, _ []string) error { return a.configureWorker(cmd) }),
		RunE:    a.command(func(cmd *cobra.Command, _ []string) error { return a.demo(cmd.Context()) }),
	}
}

func (a *app) demo(ctx context.Context) error {
	for _, tool := range []string{"git", "go", "sh"} {
		if _, err := exec.LookPath(tool); err != nil {
			return fault.New(fault.PreconditionFailed, "the demo needs %s, which is not on the PATH", tool).
				Advise("Install it and start the demo again.")
		}
	}
	t, err := config.Connect()
	if err != nil {
		return err
	}
	h, err := home.Open()
	if err != nil {
		return err
	}
	d, err := demo.Unpack(ctx, h)
	if err != nil {
		return err
	}
	id := d.Name
	if t.Explicit { // a service that other hosts may use for their demos too
		host, err := h.HostID()
		if err != nil {
			return err
		}
		id += "-" + host
	}
	a.say("a round trip through %d cities of Europe, to be made shorter by a scripted agent in %d iterations", demo.Cities, demo.Iterations)
	a.say("repository %s, spec %s", d.Repo, d.Spec)
	return a.run(ctx, runOptions{file: d.Spec, id: id, yes: true, note: "--yes, since it is the demo's own", explain: true})
}
