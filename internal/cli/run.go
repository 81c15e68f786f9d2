package cli

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"path/filepath"

	"github.com/spf13/cobra"

	"pawl/config"
	"pawl/internal/cli/render"
	"pawl/internal/client/launch"
	"pawl/internal/lib/shell"
	"pawl/internal/loop/rules"
	"pawl/internal/spec"
)

// runOptions say which loop to run and how.
type runOptions struct {
	file string
	id   string
	yes  bool // approve the contract
	sets []string
	goal string // a Markdown file with the goal, "" to use that of the spec
	kind string // of the loop, if the command line says it

	flags []config.Flag // goal and kind

	named   bool // the command line names the spec file
	commits bool // a person has agreed that the spec is committed

	ledger  string // the commit of the ledger to resume from, "" for a new loop
	note    string // the note of the contract's approval
	explain bool   // explain each outcome
	watch   bool   // only watch
	full    bool   // show the whole contract
}

func (a *app) runCommand() *cobra.Command {
	o := runOptions{note: "--yes"}
	cmd := &cobra.Command{
		Use: "run [FILE]", Short: "Start a loop and follow it to its end", Args: arguments(0, 1),
		Long: `Start the loop of a spec file (default pawl.yaml) and follow it to its end. Its
contract is shown and approved first. If there is no pawl.yaml, pawl proposes one at a
terminal, and writes and commits it after your yes. Ctrl-C offers to detach, to pause or to end the
loop; without a terminal it ends the loop with its report. A second Ctrl-C leaves at
once; ` + "`pawl up`" + ` resumes the loop later.`,
		PreRunE: a.command(a.configureWorker),
		RunE: a.command(func(cmd *cobra.Command, args []string) error {
			o.use(args)
			return a.runLoop(cmd.Context(), o)
		}),
	}
	o.starts(cmd)
	return cmd
}

// starts adds the flags of the commands that start a loop.
func (o *runOptions) starts(cmd *cobra.Command) {
	o.chooses(cmd)
	cmd.Flags().BoolVar(&o.yes, "yes", false, "approve the contract")
}

// chooses adds the flags that say which loop it is: to the commands that start one, and to validate.
func (o *runOptions) chooses(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.id, "id", "", "the loop's ID (default: the spec's name, or one made from the repository's folder)")
	cmd.Flags().StringArrayVar(&o.sets, "set", nil, "override a key of the spec: --set limits.iterations=5 (may be repeated)")
	cmd.Flags().StringVar(&o.kind, "kind", "", "the kind of loop, improve or deliver (as --set kind=KIND)")
	cmd.Flags().StringVar(&o.goal, "goal-file", "", "take the goal from a Markdown file, such as an issue (as --set goal=@FILE)")
}

// words returns the arguments and flags that choose this loop, as a person types them.
func (o runOptions) words() string {
	words := []string{filepath.Clean(o.file)}
	given := func(flag, value string) {
		if value != "" {
			words = append(words, "--"+flag, value)
		}
	}
	given("id", o.id)
	given("kind", o.kind)
	given("goal-file", o.goal)
	for _, set := range o.sets {
		given("set", set)
	}
	return shell.Join(words...)
}

// use reads the arguments of those commands.
func (o *runOptions) use(args []string) {
	o.file = "pawl.yaml"
	if len(args) == 1 {
		o.file, o.named = args[0], true
	}
	if o.kind != "" {
		o.flags = append(o.flags, config.Flag{Name: "--kind", Key: "kind", Value: o.kind})
	}
	if o.goal != "" {
		o.flags = append(o.flags, config.GoalFile(o.goal))
	}
}

// load reads the spec and returns it with the loop's ID.
func (o runOptions) load() (spec.Spec, string, error) {
	sp, err := config.LoadSpec(o.file, o.sets, o.flags...)
	if err != nil {
		return sp, "", err
	}
	if f := rules.Contained(sp); f != nil { // the loop would be refused, and Temporal would keep the credential
		return sp, "", f
	}
	id, err := loopID(sp, o.id)
	return sp, id, err
}

// runLoop starts a loop and follows it. If the program has a worker, it runs in this process.
func (a *app) runLoop(parent context.Context, o runOptions) error {
	if err := a.offersSpec(parent, &o); err != nil {
		return err
	}
	sp, id, err := o.load()
	if err != nil {
		return err
	}
	starting, stop := a.untilSignal(parent)
	if err := a.commitsSpec(starting, o, sp); err != nil {
		stop()
		return err
	}
	s, err := a.reach(starting, true)
	if err != nil {
		stop()
		return err
	}
	defer s.close()
	if !a.deps.Thin {
		a.saysEnvironment()
		s.startWorker(parent)
	}
	run, err := s.Start(starting, id, sp, "")
	stop()
	if err != nil {
		return err
	}
	a.say("loop %s on %s", id, where(s, id))
	return a.follow(parent, s, run, o)
}

// where says where a loop or a steward is, and its address in the Temporal UI.
func where(s *session, id string) string {
	engine := "the engine of another pawl"
	switch {
	case s.engine == nil:
		engine = "Temporal"
	case s.engine.Owner():
		engine = "the embedded engine"
	}
	return engine + " at " + s.temporal.Address + render.Around("; Temporal UI ", s.link(id), "")
}

// loopID returns the ID with which the loop is started.
func loopID(sp spec.Spec, asked string) (string, error) {
	suffix := make([]byte, 2)
	rand.Read(suffix)
	id, err := launch.ID(sp, asked, hex.EncodeToString(suffix))
	if err != nil {
		return "", usage("--id " + err.Error())
	}
	return id, nil
}
