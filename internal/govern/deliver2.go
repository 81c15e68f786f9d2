package govern

import (
	"cmp"
	"fmt"
	"strings"

	"pawl/internal/loop"
	"pawl/internal/phase"
	"pawl/internal/spec"
)

// Deliver2 holds the rules of the phase machine in version 2, as far as they differ from version 1: what the tests
// failed by before the first write does not count, and a person who rejects a blocked change drops it and does
// not end the loop.
type Deliver2 struct{ Deliver }

// Deliver2Of returns the rules of a loop with that spec.
func Deliver2Of(s spec.Spec) Deliver2 { return Deliver2{DeliverOf(s)} }

// BaselineDue reports whether the tests run before the first write, so that what fails then is known.
func (r Deliver2) BaselineDue() bool { return r.TestRequired }

// TestsPass reports whether a test run is a success: also where only tests fail that failed before the first
// write, once the change made more of them pass, or the fixer has looked and left them as they are. Where no fix
// is allowed they are left at once.
func (r Deliver2) TestsPass(v TestVerdict) bool {
	return v.Passed || !v.TimedOut && v.Excused && (v.Progress || v.Left || r.FixAttempts == 0)
}

// AfterAgent decides what follows an agent call. A fixer that leaves what is known to fail as it is has done
// what it was asked for.
func (r Deliver2) AfterAgent(c Course, at phase.Phase, v AgentVerdict) Move {
	if at == phase.Fix && v.NoChange && v.Excused {
		return Move{Do: RunGuard}
	}
	return r.Deliver.AfterAgent(c, at, v)
}

// AfterTest decides what follows a test run. What fails as before the first write is named, and does not count.
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

// AfterReject decides what follows a person's rejection of a blocked change: it is dropped, and the agent is
// asked again, with what the person said. Only the person got the loop going again (L9).
func (Deliver2) AfterReject(_ Move, by, note string) Move {
	return Move{Do: Rework, Reason: "the blocked change was rejected by " + cmp.Or(by, "a person") + because(note)}
}

// AfterReview decides what follows the reviewer's answer. Where nobody but the reviewer is asked, one that fails for
// good fails the loop, as every agent of a delivery does.
func (r Deliver2) AfterReview(c Course, o Opinion) Move {
	if o.Failed != "" && !o.TimedOut && r.Diff == spec.Auto && c.Opinions > r.Reworks {
		return stops(AgentFailed.Because("the reviewer failed for good" + because(o.Failed)))
	}
	return r.Deliver.AfterReview(c, o)
}

// AfterHalt returns how a loop ends that was halted while a change was blocked.
func (Deliver2) AfterHalt(why string) End { return BlockedGivenUp.Because(why) }
