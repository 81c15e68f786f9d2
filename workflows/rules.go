package workflows

import (
	"go.temporal.io/sdk/workflow"

	"pawl/internal/govern"
	"pawl/internal/kind"
	"pawl/internal/loop"
)

// loopRules are the decisions that every kind has: whether another iteration starts, who is asked about a proposal, and
// what follows a person's answer to a blocked change.
type loopRules interface {
	Before(loop.State) govern.Move
	AfterProposal() govern.Move
	AfterOpinion(asked int, o govern.Opinion) govern.Move
	AfterReject(blocked govern.Move, by, note string) govern.Move
	AfterHalt(why string) govern.End
}

// newestRules chooses the version of the rules for this run, once: the newest one when the run begins. A running loop keeps
// its rules, and takes the newest when it continues as new.
func newestRules(ctx workflow.Context) workflow.Version {
	return workflow.GetVersion(ctx, "rules", 1, workflow.Version(max(govern.NewestVersion, kind.Version())))
}
