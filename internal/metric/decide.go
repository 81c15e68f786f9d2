package metric

// Directions of a metric.
const (
	Higher = "higher"
	Lower  = "lower"
)

// Decide is the decision matrix (P6). A change is kept if the metric improved strictly in the given direction, and by
// at least minDelta. The threshold is inclusive and exact: 84.7 → 84.8 with a minDelta of 0.1 is kept. A change
// without improvement is never kept, not even with a minDelta of 0. delta is value-reference, whatever the direction.
// Any direction but "lower" counts as "higher".
func Decide(direction string, reference, value, minDelta Decimal) (keep bool, delta Decimal) {
	delta = value.Sub(reference)
	gain := delta
	if direction == Lower {
		gain = delta.Neg()
	}
	return gain.Sign() > 0 && gain.Cmp(minDelta) >= 0, delta
}

// TargetMet reports whether value is at target, or beyond it in the given direction.
func TargetMet(direction string, value, target Decimal) bool {
	if direction == Lower {
		return value.Cmp(target) <= 0
	}
	return value.Cmp(target) >= 0
}
