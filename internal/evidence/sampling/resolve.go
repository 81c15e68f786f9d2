package sampling

import "math"

// Resolution is what a loop can tell apart, for the contract that a person approves.
type Resolution struct {
	Delta    float64 `json:"delta"`              // the improvement that the test looks for
	Smallest float64 `json:"smallest"`           // the smallest one that MaxSamples evaluations can tell apart
	Unit     string  `json:"unit"`               // of both: Percent or Absolute
	Samples  int     `json:"samples"`            // evaluations of a candidate that improves by Delta, until it is kept
	TooNoisy bool    `json:"tooNoisy,omitempty"` // more than MaxSamples: no such candidate can be told apart
}

// Resolve returns what the loop can tell apart. A candidate that improves by exactly δ drifts to the keep boundary K
// by δ²/2v an evaluation's worth, so that it takes 2Kσ²/δ² evaluations beside a reference that is well known.
func (s Sampler) Resolve(r Rules) Resolution {
	r = r.full()
	keep, _ := r.boundaries()
	reference, _ := centre(s.counting(), s.Noise.Sigma())
	sigma, delta := s.Noise.Sigma(), s.delta(r, reference)
	out := Resolution{Delta: said(s.Scale, delta), Unit: s.Scale.unit(), Samples: 1}
	out.Smallest = said(s.Scale, sigma*math.Sqrt(2*keep/float64(r.MaxSamples)))
	if sigma == 0 {
		return out
	}
	out.Samples = int(min(math.Ceil(2*keep*sigma*sigma/(delta*delta)), 1e9))
	out.Samples = max(out.Samples, LeastSamples)
	out.TooNoisy = out.Samples > r.MaxSamples
	return out
}
