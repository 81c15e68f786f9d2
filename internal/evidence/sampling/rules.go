package sampling

import (
	"cmp"
	"math"

	"pawl/internal/evidence"
)

// Rules are the spec's rules for judging under noise. A field that is zero has the default in its comment.
type Rules struct {
	Direction   string             `json:"direction"`             // of the metric: evidence.Higher or evidence.Lower
	MinDelta    evidence.Threshold `json:"minDelta,omitzero"`     // the improvement to look for; 2/3 of the noise
	Alpha       float64            `json:"alpha,omitempty"`       // false keeps of candidates that change nothing; .04
	Beta        float64            `json:"beta,omitempty"`        // discards of candidates better by MinDelta; .65
	MaxSamples  int                `json:"maxSamples,omitempty"`  // most evaluations of a candidate; 32, 3 to 256
	Calibration int                `json:"calibration,omitempty"` // evaluations of the baseline; 12, between 12 and 64
}

// The defaults of Rules, and their limits. A spec with values beyond the limits is refused.
const (
	DefaultAlpha       = .04
	DefaultBeta        = .65
	DefaultMaxSamples  = 32
	DefaultCalibration = 12

	LeastSamples     = 3   // of each, in one trial, before a keep: the median of three is no spike
	MostSamples      = 256 // so that a Sampler stays small
	LeastCalibration = 12
	MostCalibration  = mostReference
)

// full returns the rules with their defaults filled in, and values beyond a limit set to the limit.
func (r Rules) full() Rules {
	r.Alpha, r.Beta = cmp.Or(r.Alpha, DefaultAlpha), cmp.Or(r.Beta, DefaultBeta)
	r.Alpha, r.Beta = min(max(r.Alpha, 1e-6), .5), min(max(r.Beta, 1e-6), .95)
	if r.Alpha+r.Beta >= 1 { // the boundaries would cross
		r.Beta = (1 - r.Alpha) / 2
	}
	r.MaxSamples = min(max(cmp.Or(r.MaxSamples, DefaultMaxSamples), LeastSamples), MostSamples)
	r.Calibration = min(max(cmp.Or(r.Calibration, DefaultCalibration), LeastCalibration), MostCalibration)
	return r
}

// Evaluations returns how many evaluations of the baseline Start needs.
func (r Rules) Evaluations() int { return r.full().Calibration }

// boundaries returns the log likelihood ratios at which a candidate is kept and discarded (Wald).
func (r Rules) boundaries() (keep, discard float64) {
	r = r.full()
	return math.Log((1 - r.Beta) / r.Alpha), math.Log(r.Beta / (1 - r.Alpha))
}

// FalseKeeps returns how many of that many judged candidates luck keeps at most, on average: alpha for each, if none
// of them changed anything. A report shows it beside the claim.
func (r Rules) FalseKeeps(judged int) float64 { return r.full().Alpha * float64(max(judged, 0)) }
