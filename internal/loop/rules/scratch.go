package rules

import (
	"fmt"

	"pawl/internal/loop"
	"pawl/internal/metric"
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

// Controlled reports whether a head that fails from scratch is held against the base, which is judged in the same way. The
// base of a delivery may fail: the loop may be there to mend it.
func (r Improve) Controlled() bool { return r.Version >= 6 }

// NotReproducedBy returns the end of a loop whose head fails from scratch, with how to look at its branch.
func NotReproducedBy(s loop.State, reason string) End {
	end := NotReproduced.Because(reason)
	end.Advice = fmt.Sprintf("Read each commit of the branch (`git log -p %s..%s`), because one of them may have left a forged result in a cache. Run the command that fails in a fresh clone.",
		s.Base[:min(10, len(s.Base))], s.Branch)
	return end
}

// Unproven is the point about a head that fails from scratch as its base does, for whoever decides about the proposal;
// "" for any other.
func Unproven(s loop.State) string {
	if !s.Scratch.Doubtful(s.Head) {
		return ""
	}
	return "unproven: " + s.Scratch.Reason
}

// Marked reports whether only a person may approve what the loop proposes.
func Marked(s loop.State) bool { return s.Suspicious > 0 || s.Scratch.Doubtful(s.Head) }

// ControlFails returns in words why the base does not reproduce from scratch what it measured before, "" if it does. head
// has what the head measured there. Its number is too small because of the machine if it still improves the base's.
func (r Improve) ControlFails(s loop.State, head, base FromScratch) string {
	if _, sentence := r.Broken(s.BaselineMetrics, base.Further); sentence != "" {
		return sentence
	}
	if _, ofHead := r.Broken(s.BaselineMetrics, head.Further); head.Metric == nil || ofHead != "" {
		return ""
	}
	if m, _ := r.Decide(*base.Metric, *head.Metric); !m.Kept {
		return ""
	}
	return fmt.Sprintf("the base measures %s there, where it measured %s before", base.Metric, s.Baseline)
}

// FromScratch is what a commit measured from scratch. Metric is nil if it measured nothing.
type FromScratch struct {
	Metric  *metric.Decimal
	Further map[string]metric.Decimal
}

// Reproduced returns in words why a measurement from scratch does not support what the loop has kept, "" if it does.
func (r Improve) Reproduced(s loop.State, value metric.Decimal, further map[string]metric.Decimal) string {
	if _, sentence := r.Broken(s.BaselineMetrics, further); sentence != "" {
		return sentence
	}
	switch s.Judging {
	case loop.JudgedBySamples: // the claim compares head and baseline
		return ""
	case loop.JudgedExactly:
		if metric.TargetMet(r.Direction, value, *s.Best) {
			return ""
		}
	default:
		if m, _ := r.Decide(*s.Baseline, value); m.Kept {
			return ""
		}
	}
	return fmt.Sprintf("it measures %s, where it measured %s before", value, s.Best)
}
