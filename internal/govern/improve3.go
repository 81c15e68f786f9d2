package govern

import (
	"pawl/internal/loop"
	"pawl/internal/spec"
)

// Improve3 holds version 3 of the rules of the metric protocol, as far as they differ from version 2: further samples of
// the unchanged code do not meet the target.
type Improve3 struct{ Improve2 }

// Improve3Of returns the rules of a loop with that spec.
func Improve3Of(s spec.Spec) Improve3 { return Improve3{Improve2Of(s)} }

// Before decides whether another iteration starts, and if not, how the loop ends.
func (r Improve3) Before(s loop.State) Move {
	s.Best = s.Reached()
	return r.Improve2.Before(s)
}
