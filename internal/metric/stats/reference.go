package stats

import (
	"math"

	"pawl/internal/metric"
)

const (
	mostReference = 64 // evaluations of the head that are remembered
	fresh         = 8  // evaluations of a new head before anything is judged against it
	halves        = 3. // standard errors by which the halves of a reference may differ
	leastTested   = 8  // evaluations that have halves worth comparing
	lastDrifting  = 4  // evaluations that count while the machine drifts, unless the trial made more
	steadyAfter   = 32 // evaluations of one head without a difference, after which the machine is steady again
)

// Reference is what was measured of the head since the last change was kept: the last 64 evaluations. None of them
// was made before the head was chosen.
type Reference struct {
	Values []float64 `json:"values,omitempty"` // on the scale, oldest first
	Drifts bool      `json:"drifts,omitempty"` // the machine has become slower or faster meanwhile
}

// with returns the reference with one more evaluation. A difference between its halves shows that the machine drifts:
// they are of the same program, so nothing else can cause it.
func (r Reference) with(y float64, n Noise) Reference {
	values := make([]float64, 0, mostReference)
	values = append(append(values, r.Values[max(0, len(r.Values)+1-mostReference):]...), y)
	r.Values = values
	switch {
	case len(values) >= leastTested && r.differ(n):
		r.Drifts = true
	case len(values) >= steadyAfter:
		r.Drifts = false
	}
	return r
}

// differ reports whether the halves of the reference differ by more than three standard errors.
func (r Reference) differ(noise Noise) bool {
	half := len(r.Values) / 2
	firstMean, m := noise.centre(r.Values[:half])
	secondMean, n := noise.centre(r.Values[half:])
	return math.Abs(secondMean-firstMean) > halves*noise.Sigma()*math.Sqrt(1/float64(m)+1/float64(n))
}

// counting returns the evaluations of the head that count: all of them, or, if the machine drifts, the last four and
// those that were made in turn with the candidate's.
func (s Sampler) counting() []float64 {
	values := s.Reference.Values
	if s.Reference.Drifts {
		return values[max(0, len(values)-max(lastDrifting, s.Trial.References)):]
	}
	return values
}

// Trial is what was measured of the candidate on trial.
type Trial struct {
	Values     []float64 `json:"values,omitempty"`     // on the scale, oldest first
	References int       `json:"references,omitempty"` // evaluations of the head in this trial
	Since      int       `json:"since,omitempty"`      // evaluations of the candidate since the last of them
}

// Sampler is everything that judging under noise remembers between two evaluations, in less than 8 KB of JSON. Copies
// share nothing that its methods change, so it may be part of workflow state. The zero value is for a loop whose
// metric is not sampled.
type Sampler struct {
	Scale     Scale     `json:"scale,omitzero"`
	Noise     Noise     `json:"noise,omitzero"`
	Reference Reference `json:"reference,omitzero"`
	Trial     Trial     `json:"trial,omitzero"`
}

// Deterministic reports whether three or more evaluations of one commit are equal: then one is enough.
func Deterministic(baseline []metric.Decimal) bool {
	for _, v := range baseline {
		if v.Cmp(baseline[0]) != 0 {
			return false
		}
	}
	return len(baseline) >= 3
}

// Start returns the sampler of a metric, from Rules.Evaluations evaluations of the baseline. They give the scale and
// the noise, and are the first reference.
func Start(r Rules, baseline []metric.Decimal) Sampler {
	s := Sampler{Scale: ScaleOf(r.Direction, baseline...)}
	values := s.Scale.all(baseline)
	s.Noise = calibrate(values, r)
	for _, y := range values {
		s.Reference = s.Reference.with(y, s.Noise)
	}
	return s
}

// Missing returns how many evaluations of the head are needed before a candidate can be judged: none after Start,
// eight after a change was kept.
func (s Sampler) Missing() int {
	if s.Scale == (Scale{}) { // the metric is not sampled
		return 0
	}
	return max(0, fresh-len(s.Reference.Values))
}

// AddReference adds a fresh evaluation of the head.
func (s *Sampler) AddReference(v metric.Decimal) {
	y := s.Scale.of(v)
	s.Noise = s.Noise.next(s.counting(), y)
	s.Reference = s.Reference.with(y, s.Noise)
	s.Trial.References++
	s.Trial.Since = 0
}

// AddCandidate adds an evaluation of the candidate on trial.
func (s *Sampler) AddCandidate(v metric.Decimal) {
	y := s.Scale.of(v)
	s.Noise = s.Noise.next(s.Trial.Values, y)
	s.Trial.Values = append(append([]float64(nil), s.Trial.Values...), y)
	s.Trial.Since++
}

// Settle ends the trial, whatever its result, and drops its samples. What they say about the noise stays.
func (s *Sampler) Settle() { s.Trial = Trial{} }

// HeadChanged drops the reference, because the loop continues from another commit. The samples that selected a change
// are lucky ones; only fresh ones show its value.
func (s *Sampler) HeadChanged() {
	s.Reference = Reference{Drifts: s.Reference.Drifts}
	s.Settle()
}

// Best returns the reference's estimate for the head, in the metric's own unit.
func (s Sampler) Best() metric.Decimal {
	mean, _ := s.Noise.centre(s.counting())
	return decimal(s.Scale.metric(mean), digits)
}

// Sigma returns the standard deviation of one evaluation: in percent, or in the metric's own unit.
func (s Sampler) Sigma() (value float64, unit string) {
	if s.Scale.Log {
		return 100 * math.Expm1(s.Noise.Sigma()), Percent
	}
	return s.Noise.Sigma() * s.Scale.Unit, Absolute
}
