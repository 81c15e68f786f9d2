package govern

import (
	"pawl/internal/phase"
	"pawl/internal/reason"
	"pawl/internal/spec"
)

// Improve2 holds version 2 of the rules of the metric protocol, as far as they differ from version 1. The guard runs
// only if the metric would keep the change. The diff, too, shows whether a change is several changes. A touched sealed
// file does not stop the loop. When a person rejects a blocked change, the change is dropped.
type Improve2 struct {
	Improve
	BlockSealed bool // limits.onSealed: a person is asked
	Single      bool // limits.atomic: several changes at once are not committed
	Canary      bool // validate.canary
}

// Improve2Of returns the rules of a loop with that spec.
func Improve2Of(s spec.Spec) Improve2 {
	return Improve2{ImproveOf(s), s.OnSealed() == spec.Block, s.Atomic() == spec.Rework, s.Canary()}
}

// CanaryDue reports whether pawl breaks the code in scope at the baseline, to see whether the guard notices.
func (r Improve2) CanaryDue() bool { return r.Guard && r.Canary }

// OneChange reports whether a change that is several at once is kept off the branch.
func (r Improve2) OneChange() bool { return r.Single }

// AfterCheck decides what follows the check command. Whether the change is a single one is decided once its diff is
// known.
func (r Improve2) AfterCheck(t Tries, passed, _ bool) Move {
	return r.Improve.AfterCheck(t, passed, true)
}

// AfterCommit decides what follows P4. A touched sealed file costs a rework and then the iteration, and so do several
// changes at once, unless the spec accepts them with a note (P2, P3). A secret blocks.
func (r Improve2) AfterCommit(t Tries, v CommitVerdict) Move {
	switch {
	case v.Blocks && v.Sealed && !r.BlockSealed:
		m := r.rework(t, reason.Policy+v.Rule)
		m.Why = v.Where
		return m
	case v.Several != "" && v.Rule == "" && !v.Nothing:
		m := r.rework(t, reason.NotAtomic)
		m.Why = reason.NotAtomic + ": " + v.Several
		return m
	}
	m := r.Improve.AfterCommit(t, v)
	if m.Do == Block {
		m.Drop = reason.Policy + v.Rule
	}
	return m
}

// AfterReject decides what follows when a person rejects a blocked change: the change is dropped, and the loop
// continues.
func (r Improve2) AfterReject(blocked Move, _, _ string) Move { return discard(blocked.Drop) }

// AfterHalt returns how a loop ends when it is halted while a change is blocked.
func (Improve2) AfterHalt(why string) End { return BlockedGivenUp.Because(why) }

// AfterVerify decides what follows P5. If the metric would not keep the change, the guard need not run.
func (r Improve2) AfterVerify(v Measurement) Move {
	m := r.Improve.AfterVerify(v)
	if m.Do == Enter && !v.Better {
		m.To = phase.Decide
	}
	return m
}
