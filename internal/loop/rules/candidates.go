package rules

import (
	"cmp"
	"slices"

	"pawl/internal/loop"
	"pawl/internal/metric"
	"pawl/internal/metric/reason"
	"pawl/internal/spec"
	"pawl/internal/spec/phase"
)

// Candidates returns how many candidates start at once now (limits.parallel): as many as the spec wants, but no more
// than there are iterations left, because each candidate uses one. It returns 0 if making one after the other is no
// slower, and while candidates wait to be taken.
func Candidates(parallel int, s loop.State) int {
	n := parallel
	if left := s.Budget[loop.Iterations].Remaining; left != nil {
		n = min(n, int(left.Float()))
	}
	if n < 2 || len(s.Candidates) > 0 {
		return 0
	}
	return n
}

// NextCandidate returns the candidate that the next iteration takes, nil if none waits. Candidates that failed their
// trial come first, in the order in which they were begun: they were judged against the head as it still is. Candidates
// that passed follow, the best first.
func NextCandidate(direction string, candidates []loop.Candidate) *loop.Candidate {
	if len(candidates) == 0 {
		return nil
	}
	next := slices.MinFunc(candidates, func(x, y loop.Candidate) int {
		passed := cmp.Compare(rank(x), rank(y))
		if passed == 0 && rank(x) > 0 {
			passed = better(direction, *x.Trial, *y.Trial)
		}
		return cmp.Or(passed, cmp.Compare(x.N, y.N))
	})
	return &next
}

func rank(c loop.Candidate) int {
	if c.Trial != nil && c.Trial.Passed {
		return 1
	}
	return 0
}

// better compares two trials that passed. It is negative if the first is the stronger evidence for its candidate.
func better(direction string, x, y loop.Trial) int {
	switch {
	case x.Samples != nil && y.Samples != nil:
		return cmp.Compare(y.Samples.LLR, x.Samples.LLR)
	case x.Metric == nil || y.Metric == nil:
		return 0
	case direction == metric.Lower:
		return x.Metric.Cmp(*y.Metric)
	}
	return y.Metric.Cmp(*x.Metric)
}

// passedWaits reports whether a candidate that passed its trial still waits. The failed ones are taken before it, and
// they must not end a loop that has something to keep.
func passedWaits(s loop.State) bool {
	return slices.ContainsFunc(s.Candidates, func(c loop.Candidate) bool { return rank(c) > 0 })
}

// exhausted returns the first used-up budget that lets no iteration start, "" for none. Candidates that agents have
// made already are judged and taken even when agents may spend no more.
func exhausted(s loop.State) loop.Resource {
	if len(s.Candidates) == 0 {
		return s.Budget.Exhausted()
	}
	if s.Budget[loop.Iterations].UsedUp() {
		return loop.Iterations
	}
	return StepExhausted(s, false)
}

// Drops decides what happens to candidates that are not made yet when a budget is used up. True: the loop continues
// with those that are made, which takes time and no agent. False: the budget ends the loop, or a person is asked.
func Drops(s loop.State, onExhausted string) bool {
	made := slices.ContainsFunc(s.Candidates, func(c loop.Candidate) bool { return c.Made })
	return made && onExhausted != spec.Ask && StepExhausted(s, false) == ""
}

// AfterTrial decides what follows P5 for a change that was judged before, as a candidate against the head that it was
// committed onto: the same decision as then.
func (r Improve) AfterTrial(t loop.Trial) Move {
	switch {
	case t.Metric == nil:
		return r.AfterVerify(Measurement{TimedOut: t.Reason == reason.VerifySlow, Failed: t.Reason == reason.VerifyFailed})
	case t.Guard != nil:
		return enter(phase.Guard, "")
	}
	return enter(phase.Decide, "")
}

// AfterConflict decides what follows when a candidate conflicts with changes that were kept since it was made: its
// iteration is spent, and its idea is tried again.
func (Improve) AfterConflict() Move { return discard(reason.Conflict) }
