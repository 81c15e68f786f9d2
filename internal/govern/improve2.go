package govern

import (
	"pawl/internal/phase"
	"pawl/internal/reason"
	"pawl/internal/spec"
)

// Improve2 holds the rules of the metric protocol in version 2, as far as they differ from version 1:
// the guard runs only on what the metric would have kept, what is several changes is judged by its diff too,
// a sealed file that was touched is no reason to stop, and a person who rejects a blocked change drops it.
type Improve2 struct {
	Improve
	BlockSealed bool // limits.onSealed: a person is asked
	Single      bool // limits.atomic: what is several changes is not committed
	Canary      bool // validate.canary
}

// Improve2Of returns the rules of a loop with that spec.
func Improve2Of(s spec.Spec) Improve2 {
	return Improve2{ImproveOf(s), s.OnSealed() == spec.Block, s.Atomic() == spec.Rework, s.Canary()}
}

// CanaryDue reports whether the code in scope is broken at the baseline, for the guard to notice.
func (r Improve2) CanaryDue() bool { return r.Guard && r.Canary }

// OneChange reports whether a change that is several at once is kept off the branch.
func (r Improve2) OneChange() bool { return r.Single }

// AfterCheck decides what follows the check command. Whether the change is one is decided when its diff is
// known.
func (r Improve2) AfterCheck(t Tries, passed, _ bool) Move {
	return r.Improve.AfterCheck(t, passed, true)
}

// AfterCommit decides what follows P4. A sealed file that was touched, and several changes at once where
// the spec does not take them with a note, cost a rework and then the iteration (P2, P3). A secret blocks.
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

// AfterReject decides what follows a person's rejection of a blocked change: it is dropped, and the
// loop goes on.
func (r Improve2) AfterReject(blocked Move, _, _ string) Move { return discard(blocked.Drop) }

// AfterHalt returns how a loop ends that was halted while a change was blocked.
func (Improve2) AfterHalt(why string) End { return BlockedGivenUp.Because(why) }

// AfterVerify decides what follows P5. Where the metric would not keep the change, no guard could save it.
func (r Improve2) AfterVerify(v Measurement) Move {
	m := r.Improve.AfterVerify(v)
	if m.Do == Enter && !v.Better {
		m.To = phase.Decide
	}
	return m
}
