package stats

import (
	"cmp"
	"math"

	"pawl/internal/metric"
)

// Rules are the spec's rules for judging under noise. A field that is zero has the default in its comment.
type Rules struct {
	Direction   string           // of the metric: metric.Higher or metric.Lower
	MinDelta    metric.Threshold // the improvement to look for; 2/3 of the noise
	MaxSamples  int              // most evaluations of a candidate; 32, 3 to 256
	Calibration int              // evaluations of the baseline; 12, between 12 and 64
	Levels      bool             // spikes that are not rare are levels of the metric, and count as noise
	Exact       bool             // equal evaluations show no noise at all, and no keep takes fewer than LeastSamples
}

// The defaults of Rules, and their limits. A spec with values beyond the limits is refused.
const (
	DefaultMaxSamples  = 32
	DefaultCalibration = 12

	LeastSamples     = 3   // of each, in one trial, before a keep: the median of three is no spike
	MostSamples      = 256 // so that a Sampler stays small
	LeastCalibration = 12
	MostCalibration  = mostReference
)

// The errors of the test.
const (
	alpha = .04 // false keeps of candidates that change nothing
	beta  = .65 // discards of candidates better by MinDelta
)

// full returns the rules with their defaults filled in, and values beyond a limit set to the limit.
func (r Rules) full() Rules {
	r.MaxSamples = min(max(cmp.Or(r.MaxSamples, DefaultMaxSamples), LeastSamples), MostSamples)
	r.Calibration = min(max(cmp.Or(r.Calibration, DefaultCalibration), LeastCalibration), MostCalibration)
	return r
}

// Evaluations returns how many evaluations of the baseline Start needs.
func (r Rules) Evaluations() int { return r.full().Calibration }

// boundaries returns the log likelihood ratios at which a candidate is kept and discarded (Wald), if the share beta of
// those better by MinDelta may be discarded.
func boundaries(beta float64) (keep, discard float64) {
	return math.Log((1 - beta) / alpha), math.Log(beta / (1 - alpha))
}

// FalseKeeps returns how many of that many judged candidates luck keeps at most, on average: alpha for each, if none
// of them changed anything. A report shows it beside the claim.
func FalseKeeps(judged int) float64 { return alpha * float64(max(judged, 0)) }
