package rules_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/loop"
	"pawl/internal/loop/rules"
	"pawl/internal/metric"
	"pawl/internal/spec"
)

func TestP8_SamplesOfTheUnchangedCodeMeetNoTarget(t *testing.T) {
	number := func(s string) *metric.Decimal { return new(metric.MustDecimal(s)) }
	s := spec.Spec{Verify: spec.Verify{Direction: metric.Higher, Target: number("100")}, Limits: spec.Limits{Iterations: 9, Discards: 9}}
	st := loop.State{Baseline: number("99.78"), Best: number("100.009"), Iteration: 1, Discarded: 1}
	require.NotEqual(t, rules.Stop, rules.ImproveOf(s, 3).Before(st).Do, "the reference was measured again, and nothing is kept")
	res := rules.Result(st, s)
	require.Equal(t, "99.78", res.Best.String())
	require.Equal(t, "0.00", res.Delta.String())
	require.NotEqual(t, "target met", res.Recommendation)

	st.KeptCount = 1
	require.Equal(t, "the target 100 is met", rules.ImproveOf(s, 3).Before(st).End.Reason)
	require.Equal(t, "100.009", rules.Result(st, s).Best.String())
	st.KeptCount, st.Baseline = 0, number("100")
	require.Equal(t, "the target 100 is met", rules.ImproveOf(s, 3).Before(st).End.Reason, "by the unchanged code")
}

// TestP9_RecommendedIsNothingAfterAFailureOrAPersonsDecision: nor is anything recommended where no change was measured.
func TestP9_RecommendedIsNothingAfterAFailureOrAPersonsDecision(t *testing.T) {
	sp := spec.Spec{Verify: spec.Verify{Direction: metric.Higher}}
	number := new(metric.MustDecimal("80"))
	baseline := loop.State{Baseline: number, Best: number, Status: loop.Completed, ExitStatus: "completed"}
	baseline.Analysis.Add(metric.Trial{Kept: true, Metric: number})
	measured := baseline
	measured.Analysis.Add(metric.Trial{N: 1, Metric: number})
	ended := func(s loop.State, end rules.End, proposal string) string {
		s.Status, s.ExitStatus = end.Status, end.ExitStatus
		if proposal != "" {
			s.Proposal = &loop.Proposal{State: proposal}
		}
		return rules.Result(s, sp).Recommendation
	}
	require.Empty(t, ended(baseline, rules.IterationLimit, ""))
	require.Equal(t, "continue", ended(measured, rules.IterationLimit, ""))
	require.Equal(t, "continue", ended(measured, rules.TimeBudget, "open"))
	require.Empty(t, ended(measured, rules.NotReproduced, ""))
	require.Empty(t, ended(measured, rules.Interrupted, ""))
	require.Empty(t, ended(measured, rules.IterationLimit, "rejected"))
	sp.Limits.OnExhausted = spec.Ask
	require.Empty(t, ended(measured, rules.IterationLimit, "open"), "a person refused a larger budget")
	require.Equal(t, "continue", ended(measured, rules.DiscardsInARow, "open"))
}
