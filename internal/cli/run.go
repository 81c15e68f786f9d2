package cli

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"pawl/config"
	"pawl/internal/act"
	"pawl/internal/fault"
	"pawl/internal/loop"
	"pawl/internal/repo"
	"pawl/internal/spec"
)

// runOptions say which loop to run and how.
type runOptions struct {
	file string
	id   string
	yes  bool // approve the contract
	sets []string

	note    string // with which the contract is approved
	explain bool   // say what each outcome means
}

func (a *app) runCommand() *cobra.Command {
	o := runOptions{note: "--yes"}
	cmd := &cobra.Command{
		Use: "run [FILE]", Short: "Start a loop and follow it to its end", Args: cobra.MaximumNArgs(1),
		Long: `Start the loop of a spec file (default pawl.yaml) and follow it to its end. Its
contract is shown and approved first. Ctrl-C ends the loop with its report; a second
one leaves at once, and the loop stays and can be gone on with.`,
		RunE: a.command(func(cmd *cobra.Command, args []string) error {
			o.file = "pawl.yaml"
			if len(args) == 1 {
				o.file = args[0]
			}
			return a.run(cmd.Context(), o)
		}),
	}
	cmd.Flags().StringVar(&o.id, "id", "", "the loop's ID (default: the spec's name, else one from the repository's folder)")
	cmd.Flags().BoolVar(&o.yes, "yes", false, "approve the contract")
	cmd.Flags().StringArrayVar(&o.sets, "set", nil, "override a key of the spec: --set limits.iterations=5 (may be repeated)")
	return cmd
}

// run starts a loop in this process and follows it.
func (a *app) run(parent context.Context, o runOptions) error {
	sp, err := config.LoadSpec(o.file, o.sets)
	if err != nil {
		return err
	}
	id, err := loopID(sp, o.id)
	if err != nil {
		return err
	}
	starting, stop := a.untilSignal(parent)
	s, err := a.work(starting)
	if err != nil {
		stop()
		return err
	}
	defer s.close()
	w := s.startWorker(parent)
	defer w.stop(stopTimeout)
	run, err := s.start(starting, id, sp)
	stop()
	if err != nil {
		return err
	}
	a.say("loop %s on %s%s", id, where(s), uiHint(s, id))
	return a.follow(parent, s, w, run, o)
}

func where(s *session) string {
	switch {
	case s.engine == nil:
		return "Temporal at " + s.temporal.Address
	case s.engine.Owner():
		return "the embedded engine at " + s.temporal.Address
	}
	return "the engine of another pawl at " + s.temporal.Address
}

func uiHint(s *session, id string) string {
	if link := s.link(id); link != "" {
		return "; Temporal UI " + link
	}
	return ""
}

// taskTimeout is short, so that a worker that dies inside a workflow task costs seconds and not
// the ten that are Temporal's default.
const taskTimeout = 2 * time.Second

// start starts the loop's workflow.
func (s *session) start(ctx context.Context, id string, sp spec.Spec) (client.WorkflowRun, error) {
	goal, _, _ := strings.Cut(strings.TrimSpace(sp.Goal), "\n")
	run, err := s.client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID:                       id,
		TaskQueue:                act.TaskQueue,
		WorkflowTaskTimeout:      taskTimeout,
		WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
		WorkflowIDReusePolicy:    enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		// Else the SDK takes a loop of that name that runs already for the one that it started.
		WorkflowExecutionErrorWhenAlreadyStarted: true,
		StaticSummary:                            loop.Clip(goal, 200),
		Memo: map[string]any{
			"goal": loop.Clip(goal, 500), "branch": "pawl/" + repo.RefName(id), "startedBy": config.User(),
		},
	}, "Improve", sp)
	var already *serviceerror.WorkflowExecutionAlreadyStarted
	switch {
	case errors.As(err, &already):
		return nil, fault.New(fault.LoopAlreadyRunning, "a loop %s is running already", id).
			Advise(fmt.Sprintf("Look at it with `pawl show %s`, end it with `pawl halt %s`, or start another with --id.", id, id))
	case err != nil && ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, s.unreachable(ctx, err)
	}
	return run, nil
}

// loopID is the ID that the loop is started under: the one asked for, which must begin with the
// spec's name, else the name, else one from the repository's folder.
func loopID(sp spec.Spec, asked string) (string, error) {
	switch {
	case asked != "":
		if err := spec.ValidID(asked); err != nil {
			return "", usage("--id " + err.Error())
		}
		if !strings.HasPrefix(asked, sp.Name) {
			return "", usage(fmt.Sprintf("--id %s does not begin with the spec's name, %s", asked, sp.Name))
		}
		return asked, nil
	case sp.Name != "":
		return sp.Name, nil
	}
	random := make([]byte, 2)
	rand.Read(random)
	folder := strings.Map(func(r rune) rune {
		switch {
		case r < ' ' || r == 0x7f:
			return -1
		case r > unicode.MaxASCII:
			return '-'
		}
		return r
	}, strings.ToValidUTF8(filepath.Base(sp.Repo.Path), ""))
	folder = strings.TrimLeft(strings.TrimSpace(folder), "-./\\")
	if folder == "" {
		folder = "loop"
	}
	return loop.Clip(folder, 60) + "-" + hex.EncodeToString(random), nil
}
