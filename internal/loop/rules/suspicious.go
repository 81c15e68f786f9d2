package rules

import (
	"cmp"
	"fmt"
	"slices"

	"pawl/internal/loop"
	"pawl/internal/metric"
	"pawl/internal/metric/reason"
	"pawl/internal/spec"
)

// A command that dies half-way and still exits 0 often prints 0, or next to nothing. So an improvement that is too good
// is measured once more before it is kept (verify.suspicious).

// The choices of a person about a suspicious improvement.
const (
	KeepChange    = "keep"
	DiscardChange = "discard"
)

// Suspicious reports whether an improvement is to 0, or by 90 % or more in one step: to a tenth or less of a reference
// that it brings towards 0, to ten times or more of one that it takes away from 0. A reference of 0 has no percentage.
func Suspicious(direction string, reference, value metric.Decimal) bool {
	better, _ := metric.Decide(direction, reference, value, metric.Decimal{})
	if !better || reference.IsZero() {
		return false
	}
	towardsZero := (direction == metric.Lower) == (reference.Sign() > 0)
	if towardsZero {
		return metric.TargetMet(direction, tenfold(value), reference)
	}
	return metric.TargetMet(direction, value, tenfold(reference))
}

func tenfold(d metric.Decimal) (sum metric.Decimal) {
	for range 10 {
		sum = sum.Add(d)
	}
	return sum
}

// Doubts reports whether a change that would be kept is measured once more first.
func (r Improve) Doubts(kept Move, reference, metric metric.Decimal) bool {
	return r.Version >= 6 && kept.Do == Finish && kept.Kept && Suspicious(r.Direction, reference, metric)
}

// Agrees reports whether the second measurement shows what the first one showed.
func (r Improve) Agrees(reference, metric metric.Decimal, second Measurement) bool {
	return second.Reason() == "" && Suspicious(r.Direction, reference, metric)
}

// AfterDoubt decides about a suspicious improvement whose two measurements agree. proven says that the guard has shown
// that it runs the code: its tests were counted, or it noticed functions that only fail.
func (r Improve) AfterDoubt(kept Move, proven bool) Move {
	kept.Suspicious = true
	switch {
	case r.Suspicious == spec.Ask:
		return Move{Do: AskPerson, Choices: []string{KeepChange, DiscardChange, HaltLoop}}
	case r.Suspicious == spec.Mark, proven:
		return kept
	}
	kept.Kept, kept.Reason = false, reason.Suspicious
	return kept
}

// AfterSuspect decides what follows a person's choice about a suspicious improvement.
func (r Improve) AfterSuspect(kept Move, choice, person string) Move {
	switch choice {
	case KeepChange:
		kept.Suspicious = true
		return kept
	case HaltLoop:
		return stops(Interrupted.Because("halted by " + cmp.Or(person, "a person") + ": the improvement is suspicious"))
	}
	kept.Kept, kept.Reason = false, reason.Rejected
	return kept
}

// SuspicionPoints names the suspicious changes that a loop kept or set aside, for whoever decides about its proposal.
func SuspicionPoints(s loop.State) (points []string) {
	for _, k := range s.Kept {
		if k.Suspicious {
			points = append(points, fmt.Sprintf("iteration %d is kept and suspicious: %s", k.Iteration, loop.Clip(k.Description, 80)))
		}
	}
	for _, a := range s.SetAside {
		points = append(points, SetAside(a))
	}
	return slices.Clip(points)
}

// MarkedPoints says about a proposal what a person has to know who decides about it, the unproven head first.
func MarkedPoints(s loop.State) []string {
	points := SuspicionPoints(s)
	if vanished := loop.Vanished(s.Kept); vanished != "" {
		points = append(points, vanished)
	}
	if unproven := Unproven(s); unproven != "" {
		return append([]string{unproven}, points...)
	}
	return points
}

// SetAside names a change that was set aside, with its commit.
func SetAside(a loop.SetAside) string {
	text := fmt.Sprintf("iteration %d is set aside", a.Iteration)
	if a.Metric != nil {
		text += fmt.Sprintf(", it measured %s", a.Metric)
	}
	return text + fmt.Sprintf(": %s (git show %s)", loop.Clip(a.Description, 80), a.Commit[:min(10, len(a.Commit))])
}
