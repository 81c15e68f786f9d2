package govern_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/evidence"
	"pawl/internal/govern"
	"pawl/internal/loop"
	"pawl/internal/spec"
)

func TestP8_SamplesOfTheUnchangedCodeMeetNoTarget(t *testing.T) {
	number := func(s string) *evidence.Decimal { return new(evidence.MustDecimal(s)) }
	s := spec.Spec{Verify: spec.Verify{Direction: evidence.Higher, Target: number("100")}, Limits: spec.Limits{Iterations: 9, Discards: 9}}
	st := loop.State{Baseline: number("99.78"), Best: number("100.009"), Iteration: 1, Discarded: 1}
	require.NotEqual(t, govern.Stop, govern.ImproveOf(s, 3).Before(st).Do, "the reference was measured again, and nothing is kept")
	res := govern.Result(st, s)
	require.Equal(t, "99.78", res.Best.String())
	require.Equal(t, "0.00", res.Delta.String())
	require.NotEqual(t, "target met", res.Recommendation)

	st.KeptCount = 1
	require.Equal(t, "the target 100 is met", govern.ImproveOf(s, 3).Before(st).End.Reason)
	require.Equal(t, "100.009", govern.Result(st, s).Best.String())
	st.KeptCount, st.Baseline = 0, number("100")
	require.Equal(t, "the target 100 is met", govern.ImproveOf(s, 3).Before(st).End.Reason, "by the unchanged code")
}

// TestP9_RecommendedIsNothingAfterAFailureOrAPersonsDecision: nor is anything recommended where no change was measured.
func TestP9_RecommendedIsNothingAfterAFailureOrAPersonsDecision(t *testing.T) {
	sp := spec.Spec{Verify: spec.Verify{Direction: evidence.Higher}}
	number := new(evidence.MustDecimal("80"))
	baseline := loop.State{Baseline: number, Best: number, Status: loop.Completed, ExitStatus: "completed"}
	baseline.Analysis.Add(evidence.Trial{Kept: true, Metric: number})
	measured := baseline
	measured.Analysis.Add(evidence.Trial{N: 1, Metric: number})
	ended := func(s loop.State, end govern.End, proposal string) string {
		s.Status, s.ExitStatus = end.Status, end.ExitStatus
		if proposal != "" {
			s.Proposal = &loop.Proposal{State: proposal}
		}
		return govern.Result(s, sp).Recommendation
	}
	require.Empty(t, ended(baseline, govern.IterationLimit, ""))
	require.Equal(t, "continue", ended(measured, govern.IterationLimit, ""))
	require.Equal(t, "continue", ended(measured, govern.TimeBudget, "open"))
	require.Empty(t, ended(measured, govern.NotReproduced, ""))
	require.Empty(t, ended(measured, govern.Interrupted, ""))
	require.Empty(t, ended(measured, govern.IterationLimit, "rejected"))
}
