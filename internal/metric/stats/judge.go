package stats

import (
	"math"

	"pawl/internal/metric"
)

// What a judgement asks for, or its verdict.
const (
	MeasureReference = "reference" // evaluate the head once more
	MeasureCandidate = "candidate" // evaluate the candidate once more
	Keep             = "keep"
	Discard          = "discard"
	Inconclusive     = "inconclusive" // a discard: the maximum of evaluations shows neither
)

// digits is the number of significant digits of means.
const digits = 6

// certain is the log likelihood ratio if there is no noise.
const certain = 1e6

// Judgement is the result of the samples of a candidate so far.
type Judgement struct {
	Do         string         `json:"do"`
	Samples    int            `json:"samples"`         // evaluations of the candidate
	References int            `json:"references"`      // evaluations of the head that count
	Mean       metric.Decimal `json:"mean"`            // of the candidate, in the metric's own unit
	Reference  metric.Decimal `json:"reference"`       // of the head, likewise
	Spread     metric.Decimal `json:"spread"`          // standard deviation of its samples, likewise; 0 for one
	LLR        float64        `json:"llr"`             // log likelihood ratio of an improvement by delta against none
	Drift      bool           `json:"drift,omitempty"` // the machine drifts: only the last references count
}

// Final reports whether the judgement is a verdict.
func (j Judgement) Final() bool {
	return j.Do == Keep || j.Do == Discard || j.Do == Inconclusive
}

// Next returns what to do with the candidate on trial: which program to evaluate once more, or the verdict. It uses
// only the samples since the last keep, and the noise.
func (s Sampler) Next(r Rules) Judgement {
	r = r.full()
	j := s.weigh(r)
	keep, discard := boundaries(beta)
	n := len(s.Trial.Values)
	switch {
	case s.Missing() > 0:
		j.Do = MeasureReference
	case n == 0:
		j.Do = MeasureCandidate
	case s.Trial.References == 0: // a reference that is never renewed would not show that the machine drifts
		j.Do = MeasureReference
	case j.LLR >= keep && (j.LLR == certain && !r.Exact || n >= LeastSamples && s.Trial.References >= LeastSamples):
		j.Do = Keep
	case j.LLR >= keep && n >= LeastSamples:
		j.Do = MeasureReference
	case j.LLR <= discard:
		j.Do = Discard
	case n >= r.MaxSamples:
		j.Do = Inconclusive
	case s.stale():
		j.Do = MeasureReference
	default:
		j.Do = MeasureCandidate
	}
	return j
}

// stale reports whether the head has to be measured before the candidate is measured again. If the machine drifts,
// they are measured in turn. Otherwise the head is due when the candidate was measured as often as the head, because
// more of the candidate alone would say little.
func (s Sampler) stale() bool {
	if s.Reference.Drifts {
		return s.Trial.Since > 0
	}
	return len(s.Reference.Values) < mostReference && len(s.Trial.Values) >= len(s.Reference.Values)
}

// weigh returns the judgement without Do. Its log likelihood ratio is that of an improvement by δ against none, for a
// difference of means d with the variance v: δ(d − δ/2)/v. v is an estimate, so d/√v is Student's t. It is first
// replaced by the equally rare deviate for a known v.
func (s Sampler) weigh(r Rules) Judgement {
	sigma, counting := s.Noise.Sigma(), s.counting()
	reference, b := s.Noise.centre(counting)
	candidate, a := s.Noise.centre(s.Trial.Values)
	j := Judgement{Samples: len(s.Trial.Values), References: len(counting), Drift: s.Reference.Drifts,
		Mean: decimal(s.Scale.metric(candidate), digits), Reference: decimal(s.Scale.metric(reference), digits)}
	if spread := spread(s.Trial.Values); s.Scale.Log {
		j.Spread = decimal(spread*s.Scale.metric(candidate), 3)
	} else {
		j.Spread = decimal(spread*s.Scale.Unit, 3)
	}
	if a == 0 || b == 0 {
		return j
	}
	delta, d := s.delta(r, reference), candidate-reference
	v := sigma * sigma * (1/float64(a) + 1/float64(b))
	switch {
	case v > 0:
		d = normal(d/math.Sqrt(v), s.Noise.Degrees) * math.Sqrt(v)
		j.LLR = min(max(rounded(delta*(d-delta/2)/v, 1e6), 1-certain), certain-1)
	case d > 0 && d >= delta:
		j.LLR = certain
	default:
		j.LLR = -certain
	}
	return j
}

// delta returns the improvement to look for, on the scale, from a metric at y.
func (s Sampler) delta(r Rules, y float64) float64 {
	if r.MinDelta.Sign() <= 0 {
		return s.Noise.Sigma() * 2 / 3
	}
	return s.Scale.distance(r.MinDelta, y)
}

// normal returns the normal deviate that is as rare as a Student's t with that many degrees of freedom (Wallace 1959;
// good to two digits). With the twelve evaluations of a calibration 3.0 becomes 2.5; with a hundred the two agree.
func normal(t, degrees float64) float64 {
	z := math.Sqrt(degrees*math.Log1p(t*t/degrees)) * (8*degrees + 1) / (8*degrees + 3)
	return math.Copysign(z, t)
}
