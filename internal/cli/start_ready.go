package cli

import (
	"context"
	"slices"
	"strings"

	"pawl/activities/preflight"
	"pawl/internal/fault"
	"pawl/internal/home"
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

// refusal returns problems as the reason why nothing is started. more is further advice.
func refusal(problems []preflight.Problem, more string) error {
	var what, do []string
	for _, p := range problems {
		what = append(what, p.What)
		if p.Do != "" && !slices.Contains(do, p.Do) {
			do = append(do, p.Do)
		}
	}
	if more != "" {
		do = append(do, more)
	}
	return fault.New(fault.PreconditionFailed, "%s", strings.Join(what, "; ")).Advise(strings.Join(do, " "))
}
