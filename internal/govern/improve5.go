package govern

import "pawl/internal/spec"

// Improve5 holds version 5 of the rules of the metric protocol, as far as they differ from version 4: a metric that is
// sampled although it was never seen to vary takes three evaluations to keep a change, as any other.
type Improve5 struct{ Improve4 }

// Improve5Of returns the rules of a loop with that spec.
func Improve5Of(s spec.Spec) Improve5 {
	r := Improve5{Improve4Of(s)}
	r.Samples.Exact = true
	return r
}
