package sampling

// The two that a comparison is about: a branch, and the head that it may replace.
const (
	Trunk  = "trunk"
	Branch = "branch"
)

// missed is the share of branches, better by as much as is looked for, that the test says are no better: fewer than of
// changes, since a branch is the work of many of them. More are not told apart within MaxSamples.
const missed = .2

// Compare returns what pairs say that were made for nothing else, in turn: the head that a branch left as the baseline of
// each, and the branch's own as its head. It is the test of a change (Next) with another arm for each: only the noise is
// known from before, so that nothing that made the branch look good counts for it. Do is MeasureReference for the trunk,
// MeasureCandidate for the branch, or the verdict.
func (s Sampler) Compare(r Rules, p Pairs) Judgement {
	r = r.full()
	r.Beta = min(r.Beta, missed)
	pairs := Sampler{Scale: s.Scale, Noise: s.Noise}
	for i := range max(len(p.Baseline), len(p.Head)) {
		if i < len(p.Baseline) {
			pairs.AddReference(p.Baseline[i])
		}
		if i < len(p.Head) {
			pairs.AddCandidate(p.Head[i])
		}
	}
	j, n := pairs.weigh(r), len(p.Head)
	keep, discard := r.boundaries()
	switch whole := n > 0 && len(p.Baseline) == n; {
	case whole && j.LLR >= keep && (j.LLR == certain || n >= LeastSamples):
		j.Do = Keep
	case whole && j.LLR <= discard:
		j.Do = Discard
	case whole && n >= r.MaxSamples:
		j.Do = Inconclusive
	case p.first() == Baseline:
		j.Do = MeasureReference
	default:
		j.Do = MeasureCandidate
	}
	return j
}
