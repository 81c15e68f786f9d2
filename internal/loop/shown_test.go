package loop_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/loop"
	"pawl/internal/metric"
	"pawl/internal/metric/stats"
)

// What people see of a change that was just kept is its own metric, not the reference that it was held against, which
// is of the commit before. Decisions wait for fresh samples.
func TestAKeptChangeIsShownWithItsOwnMetric(t *testing.T) {
	value := func(v string) *metric.Decimal { return new(metric.MustDecimal(v)) }
	rules := stats.Rules{Direction: metric.Lower}
	sampler := stats.Start(rules, []metric.Decimal{*value("401"), *value("399"), *value("402")})
	s := loop.State{}.Apply(loop.Event{Type: loop.BaselineMeasured, Metric: value("295"), Sampler: &sampler})
	s = s.Apply(loop.Event{Type: loop.SampleTaken, Of: stats.MeasureReference, Metric: value("401")})
	require.Equal(t, "295", s.Shown().String(), "further samples of the unchanged code are no gain")

	reference := s.Best.String()
	kept := loop.Iteration{N: 1, Kept: true, Metric: value("120")}
	s = s.Apply(loop.Event{Type: loop.IterationSucceeded, Metric: value("120"), Record: &kept})
	require.Equal(t, "120", s.Shown().String())
	require.Equal(t, reference, s.Reached().String(), "decisions don't take the lucky sample")

	for range s.Sampler.Missing() {
		require.Equal(t, "120", s.Shown().String())
		s = s.Apply(loop.Event{Type: loop.SampleTaken, Of: stats.MeasureReference, Metric: value("125")})
	}
	require.Equal(t, "125", s.Shown().String(), "its fresh samples")
	require.Equal(t, "125", s.Reached().String())
}
