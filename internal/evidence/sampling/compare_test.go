package sampling_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/evidence"
	"pawl/internal/evidence/sampling"
)

// compare measures two programs in turn until there is a verdict.
func compare(s sampling.Sampler, r sampling.Rules, trunk, branch func() evidence.Decimal) (sampling.Judgement, sampling.Pairs) {
	var p sampling.Pairs
	for {
		switch j := s.Compare(r, p); j.Do {
		case sampling.MeasureReference:
			p.Add(sampling.Baseline, trunk())
		case sampling.MeasureCandidate:
			p.Add(sampling.Head, branch())
		default:
			return j, p
		}
	}
}

// TestABranchIsJudgedByItsPairs checks how often a branch replaces the head: seldom if it is as good, mostly if it is
// better by delta, never if it is worse by that.
func TestABranchIsJudgedByItsPairs(t *testing.T) {
	r := sampling.Rules{Direction: evidence.Lower, MinDelta: percent(t, "2%")}
	replaced := func(gain float64) (share float64) {
		const times = 200
		for seed := range uint64(times) {
			random := seeded(seed)
			s := sampling.Start(r, noisy(random, 32, 100))
			j, p := compare(s, r, drawn(random, 100), drawn(random, 100*(1-gain)))
			require.Len(t, p.Head, len(p.Baseline), "whole pairs")
			require.LessOrEqual(t, len(p.Head), sampling.DefaultMaxSamples)
			if j.Do == sampling.Keep {
				require.GreaterOrEqual(t, len(p.Head), sampling.LeastSamples)
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
	s := sampling.Start(lower, noisy(random, 12, 100))
	other := s
	for range 20 { // a reference and a trial that are far off, and the same noise
		other.Reference.Values = append(other.Reference.Values, s.Reference.Values[0]+1)
		other.Trial.Values = append(other.Trial.Values, s.Reference.Values[0]-1)
	}
	var p sampling.Pairs
	for range 40 {
		require.Equal(t, s.Compare(lower, p), other.Compare(lower, p))
		which := sampling.Baseline
		if s.Compare(lower, p).Do == sampling.MeasureCandidate {
			which = sampling.Head
		}
		p.Add(which, noisy(random, 1, 100)[0])
	}
}

func TestWithoutNoiseOnePairDecides(t *testing.T) {
	s := sampling.Start(lower, numbers(100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100))
	j, p := compare(s, lower, always(100), always(99))
	require.Equal(t, sampling.Keep, j.Do)
	require.Len(t, p.Head, 1)
	for _, worth := range []float64{100, 101} {
		j, _ = compare(s, lower, always(100), always(worth))
		require.Equal(t, sampling.Discard, j.Do)
	}
}

func percent(t *testing.T, text string) evidence.Threshold {
	t.Helper()
	v, err := evidence.ParseThreshold(text)
	require.NoError(t, err)
	return v
}
