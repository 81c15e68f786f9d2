package workflows

import (
	"go.temporal.io/sdk/workflow"

	"pawl/internal/evidence"
	"pawl/internal/evidence/sampling"
	"pawl/internal/govern"
	"pawl/internal/kind"
	"pawl/internal/loop"
	"pawl/internal/spec"
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

// improveRules are the decisions of the metric protocol, one method each.
type improveRules interface {
	AfterReview(queued int) govern.Move
	Rewords() bool
	AfterIdea(govern.Tries, govern.IdeaVerdict) govern.Move
	AfterWriter(failed bool) govern.Move
	AfterCheck(t govern.Tries, passed bool) govern.Move
	AfterCommit(govern.Tries, govern.CommitVerdict) govern.Move
	AfterVerify(govern.Measurement) govern.Move
	AfterGuard(t govern.Tries, passed bool) govern.Move
	AfterTrial(loop.Trial) govern.Move
	AfterConflict() govern.Move
	Decide(reference, metric evidence.Decimal) (govern.Move, evidence.Decimal)
	After(loop.State) govern.Move
	AfterAnswer(choice, by string) govern.Move
	ShiftDue(loop.State) bool
	Turn(loop.State) govern.Turn
	Judging(baseline []evidence.Decimal) string
	Sampling() sampling.Rules
	Sampled(sampling.Judgement) govern.Move
	Broken(baseline, values map[string]evidence.Decimal) (why, sentence string)
	RefreshDue(loop.State) bool
	Reserve(loop.State) int64
	ClaimDue(loop.State) bool
	Reproduced(s loop.State, metric evidence.Decimal, further map[string]evidence.Decimal) string
	loopRules
}

// improveVersions are the rules of the metric protocol by version, from 1. A changed decision is a new entry beside the old
// one. A run chooses its version once: a running loop keeps its rules, and takes the newest when it continues as new. The
// phase machine has one version of its rules so far.
var improveVersions = []func(spec.Spec) improveRules{
	func(s spec.Spec) improveRules { return govern.ImproveOf(s, 1) },
	func(s spec.Spec) improveRules { return govern.ImproveOf(s, 2) },
	func(s spec.Spec) improveRules { return govern.ImproveOf(s, 3) },
	func(s spec.Spec) improveRules { return govern.ImproveOf(s, 4) },
	func(s spec.Spec) improveRules { return govern.ImproveOf(s, 5) },
}

// newestRules chooses the version of the rules for this run: the newest one when the run begins.
func newestRules(ctx workflow.Context) workflow.Version {
	return workflow.GetVersion(ctx, "rules", 1, workflow.Version(max(len(improveVersions), kind.Version())))
}
