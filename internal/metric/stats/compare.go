package stats

// The two programs of a comparison: a branch, and the head that it may replace.
const (
	Trunk  = "trunk"
	Branch = "branch"
)

// missed is how many branches that are better by delta the test may judge as no better. It is lower than beta,
// because many changes made a branch. The limit of MaxSamples may raise it.
const missed = .2

// Compare returns what pairs say that were measured in turn for this comparison alone. Their Baseline is the head
// that the branch left, their Head the branch's own head. It is the test of a change (Next) with other arms. Only the
// noise is known from before, so nothing that made the branch look good counts for it. Do is MeasureReference for the
// trunk, MeasureCandidate for the branch, or the verdict.
func (s Sampler) Compare(r Rules, p Pairs) Judgement {
	r = r.full()
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
	keep, discard := boundaries(missed)
	switch whole := n > 0 && len(p.Baseline) == n; {
	case whole && j.LLR >= keep && (j.LLR == certain && !r.Exact || n >= LeastSamples):
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
