package govern

import "pawl/internal/spec"

// Improve4 holds version 4 of the rules of the metric protocol, as far as they differ from version 3: evaluations that
// are far from the others, but not rare, are levels of the metric and count as noise.
type Improve4 struct{ Improve3 }

// Improve4Of returns the rules of a loop with that spec.
func Improve4Of(s spec.Spec) Improve4 {
	r := Improve4{Improve3Of(s)}
	r.Samples.Levels = true
	return r
}
