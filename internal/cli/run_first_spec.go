package cli

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"pawl/internal/cli/render"
	"pawl/internal/cli/scaffold"
	"pawl/internal/fault"
	"pawl/internal/git"
	"pawl/internal/git/userrepo"
	"pawl/internal/lib/list"
	"pawl/internal/lib/shell"
	"pawl/internal/spec"
	"pawl/internal/spec/agents"
	"pawl/internal/spec/kind"
)

// offersSpec writes and commits a first spec, if `pawl run` finds none and a person at the terminal wants it. It changes
// the options to those of that spec.
func (a *app) offersSpec(parent context.Context, o *runOptions) error {
	if o.named || o.yes || a.json || !a.terminal() {
		return nil
	}
	if _, err := os.Lstat(o.file); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	wanted, err := o.initial()
	if err != nil {
		return err
	}
	ctx, stop := a.untilSignal(parent)
	defer stop()
	first, err := a.propose(ctx, wanted)
	if err != nil {
		return err
	}
	if err := a.fits(ctx, first, *o); err != nil {
		return err
	}
	if err := a.agrees(ctx, first); err != nil {
		return err
	}
	if err := a.keep(first.path, first.text, false); err != nil {
		return err
	}
	o.file, o.commits = nearest(first.path), true
	return nil
}

// initial returns how a spec is drafted for a command line without one.
func (o runOptions) initial() (initOptions, error) {
	wanted := initOptions{dir: ".", kind: kind.All[0].Name, starts: true}
	if o.kind != "" {
		wanted.kind = o.kind
	}
	if k, err := kind.Of(wanted.kind); err == nil && !k.Loop {
		return wanted, usage("a " + k.Name + " is not started by run; write its spec with `pawl init --kind " + k.Name + "`")
	}
	return wanted, nil
}

// startable returns why no loop can start in the repository now, before anything is asked or tried.
func (first firstSpec) startable(ctx context.Context) error {
	if !first.tracked || !userrepo.Begun(ctx, first.root) {
		steps := next(first.kind, first.path, first.tracked, false)
		steps = slices.DeleteFunc(steps, func(step string) bool { return strings.HasPrefix(step, "pawl ") })
		return fault.New(fault.PreconditionFailed, "a loop starts from a commit, and there is none yet").
			Advise("Commit what is there: " + strings.Join(steps, " && "))
	}
	if u := userrepo.FindUncommitted(ctx, first.root, ""); len(u.Paths) > 0 {
		return fault.New(fault.PreconditionFailed, "the working tree is not clean: %s", git.QuoteSome(u.Paths)).
			Advise("Commit these files, or put them aside: a loop starts from a commit.")
	}
	return nil
}

// completeSpec asks for what a loop needs and only a person knows: the goal, and the agent if none was found.
func (a *app) completeSpec(ctx context.Context, first *firstSpec, found *scaffold.Repository) error {
	if first.kind.Tests && found.Test == "" {
		return fault.New(fault.PreconditionFailed, "no tests were found, so nothing says when the work is done").
			Advise("Write the spec with `pawl init --kind " + first.kind.Name + "`, and fill in verify.command.")
	}
	if first.kind.Reference && found.Metric.Command == "" {
		return fault.New(fault.PreconditionFailed, "nothing here measures anything, so nothing says which change is better").
			Advise("Write the spec with `pawl init`, and fill in verify.command.")
	}
	if first.options.Goal == "" {
		goal, err := a.asksGoal(ctx, first.kind, found.Metric)
		if err != nil {
			return err
		}
		first.options.Goal = goal
	}
	if first.options.OnPath {
		return nil
	}
	for first.options.Command == "" {
		command, err := a.asks(ctx, "No known agent found. Which command starts yours (prompt on stdin)? ")
		if err != nil {
			return err
		}
		if command == "" {
			names := list.Map(scaffold.Agents, func(p agents.Program) string { return p.Name })
			return fault.New(fault.PreconditionFailed, "there is no agent").
				Advise("Install one of " + strings.Join(names, ", ") + ", or name a program of yours.")
		}
		first.options.Command, first.drafted.Agent = command, command
	}
	return nil
}

// fits refuses a spec that no loop could start with, before anybody is asked about it.
func (a *app) fits(ctx context.Context, first firstSpec, o runOptions) error {
	if a.deps.Thin { // the worker is elsewhere
		return nil
	}
	sp, id, err := o.loadDraft(first)
	if err != nil {
		return err
	}
	found, err := a.unready(ctx, id, sp)
	if err != nil || len(found.Problems) == 0 {
		return err
	}
	return refusal(found.Problems, "`pawl init` writes the spec for you to change.")
}

// loadDraft loads a spec that is not written yet.
func (o runOptions) loadDraft(first firstSpec) (spec.Spec, string, error) {
	tmp, err := written(first.path, first.text)
	if err != nil {
		return spec.Spec{}, "", err
	}
	defer tmp.Discard()
	o.file = tmp.Name()
	return o.load()
}

// asksGoal asks what the loop is for. A metric has a goal of its own, which Enter takes.
func (a *app) asksGoal(ctx context.Context, k kind.Kind, metric scaffold.Metric) (string, error) {
	if k.Reference {
		return a.asks(ctx, "Goal [Enter: "+render.Clean(metric.Goal)+"]: ")
	}
	for {
		goal, err := a.asks(ctx, "What is to be built? ")
		if goal != "" || err != nil {
			return goal, err
		}
	}
}

// agrees shows what the spec says, and asks whether to write and commit it.
func (a *app) agrees(ctx context.Context, first firstSpec) error {
	a.screen.Print("\n" + a.screen.Style().Proposed(first.drafted, first.kind.Reference) + "\n")
	file := shell.Quote(nearest(first.path))
	question := "Write " + file + " and commit it, nothing else? [y/N; v: show the file] "
	for {
		if a.reading == nil {
			a.askNow(question)
		}
		typed, err := a.awaits(ctx)
		if err != nil {
			return err
		}
		if a.reads(typed, viewed, func() *pages { return pagesOf("\n" + strings.TrimSpace(first.text) + "\n") }) {
			continue
		}
		switch typed = answered(typed); {
		case yes(typed):
			return nil
		case typed == "" || no(typed):
			return &leaving{code: exitInterrupted, why: "nothing was written. `pawl init` writes the spec for you to change"}
		default:
			a.say("%q is no answer to this", render.Clean(typed))
		}
	}
}

// asks asks a question, and returns the trimmed answer.
func (a *app) asks(ctx context.Context, question string) (string, error) {
	a.listen() // before the question: what was typed before it is dropped
	a.askNow(question)
	return a.awaits(ctx)
}

// awaits returns the trimmed answer to what was asked.
func (a *app) awaits(ctx context.Context) (string, error) {
	a.listen()
	select {
	case <-ctx.Done():
		return "", context.Cause(ctx)
	case line, open := <-a.typed:
		if !open {
			return "", &leaving{code: exitInterrupted, why: "not answered; nothing was written"}
		}
		return strings.TrimSpace(line), nil
	}
}

// nearest returns a path relative to the current folder if it is below it, else the path itself.
func nearest(path string) string {
	dir, err := os.Getwd()
	if err != nil {
		return path
	}
	if resolved, err := filepath.EvalSymlinks(dir); err == nil {
		dir = resolved
	}
	rel, err := filepath.Rel(dir, path)
	if err != nil {
		return path
	}
	return rel
}
