package rules_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"pawl/internal/loop"
	"pawl/internal/loop/rules"
	"pawl/internal/metric"
	"pawl/internal/metric/reason"
	"pawl/internal/metric/stats"
	"pawl/internal/spec"
	"pawl/internal/spec/phase"
)

// sampled returns the rules of a spec with these keys of verify.
func sampled(t *testing.T, verify string) rules.Improve {
	return rules.ImproveOf(noisySpec(t, verify), 1)
}

func noisySpec(t *testing.T, verify string) spec.Spec {
	s, err := spec.Parse([]byte(`{"goal":"g","scope":["a"],"verify":{"command":"x"` + verify + `},"guard":{"command":"y"},"agent":{"command":"z"},"approvals":{"tools":["*"]}}`))
	require.NoError(t, err)
	return s
}

func decimals(values ...string) (all []metric.Decimal) {
	for _, v := range values {
		all = append(all, metric.MustDecimal(v))
	}
	return all
}

// twelve are evaluations of the baseline that differ.
var twelve = decimals("10.1", "9.8", "10.3", "9.9", "10.0", "10.2", "9.7", "10.1", "10.0", "9.9", "10.2", "9.8")

func TestP5_TheBaselineShowsHowTheMetricIsJudged(t *testing.T) {
	for _, c := range []struct {
		verify string
		values []metric.Decimal
		want   string
	}{
		{`,"evidence":"single"`, decimals("10"), loop.JudgedSingly},
		{``, decimals("10"), ""},
		{``, decimals("10", "10"), ""},
		{``, decimals("10", "10.0", "10"), loop.JudgedExactly},
		{``, decimals("10", "10", "10.1"), ""},
		{``, twelve[:11], ""},
		{``, twelve, loop.JudgedBySamples},
		{`,"evidence":"sequential"`, decimals("10", "10", "10"), ""},
		{`,"evidence":"sequential","calibration":13`, twelve, ""},
		{`,"evidence":"sequential"`, twelve, loop.JudgedBySamples},
	} {
		require.Equal(t, c.want, sampled(t, c.verify).Judging(c.values), "%s %v", c.verify, c.values)
	}
}

func TestP5_5_UnderNoiseTheGuardComesBeforeASecondEvaluation(t *testing.T) {
	r := sampled(t, "")
	verdict := func(do string, llr float64) rules.Move {
		return r.AfterVerify(rules.Measurement{Number: true, Samples: &stats.Judgement{Do: do, LLR: llr}})
	}
	require.Equal(t, phase.Guard, verdict(stats.MeasureReference, .1).To, "its first evaluation speaks for it")
	require.Equal(t, rules.Again, verdict(stats.MeasureReference, -.1).Do, "its reference is measured once more")
	require.Equal(t, phase.Guard, verdict(stats.MeasureCandidate, -.1).To, "before it is evaluated again")
	require.Equal(t, phase.Guard, verdict(stats.Keep, 3).To)
	require.Equal(t, phase.Decide, verdict(stats.Discard, -3).To, "no guard could save it")
	require.Equal(t, reason.VerifyFailed, r.AfterVerify(rules.Measurement{Failed: true, Samples: &stats.Judgement{}}).Reason)
	require.Equal(t, phase.Decide, r.AfterVerify(rules.Measurement{Number: true}).To, "one measurement is judged as before")

	r.Guard = false
	require.Equal(t, phase.Decide, verdict(stats.MeasureReference, -.1).To, "without a guard there is nothing to do first")
}

func TestP6_AVerdictBySamplesIsKeepDiscardOrInconclusive(t *testing.T) {
	r := sampled(t, "")
	keep := r.Sampled(stats.Judgement{Do: stats.Keep, Samples: 3})
	require.True(t, keep.Kept && keep.Measured && keep.Judged && keep.Do == rules.Finish)
	discard := r.Sampled(stats.Judgement{Do: stats.Discard, Samples: 1})
	require.True(t, !discard.Kept && discard.Measured && discard.Reason == "")
	unclear := r.Sampled(stats.Judgement{Do: stats.Inconclusive, Samples: 32})
	require.True(t, !unclear.Kept && unclear.Reason == reason.Inconclusive)
	require.False(t, r.Sampled(stats.Judgement{Do: stats.Inconclusive}).Measured, "nothing was measured of it")
}

func TestP6_MinDeltaMayBeAShareOfTheReference(t *testing.T) {
	r := sampled(t, `,"minDelta":"2%"`)
	for value, kept := range map[string]bool{"101.9": false, "102": true, "102.1": true} {
		m, _ := r.Decide(metric.MustDecimal("100"), metric.MustDecimal(value))
		require.Equal(t, kept, m.Kept, value)
	}
}

