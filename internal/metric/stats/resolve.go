package stats

import "math"

// Resolution is which differences a loop can see, for the contract that a person approves.
type Resolution struct {
	Delta    float64 `json:"delta"`              // the improvement that the test looks for
	Smallest float64 `json:"smallest"`           // the smallest improvement that MaxSamples evaluations can show
	Unit     string  `json:"unit"`               // of both: Percent or Absolute
	Samples  int     `json:"samples"`            // evaluations of a candidate that improves by Delta, until it is kept
	TooNoisy bool    `json:"tooNoisy,omitempty"` // more than MaxSamples: such a candidate can't be recognised
}

// Resolve returns which differences the loop can see. With each evaluation, a candidate that improves by exactly δ
// drifts towards the keep boundary K by δ²/2σ². So it takes 2Kσ²/δ² evaluations if the reference is well known.
func (s Sampler) Resolve(r Rules) Resolution {
	r = r.full()
	keep, _ := boundaries(beta)
	reference, _ := s.Noise.centre(s.counting())
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
