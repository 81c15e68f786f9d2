package metric

import (
	"slices"

	"pawl/internal/lib/list"
)

// Which way the metric goes.
const (
	Improving   = "improving"
	Plateau     = "plateau"
	Oscillating = "oscillating"
	Unknown     = "unknown"
)

// Trend returns which way the metric goes, from the last twelve measured values at most (P1). They include those of
// discarded changes: the reference alone could never oscillate.
//
//   - "unknown": fewer than four values.
//   - "improving": the newer half has a kept value that is better than all kept values of the older half, if there are
//     any.
//   - "oscillating": otherwise, if the values turn around at two or more places, and at half or more of the places
//     where they could. Equal neighbours count as one value.
//   - "plateau": otherwise; there is no progress, and no swing that noise would explain.
//
// The direction is a parameter because it may be amended halfway: a value that was kept under the old direction is no
// improvement under the new one.
func (a Analysis) Trend(direction string) string { return trend(a.Points, direction) }

func trend(points []Point, direction string) string {
	if len(points) < 4 {
		return Unknown
	}
	half := len(points) / 2
	var best *Decimal
	for _, p := range points[:half] {
		if p.Kept && (best == nil || better(direction, p.Value, *best)) {
			best = &p.Value
		}
	}
	for _, p := range points[half:] {
		if p.Kept && (best == nil || better(direction, p.Value, *best)) {
			return Improving
		}
	}
	turns, steps, lastTurn := 0, 0, 0
	for i := 1; i < len(points); i++ {
		step := points[i].Value.Cmp(points[i-1].Value)
		if step == 0 {
			continue
		}
		steps++
		if step == -lastTurn {
			turns++
		}
		lastTurn = step
	}
	if turns >= 2 && 2*turns >= steps-1 {
		return Oscillating
	}
	return Plateau
}

func better(direction string, x, y Decimal) bool {
	keep, _ := Decide(direction, y, x, Decimal{})
	return keep
}

// KeptRecently returns how many of the values that Trend uses were kept, without the baseline.
func (a Analysis) KeptRecently() int {
	kept := 0
	for _, p := range a.Points {
		if p.Kept {
			kept++
		}
	}
	return min(kept, a.Kept)
}

// What the final report recommends.
const (
	TargetReached = "target met"
	Diminishing   = "diminishing returns"
	Continue      = "continue"
)

// shiftAfter is the source's number of discards in a row after which the strategy has to change (P8).
const shiftAfter = 5

// Recommend returns the recommendation of the final report (P9). It follows from the changes about which the metric
// decided: neither from those that nothing measured, nor from those that something else than the metric refused.
//
//   - "target met" if it is;
//   - "" if the metric decided about no change;
//   - "diminishing returns" if it refused the last five, or if it does not improve (plateau or oscillating) and at most
//     one of the last values was kept;
//   - "continue" otherwise, also if there is too little to tell.
func (a Analysis) Recommend(direction string, targetMet bool) string {
	decided := list.Filter(a.Points, func(p Point) bool { return !p.Undecided })
	refused := list.Filter(decided, func(p Point) bool { return !p.Kept })
	trend := trend(decided, direction)
	flat := trend == Plateau || trend == Oscillating

	switch {
	case targetMet:
		return TargetReached
	case a.Kept == 0 && len(refused) == 0:
		return ""
	case discardsInARow(decided) >= shiftAfter:
		return Diminishing
	case flat && a.KeptRecently() <= 1:
		return Diminishing
	}
	return Continue
}

// discardsInARow returns how many of the points at the end were not kept.
func discardsInARow(points []Point) int {
	n := 0
	for _, p := range slices.Backward(points) {
		if p.Kept {
			break
		}
		n++
	}
	return n
}