func TestP9_WhatIsMeasuredWhenALoopIsOver(t *testing.T) {
	ten := metric.MustDecimal("10")
	begun := loop.State{Baseline: &ten, KeptCount: 1, Budget: loop.NewBudget(map[loop.Resource]metric.Decimal{loop.ActiveTime: loop.Count(1000)})}
	judged := func(how string, change func(*loop.State)) loop.State {
		s := begun
		s.Judging = how
		if change != nil {
			change(&s)
		}
		return s
	}
	late := func(s *loop.State) { s.Budget = s.Budget.Spend(loop.ActiveTime, loop.Count(1000)) }
	for name, c := range map[string]struct {
		verify string
		state  loop.State
		want   bool
	}{
		"samples":                                 {"", judged(loop.JudgedBySamples, nil), true},
		"a person has halted it":                  {"", judged(loop.JudgedBySamples, func(s *loop.State) { s.HaltRequested = "enough" }), false},
		"there is no time left":                   {"", judged(loop.JudgedBySamples, late), false},
		"there is none left and nothing was kept": {"", judged(loop.JudgedBySamples, func(s *loop.State) { late(s); s.KeptCount = 0 }), true},
		"a metric that does not vary needs none":  {"", judged(loop.JudgedExactly, late), true},
		"one measurement":                         {"", judged(loop.JudgedSingly, nil), false},
		"one measurement and a holdout":           {`,"holdout":{"command":"h"}`, judged(loop.JudgedSingly, nil), true},
		"a holdout and no time":                   {`,"holdout":{"command":"h"}`, judged(loop.JudgedExactly, late), false},
		"a loop without a baseline":               {"", judged(loop.JudgedBySamples, func(s *loop.State) { s.Baseline = nil }), false},
		"a loop of earlier rules":                 {"", judged("", nil), false},
	} {
		require.Equal(t, c.want, sampled(t, c.verify).ClaimDue(c.state), name)
	}
}

func TestP6_TheNewHeadIsMeasuredWhereSomethingIsStillComparedWithIt(t *testing.T) {
	sampler := stats.Start(stats.Rules{}, twelve)
	s := loop.State{Sampler: &sampler, Budget: loop.NewBudget(nil), Iteration: 1}
	r := sampled(t, "")
	require.False(t, r.RefreshDue(s), "the baseline is its own reference")
	sampler.HeadChanged()
	require.True(t, r.RefreshDue(s))
	s.Budget = loop.NewBudget(map[loop.Resource]metric.Decimal{loop.Iterations: loop.Count(0)})
	require.False(t, r.RefreshDue(s), "the loop is over, and the claim measures it")
	require.True(t, sampled(t, `,"target":100`).RefreshDue(s), "whether the target is met only fresh samples say")
	s.HaltRequested = "enough"
	require.False(t, sampled(t, `,"target":100`).RefreshDue(s))
	require.False(t, r.RefreshDue(loop.State{Budget: loop.NewBudget(nil)}))
}

func TestA1_WhatNoiseMeansIsSaidInNumbers(t *testing.T) {
	r := sampled(t, "")
	quiet := rules.Noise(stats.Start(r.Samples, twelve), noisySpec(t, ""), 1500*time.Millisecond)
	require.Regexp(t, `^the metric is noisy: it varies by \d\.\d+ % from run to run \(one standard deviation\), and a run takes 1\.5s\. About \d+ runs show whether a change improves it by \d\.\d+ %; a change is run at most 32 times$`, quiet.Says)
	require.Empty(t, quiet.Warnings)

	const fine = `,"minDelta":"0.01%"`
	loud := rules.Noise(stats.Start(sampled(t, fine).Samples, twelve), noisySpec(t, fine), time.Second)
	require.Regexp(t, `^± \d\.\d+ % from run to run; about \d+ runs show whether a change improves it by \d\.\d+ %$`, rules.Spread(stats.Start(r.Samples, twelve), noisySpec(t, "")))
	require.Regexp(t, `^± \d\.\d+ % from run to run; even 32 runs of a change can't show an improvement below \d\.\d+ %$`, rules.Spread(stats.Start(sampled(t, fine).Samples, twelve), noisySpec(t, fine)))
	require.Len(t, loud.Warnings, 2, "%v", loud.Warnings)
	require.Contains(t, loud.Warnings[0], "an improvement of 0.01 % can't be shown within verify.maxSamples (32)")
	require.Contains(t, loud.Warnings[1], "limits.activeTime is 10m:")

	steady := stats.Start(rules.ImproveOf(noisySpec(t, ""), 5).Samples, slices.Repeat(twelve[:1], 12))
	require.Equal(t, "the metric has not varied; one evaluation takes 1s. A change is kept after 3 evaluations of it, and evaluated at most 32 times", rules.Noise(steady, noisySpec(t, ""), time.Second).Says)
	require.Equal(t, "± 0; a change is run 3 to 32 times", rules.Spread(steady, noisySpec(t, "")))
	require.NotContains(t, rules.Told(steady, noisySpec(t, "")), "improvement of 0")
}

func TestP6_ABoundIsNotWaived(t *testing.T) {
	s := noisySpec(t, "")
	one := metric.Threshold{Value: metric.MustDecimal("1"), Percent: true}
	s.Metrics = []metric.Bound{{Name: "size", Direction: metric.Lower, AtWorst: &one}}
	r := rules.ImproveOf(s, 1)
	of := func(v string) map[string]metric.Decimal {
		return map[string]metric.Decimal{"size": metric.MustDecimal(v)}
	}
	for value, broken := range map[string]bool{"100": false, "101": false, "101.1": true, "99": false} {
		why, sentence := r.Broken(of("100"), of(value))
		require.Equal(t, broken, why == "bound:size", value)
		require.Equal(t, broken, sentence != "", value)
	}
	why, _ := r.Broken(of("100"), nil)
	require.Equal(t, "bound:size", why, "a number that is missing holds no bound")
	require.Equal(t, "another metric is worse than its bound", reason.Meaning(why), fmt.Sprint(why))
}
