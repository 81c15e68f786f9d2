package govern

import (
	"pawl/internal/evidence"
	"pawl/internal/loop"
	"pawl/internal/spec"
)

// Result returns the result of a loop that has ended in that state (P9).
func Result(s loop.State, sp spec.Spec) *loop.Result {
	res := &loop.Result{
		ExitStatus: s.ExitStatus, ErrorCode: s.ErrorCode, Cause: s.Cause, Reason: s.Reason, Recovery: s.Recovery,
		Iterations: s.Iteration, Kept: s.Kept, KeptCount: s.KeptCount, Discarded: s.Discarded,
		Baseline: s.Baseline, Best: s.Best, Branch: s.Branch, Head: s.Head, Proposal: s.Proposal, Usage: s.Usage, Claim: s.Claim, Scratch: s.Scratch, Candidates: s.Candidates,
	}
	if s.Baseline != nil && s.Best != nil {
		res.Delta = new(s.Best.Sub(*s.Baseline))
		met := sp.Verify.Target != nil && evidence.TargetMet(sp.Verify.Direction, *s.Best, *sp.Verify.Target)
		res.Recommendation = evidence.Recommend(met, s.DiscardsInARow, s.Analysis.Trend(sp.Verify.Direction), s.Analysis.KeptRecently())
	}
	return res
}
