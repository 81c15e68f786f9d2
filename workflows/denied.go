package workflows

import (
	"cmp"
	"slices"

	"go.temporal.io/sdk/workflow"

	"pawl/internal/govern"
	"pawl/internal/loop"
)

// denied asks a person about the tools that an agent was not allowed to use in a call, if the contract says so
// (`approvals.onDenied: ask`). It reports whether the call is made again because the contract now approves other tools.
func (r *run) denied(ctx workflow.Context, ask string) (again bool, err error) {
	for {
		a, err := r.wait(ctx, loop.Gate{Kind: loop.GateQuestion, Summary: ask, Choices: []string{govern.GoOn, govern.HaltLoop}})
		switch {
		case err != nil:
			return false, err
		case a.Message == loop.MessageAnswer && a.Choice == govern.HaltLoop:
			return false, stop(govern.Interrupted.Because("halted by " + cmp.Or(a.By, "a person") + ": " + ask))
		case a.Message == loop.MessageAnswer:
			return false, nil
		}
		before := r.spec.Approvals.Tools
		approved, err := r.amend(ctx, a)
		if err != nil {
			return false, err
		}
		if approved {
			return !slices.Equal(before, r.spec.Approvals.Tools), nil
		}
	}
}
