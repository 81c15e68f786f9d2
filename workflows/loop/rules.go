package loop

import (
	"go.temporal.io/sdk/workflow"

	"pawl/internal/loop"
	"pawl/internal/loop/rules"
	"pawl/internal/spec/kind"
)

// loopRules are the decisions that every kind has: whether another iteration starts, who is asked about a proposal, and
// what follows a person's answer to a blocked change.
type loopRules interface {
	Before(loop.State) rules.Move
	AfterProposal() rules.Move
	AfterOpinion(asked int, o rules.Opinion) rules.Move
	AfterReject(blocked rules.Move, approver, note string) rules.Move
	AfterHalt(cause string) rules.End
}

// newestRules chooses the version of the rules for this run, once: the newest one when the run begins. A running loop keeps
// its rules, and takes the newest when it continues as new.
func newestRules(ctx workflow.Context) workflow.Version {
	return workflow.GetVersion(ctx, "rules", 1, workflow.Version(max(rules.NewestVersion, kind.Version())))
}
