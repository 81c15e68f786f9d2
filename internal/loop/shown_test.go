package loop_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/evidence"
	"pawl/internal/evidence/sampling"
	"pawl/internal/loop"
)

// What people see of a change that was just kept is its own metric, not the reference that it was held against, which
// is of the commit before. Decisions wait for fresh samples.
func TestAKeptChangeIsShownWithItsOwnMetric(t *testing.T) {
	metric := func(v string) *evidence.Decimal { return new(evidence.MustDecimal(v)) }
	rules := sampling.Rules{Direction: evidence.Lower}
	sampler := sampling.Start(rules, []evidence.Decimal{*metric("401"), *metric("399"), *metric("402")})
	s := loop.State{}.Apply(loop.Event{Type: loop.BaselineMeasured, Metric: metric("295"), Sampler: &sampler})
	s = s.Apply(loop.Event{Type: loop.SampleTaken, Of: sampling.MeasureReference, Metric: metric("401")})
	require.Equal(t, "295", s.Shown().String(), "further samples of the unchanged code are no gain")

	reference := s.Best.String()
	kept := loop.Iteration{N: 1, Kept: true, Metric: metric("120")}
	s = s.Apply(loop.Event{Type: loop.IterationSucceeded, Metric: metric("120"), Record: &kept})
	require.Equal(t, "120", s.Shown().String())
	require.Equal(t, reference, s.Reached().String(), "decisions don't take the lucky sample")

	for range s.Sampler.Missing() {
		require.Equal(t, "120", s.Shown().String())
		s = s.Apply(loop.Event{Type: loop.SampleTaken, Of: sampling.MeasureReference, Metric: metric("125")})
	}
	require.Equal(t, "125", s.Shown().String(), "its fresh samples")
	require.Equal(t, "125", s.Reached().String())
}
