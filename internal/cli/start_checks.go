package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"pawl/activities/preflight"
	"pawl/activities/workspace"
	"pawl/internal/cli/render"
	"pawl/internal/cli/scaffold"
	"pawl/internal/fault"
	"pawl/internal/git/userrepo"
	"pawl/internal/home"
	"pawl/internal/lib/list"
	"pawl/internal/spec"
)

// unready finds what would keep a loop of the spec from starting on this host, before anything is measured.
func (a *app) unready(ctx context.Context, id string, sp spec.Spec) (preflight.Findings, error) {
	h, err := home.Open()
	if err != nil {
		return preflight.Findings{}, err
	}
	found, err := preflight.Start(ctx, h, id, sp)
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return found, err
}

// startsHere refuses a loop that the worker of this host would refuse: nobody watches a loop that was left to it. A
// worker elsewhere may see other files, so nothing is refused for it.
func (a *app) startsHere(ctx context.Context, o runOptions, id string, sp spec.Spec) error {
	h, err := home.Open()
	if err != nil {
		return err
	}
	_, works := workspace.WorkersEnvironment(h)
	if !works || sp.Repo.Remote() {
		return nil
	}
	a.saysEnvironment()
	if err := a.commitsSpec(ctx, o, sp); err != nil {
		return err
	}
	found, err := a.unready(ctx, id, sp)
	if err != nil || len(found.Problems) == 0 {
		return err
	}
	return refusal(found.Problems, "")
}

// saysEnvironment says if the worker of this host finds other programs than this shell does.
func (a *app) saysEnvironment() {
	h, err := home.Open()
	if err != nil {
		return
	}
	env, works := workspace.WorkersEnvironment(h)
	if !works {
		return
	}
	finds := func(name string) bool { return name == "PATH" || name == "VIRTUAL_ENV" }
	if names := list.Filter(workspace.DifferingHere(env), finds); len(names) > 0 {
		a.say("%s", workspace.OtherEnvironment(names))
	}
}

// obstacleTime is how long init looks for what would keep a loop from starting.
const obstacleTime = 10 * time.Second

// obstacles finds what would keep a loop of a new spec from starting, besides what init says anyway: that the spec is to
// be filled in or committed, and that there is no agent. The spec is written, so no error matters.
func (a *app) obstacles(ctx context.Context, first firstSpec) (obstacles []render.Obstacle) {
	o := runOptions{file: first.path}
	sp, id, err := o.load()
	if err != nil {
		return nil
	}
	ctx, stop := context.WithTimeout(ctx, obstacleTime)
	defer stop()
	found, err := a.unready(ctx, id, sp)
	if err != nil {
		return nil
	}
	u, _ := uncommittedSpec(ctx, o.file, sp)
	for _, p := range found.Problems {
		switch {
		case p.Code == userrepo.DirtyTree && u.Only(o.file), p.Check == "agent" && !first.options.OnPath:
			continue
		case p.Code == userrepo.DirtyTree:
			p.Do = commitAdvice(scaffold.File(first.kind), u)
		}
		obstacles = append(obstacles, render.Obstacle{Check: p.Check, What: p.What, Do: p.Do})
	}
	return obstacles
}

// refusal returns problems as the reason why nothing is started. further is more advice.
func refusal(problems []preflight.Problem, further string) error {
	var texts, do []string
	for _, p := range problems {
		texts = append(texts, p.What)
		if p.Do != "" && !slices.Contains(do, p.Do) {
			do = append(do, p.Do)
		}
	}
	if further != "" {
		do = append(do, further)
	}
	return fault.New(fault.PreconditionFailed, "%s", strings.Join(texts, "; ")).Advise(strings.Join(do, " "))
}
