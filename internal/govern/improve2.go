package govern

import "pawl/internal/spec"

// Improve2 holds version 2 of the rules of the metric protocol, as far as they differ from version 1: an idea that was
// discarded is recognised in other words too.
type Improve2 struct{ Improve }

// Improve2Of returns the rules of a loop with that spec.
func Improve2Of(s spec.Spec) Improve2 { return Improve2{ImproveOf(s)} }

// Rewords reports whether an idea that was discarded is recognised in other words too.
func (Improve2) Rewords() bool { return true }
