package govern

import (
	"cmp"
	"fmt"
	"strings"

	"pawl/internal/evidence"
	"pawl/internal/loop"
	"pawl/internal/phase"
	"pawl/internal/spec"
)

// Deliver2 holds version 2 of the rules of the phase machine, as far as they differ from version 1. Failures from
// before the first write do not count. When a person rejects a blocked change, the change is dropped and the loop
// continues.
type Deliver2 struct{ Deliver }

// Deliver2Of returns the rules of a loop with that spec.
func Deliver2Of(s spec.Spec) Deliver2 { return Deliver2{DeliverOf(s)} }

// BaselineDue reports whether the tests run before the first write, to learn which tests fail then.
func (r Deliver2) BaselineDue() bool { return r.TestRequired }

// TestsPass reports whether a test run is a success. It also is a success if the only failing tests failed before the
// first write, and either more tests pass than then, or the fixer has looked and changed nothing. If no fix is
// allowed, such a run is a success at once.
func (r Deliver2) TestsPass(v TestVerdict) bool {
	return v.Passed || !v.TimedOut && v.Excused && (v.Progress || v.Left || r.FixAttempts == 0)
}

// AfterAgent decides what follows an agent call. A fixer that leaves known failures as they are has done its task.
func (r Deliver2) AfterAgent(c Course, at phase.Phase, v AgentVerdict) Move {
	if at == phase.Fix && v.NoChange && v.Excused {
		return Move{Do: RunGuard}
	}
	return r.Deliver.AfterAgent(c, at, v)
}

// AfterTest decides what follows a test run. Tests that failed before the first write are named and do not count.
func (r Deliver2) AfterTest(c Course, v TestVerdict) Move {
	m := r.Deliver.AfterTest(c, v)
	known := loop.Clip(strings.Join(v.Known, ", "), 500)
	switch {
	case v.Passed && len(v.Known) > 0:
		m.Reason = "failing as before the first write: " + known + because(m.Reason)
	case v.Fewer != "" && m.To == phase.Fix && !m.Regenerate && !m.Undo:
		m.Reason = v.Fewer
	case v.Excused && m.To == phase.Fix && !m.Regenerate && !m.Undo:
		m.Reason = fmt.Sprintf("the only failing tests failed before the first write too (%s), and no more tests pass than then: if the goal is to fix them, fix them, else change nothing", known)
	}
	return m
}

// AfterReject decides what follows when a person rejects a blocked change: the change is dropped, and the agent is
// called again with the person's note. Only a person can get the loop going again (L9).
func (Deliver2) AfterReject(_ Move, by, note string) Move {
	return Move{Do: Rework, Reason: "the blocked change was rejected by " + cmp.Or(by, "a person") + because(note)}
}

// AfterReview decides what follows the reviewer's answer. If only the reviewer is asked and fails for good, the loop
// fails, as with every agent of a delivery.
func (r Deliver2) AfterReview(c Course, o Opinion) Move {
	if o.Failed != "" && !o.TimedOut && r.Diff == spec.Auto && c.Opinions > r.Reworks {
		return stops(AgentFailed.Because("the reviewer failed for good" + because(o.Failed)))
	}
	return r.Deliver.AfterReview(c, o)
}

// AfterHalt returns how a loop ends when it is halted while a change is blocked.
func (Deliver2) AfterHalt(why string) End { return BlockedGivenUp.Because(why) }

// DeliveredWith returns the end of a delivery that reached its goal. It names the tests of the last run that fail as they
// did before the first write, because nobody may read of them otherwise.
func DeliveredWith(last *loop.Judgement) End {
	if last == nil || last.Tests == nil || len(last.Tests.Known) == 0 {
		return Verified
	}
	t := last.Tests
	text := evidence.Counted(t.Failed, "test") + " failed before the first write and still fails: "
	if t.Failed != 1 {
		text = evidence.Counted(t.Failed, "test") + " failed before the first write and still fail: "
	}
	text += loop.Clip(strings.Join(t.Known, ", "), 500)
	if !t.Progress {
		text += ". No more tests pass than before, so read the change"
	}
	return Verified.Because("the change is tested and verified, but " + text)
}
