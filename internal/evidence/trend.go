package evidence

// Which way the metric goes.
const (
	Improving   = "improving"
	Plateau     = "plateau"
	Oscillating = "oscillating"
	Unknown     = "unknown"
)

// Trend says which way the metric goes, from the last twelve measured values at most (P1). They
// are what was measured, also for changes that were discarded: the reference alone could never
// oscillate.
//
//   - "unknown": fewer than four values.
//   - "improving": the newer half has a kept value that is better than all kept in the older
//     half. A value that was kept counts as better when the older half kept none.
//   - "oscillating": otherwise, when the values turn around at two places or more, and at half
//     or more of those where they could have. Equal neighbours count as one value.
//   - "plateau": otherwise; no progress, and no swing that would explain it by noise.
//
// The direction matters when it was amended halfway: what was kept under the old one is no
// improvement under the new.
func (a Analysis) Trend(direction string) string {
	points := a.Points
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
	turns, steps, before := 0, 0, 0
	for i := 1; i < len(points); i++ {
		step := points[i].Value.Cmp(points[i-1].Value)
		if step == 0 {
			continue
		}
		steps++
		if step == -before {
			turns++
		}
		before = step
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

// KeptRecently is how many of the values that Trend looks at were kept, the baseline not
// counted.
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

// shiftAfter is the source's threshold of discards in a row at which the strategy has to
// change (P8).
const shiftAfter = 5

// Recommend is the recommendation of the final report (P9):
//
//   - "target met" when it is;
//   - "diminishing returns" after five discards in a row, and when the metric does not improve
//     (plateau or oscillating) and at most one of the last values was kept;
//   - "continue" otherwise, also when there is too little to tell.
func Recommend(targetMet bool, discardsInARow int, trend string, keptRecently int) string {
	switch {
	case targetMet:
		return TargetReached
	case discardsInARow >= shiftAfter:
		return Diminishing
	case (trend == Plateau || trend == Oscillating) && keptRecently <= 1:
		return Diminishing
	}
	return Continue
}
