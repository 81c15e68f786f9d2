package govern

import (
	"fmt"

	"pawl/internal/evidence"
	"pawl/internal/loop"
	"pawl/internal/spec"
)

// ScratchDue reports whether the head has to be judged from scratch before it is proposed: other changes of the loop
// may have written to the caches in which it was judged. A judgement finds in caches what earlier kept changes wrote,
// and in what judge.keep names what any change wrote. A loop that is a later step of a task begins with code of the
// steps before it, which its baseline has run.
func ScratchDue(s loop.State, sp spec.Spec) bool {
	if sp.Sandbox.Use == spec.Off || s.Base == "" || s.Head == s.Base || s.Scratch != nil && s.Scratch.Head == s.Head {
		return false
	}
	shared := len(sp.Judge.Keep) > 0 || s.Begun != ""
	if s.Course != nil {
		return shared || s.Iteration > 1
	}
	return s.KeptCount > 1 || s.KeptCount == 1 && (shared || s.Backtrack != nil)
}

// Reproduced returns in words why a measurement from scratch does not support what the loop has kept, "" if it does.
func (r Improve) Reproduced(s loop.State, metric evidence.Decimal, further map[string]evidence.Decimal) string {
	if _, sentence := r.Broken(s.BaselineMetrics, further); sentence != "" {
		return sentence
	}
	switch s.Judging {
	case loop.JudgedBySamples: // the claim compares head and baseline
		return ""
	case loop.JudgedExactly:
		if evidence.TargetMet(r.Direction, metric, *s.Best) {
			return ""
		}
	default:
		if m, _ := r.Decide(*s.Baseline, metric); m.Kept {
			return ""
		}
	}
	return fmt.Sprintf("it measures %s, where it measured %s before", metric, s.Best)
}
