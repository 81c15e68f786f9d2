package cli

import (
	"context"
	"fmt"
	"os/exec"

	"github.com/spf13/cobra"

	"pawl/config"
	"pawl/internal/cli/demo"
	"pawl/internal/cli/render"
	"pawl/internal/fault"
	"pawl/internal/home"
)

func (a *app) demoCommand() *cobra.Command {
	cmd := a.loopDemo("demo", "Run a complete example loop with its own repository and a scripted agent",
		`Run a complete example loop: a small repository with a real problem (a round trip
through the cities of Europe), and a script with prepared changes as the agent. It
needs go and git, but no API key. The demo approves its own contract.`,
		demo.Improve, fmt.Sprintf("a scripted agent shortens a round trip through %d cities of Europe in %d iterations", demo.Cities, demo.Iterations))
	cmd.AddCommand(a.loopDemo("deliver", "Run an example that delivers a change: plan, write, test, fix, review",
		`Run an example loop that delivers a change: a calendar with a bug and a test that
shows it, an issue as the goal, and scripts as agents. The writer gets it wrong once,
the fixer gets it right, and the reviewer ticks off what the issue asks for. It needs
go and git, but no API key. The demo approves its own contract.`,
		demo.Deliver, "scripted agents fix a calendar that shows time as free during a meeting"), a.demoStewardCommand())
	return cmd
}

// loopDemo is the command of one of the demos of loops. about is a line that says what it is about.
func (a *app) loopDemo(use, short, long string, scenario demo.Scenario, about string) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Long: long, Args: noArguments,
		PreRunE: a.command(a.configureWorker),
		RunE:    a.command(func(cmd *cobra.Command, _ []string) error { return a.runDemo(cmd.Context(), scenario, about) }),
	}
}

// unpackDemo creates the next demo of a scenario and returns the ID of its loop or steward.
func (a *app) unpackDemo(ctx context.Context, scenario demo.Scenario, tools ...string) (d demo.Demo, id string, err error) {
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			return d, "", fault.New(fault.PreconditionFailed, "the demo needs %s, which is not on the PATH", tool).
				Advise("Install it and start the demo again.")
		}
	}
	t, err := config.Connect()
	if err != nil {
		return d, "", err
	}
	h, err := home.Open()
	if err != nil {
		return d, "", err
	}
	if d, err = demo.Unpack(ctx, h, scenario); err != nil {
		return d, "", err
	}
	id = d.Name
	if t.Explicit { // other hosts may use the same service for their demos
		host, err := h.HostID()
		if err != nil {
			return d, "", err
		}
		id += "-" + host
	}
	return d, id, nil
}

func (a *app) runDemo(ctx context.Context, scenario demo.Scenario, about string) error {
	d, id, err := a.unpackDemo(ctx, scenario, "git", "go", "sh")
	if err != nil {
		return err
	}
	a.say("%s", about)
	o := runOptions{file: d.Spec, id: id, yes: true, note: "--yes, since it is the demo's own", explain: true}
	a.say("repository %s, spec %s%s", d.Repo, d.Spec, render.Around(", issue ", d.Issue, ""))
	if d.Issue != "" {
		o.flags = []config.Flag{config.GoalFile(d.Issue)}
	}
	return a.runLoop(ctx, o)
}
