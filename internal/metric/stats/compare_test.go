package stats_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/metric"
	"pawl/internal/metric/stats"
)

// compare measures two programs in turn until there is a verdict.
func compare(s stats.Sampler, r stats.Rules, trunk, branch func() metric.Decimal) (stats.Judgement, stats.Pairs) {
	var p stats.Pairs
	for {
		switch j := s.Compare(r, p); j.Do {
		case stats.MeasureReference:
			p.Add(stats.Baseline, trunk())
		case stats.MeasureCandidate:
			p.Add(stats.Head, branch())
		default:
			return j, p
		}
	}
}

// TestABranchIsJudgedByItsPairs checks how often a branch replaces the head: seldom if it is as good, mostly if it is
// better by delta, never if it is worse by that.
func TestABranchIsJudgedByItsPairs(t *testing.T) {
	r := stats.Rules{Direction: metric.Lower, MinDelta: percent(t, "2%")}
	replaced := func(gain float64) (share float64) {
		const times = 200
		for seed := range uint64(times) {
			random := seeded(seed)
			s := stats.Start(r, noisy(random, 32, 100))
			j, p := compare(s, r, drawn(random, 100), drawn(random, 100*(1-gain)))
			require.Len(t, p.Head, len(p.Baseline), "whole pairs")
			require.LessOrEqual(t, len(p.Head), stats.DefaultMaxSamples)
			if j.Do == stats.Keep {
				require.GreaterOrEqual(t, len(p.Head), stats.LeastSamples)
				share += 1. / times
			}
		}
		return share
	}
	require.Less(t, replaced(0), .05)
	require.Greater(t, replaced(.02), .5)
	require.Greater(t, replaced(.03), .9)
	require.Zero(t, replaced(-.02))
}

func TestNothingThatWasMeasuredBeforeDecidesAboutABranch(t *testing.T) {
	random := seeded(4)
	s := stats.Start(lower, noisy(random, 12, 100))
	other := s
	for range 20 { // a reference and a trial that are far off, and the same noise
		other.Reference.Values = append(other.Reference.Values, s.Reference.Values[0]+1)
		other.Trial.Values = append(other.Trial.Values, s.Reference.Values[0]-1)
	}
	var p stats.Pairs
	for range 40 {
		require.Equal(t, s.Compare(lower, p), other.Compare(lower, p))
		which := stats.Baseline
		if s.Compare(lower, p).Do == stats.MeasureCandidate {
			which = stats.Head
		}
		p.Add(which, noisy(random, 1, 100)[0])
	}
}

func TestWithoutNoiseOnePairDecides(t *testing.T) {
	s := stats.Start(lower, numbers(100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100))
	j, p := compare(s, lower, always(100), always(99))
	require.Equal(t, stats.Keep, j.Do)
	require.Len(t, p.Head, 1)
	for _, worth := range []float64{100, 101} {
		j, _ = compare(s, lower, always(100), always(worth))
		require.Equal(t, stats.Discard, j.Do)
	}
}

func percent(t *testing.T, text string) metric.Threshold {
	t.Helper()
	v, err := metric.ParseThreshold(text)
	require.NoError(t, err)
	return v
}
