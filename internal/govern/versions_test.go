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
