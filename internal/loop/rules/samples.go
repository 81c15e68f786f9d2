package rules

import (
	"pawl/internal/loop"
	"pawl/internal/metric"
	"pawl/internal/metric/reason"
	"pawl/internal/metric/stats"
	"pawl/internal/spec"
)

// Several evaluations judge a noisy metric, further metrics have bounds, and the head is measured anew before the loop
// claims anything.

// claimEvaluations is the number of evaluations for a claim: five pairs.
const claimEvaluations = 10

// autoBaseline is how often the baseline is measured to find out whether the metric is noisy.
const autoBaseline = 3

// Judging decides from evaluations of the unchanged code how the metric is judged, "" if more are needed.
func (r Improve) Judging(values []metric.Decimal) string {
	switch {
	case r.Evidence == spec.Single:
		return loop.JudgedSingly
	case r.Evidence == spec.Auto && len(values) < autoBaseline:
		return ""
	case r.Evidence == spec.Auto && stats.Deterministic(values):
		return loop.JudgedExactly
	case len(values) < r.Samples.Evaluations():
		return ""
	}
	return loop.JudgedBySamples
}

// Sampling returns the rules for judging samples.
func (r Improve) Sampling() stats.Rules { return r.Samples }

// Broken returns why the further metrics forbid keeping a change, for the record and as a sentence; "" if they do not.
func (r Improve) Broken(baseline, values map[string]metric.Decimal) (cause, sentence string) {
	if b, broken := metric.Broken(r.Bounds, baseline, values); broken {
		return reason.Bound + b.Name, b.String()
	}
	return "", ""
}

// Sampled is the decision matrix for a change that was judged by samples (P6).
func (r Improve) Sampled(j stats.Judgement) Move {
	m := Move{Do: Finish, Measured: j.Samples > 0, Judged: true, Kept: j.Do == stats.Keep}
	if j.Do == stats.Inconclusive {
		m.Reason = reason.Inconclusive
	}
	return m
}

// RefreshDue reports whether a head that was just kept is measured now, because something will be compared with it.
func (r Improve) RefreshDue(s loop.State) bool {
	return s.Sampler != nil && s.Sampler.Missing() > 0 && s.HaltRequested == "" && (r.Target != nil || r.Before(s).Do != Stop)
}

// Reserve returns how many milliseconds of active time are kept for the claim and for judging from scratch: one and a
// half times the duration of the claim's evaluations, and three times that of a judgement, but never more than half of
// the loop's time. It returns 0 as long as nothing is kept, because there is nothing to measure.
func (r Improve) Reserve(s loop.State) int64 {
	limit := s.Budget[loop.ActiveTime].Limit
	if s.KeptCount == 0 || limit == nil {
		return 0
	}
	var needs int64
	if s.Sampler != nil {
		evaluations := int64(claimEvaluations)
		if r.Holdout {
			evaluations *= 2
		}
		needs = evaluations * s.EvaluationMs * 3 / 2
	}
	if r.Scratch(s) {
		for _, last := range []*loop.Judgement{s.LastGuard, s.LastVerify} {
			if last != nil {
				needs += scratchTakes * last.DurationMs
			}
		}
	}
	return min(needs, int64(limit.Float())/2)
}

// scratchTakes is how many times longer a command is expected to take from scratch: it begins with fewer caches.
const scratchTakes = 3

// ClaimDue reports whether a loop that is over claims how much better its head is than its baseline. A halted loop
// makes no claim, and without time left nothing can be measured.
func (r Improve) ClaimDue(s loop.State) bool {
	return s.Baseline != nil && s.HaltRequested == "" && (s.Judging != loop.JudgedSingly || r.Holdout) && s.Judging != "" &&
		(s.Judging == loop.JudgedExactly && !r.Holdout || s.KeptCount == 0 || StepExhausted(s, false) == "")
}
