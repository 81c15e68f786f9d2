package govern

import (
	"pawl/internal/evidence"
	"pawl/internal/phase"
	"pawl/internal/spec"
)

// Improve2 holds the rules of the metric protocol in version 2, as far as they differ from version 1:
// the guard runs only on what the metric would have kept.
type Improve2 struct{ Improve }

// Improve2Of returns the rules of a loop with that spec.
func Improve2Of(s spec.Spec) Improve2 { return Improve2{ImproveOf(s)} }

// AfterVerify decides what follows P5. The metric is decided on before the guard command runs.
func (r Improve2) AfterVerify(v Measurement) Move {
	m := r.Improve.AfterVerify(v)
	if m.Do == Enter {
		m.To = phase.Decide
	}
	return m
}

// Decide is the decision matrix (P6). What it would keep has to pass the guard command, where there is
// one; what it discards, no guard could save.
func (r Improve2) Decide(reference, metric evidence.Decimal) (Move, evidence.Decimal) {
	m, delta := r.Improve.Decide(reference, metric)
	if m.Kept && r.Guard {
		m = enter(phase.Guard, "")
	}
	return m, delta
}

// AfterGuard decides what follows the guard command (P5.5): what passes is kept.
func (r Improve2) AfterGuard(t Tries, passed bool) Move {
	if passed {
		return Move{Do: Finish, Kept: true, Measured: true, Judged: true}
	}
	return r.Improve.AfterGuard(t, passed)
}
