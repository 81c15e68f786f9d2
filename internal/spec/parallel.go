package spec

import (
	"fmt"

	"pawl/internal/evidence"
	"pawl/internal/kind"
)

// mostParallel is the maximum number of agents that work for one loop at the same time.
const mostParallel = 16

// AtOnce returns how many candidates are made at the same time (`limits.parallel`), each by its own agent.
func (s Spec) AtOnce() int {
	if s.Limits.Parallel == nil {
		return 1
	}
	return *s.Limits.Parallel
}

// Backtracks reports whether the loop may continue from an earlier kept commit on a plateau (`limits.backtrack`).
func (s Spec) Backtracks() bool { return s.Limits.Backtrack != nil && *s.Limits.Backtrack }

// parallel checks limits.parallel and limits.backtrack. Both are only for loops in which a metric decides what is
// kept.
func (s Spec) parallel(c *Checker, k kind.Kind) {
	const key = "limits.parallel"
	n := s.AtOnce()
	c.Least(key, n, Leasts[key])
	switch {
	case n > mostParallel:
		c.Add(key, fmt.Sprintf("is %d", n), fmt.Sprintf("at most %d", mostParallel))
	case n > 1 && k.Name != "" && !k.Reference:
		c.Add(key, fmt.Sprintf("is %d, but a loop of kind %s makes one change at a time", n, s.Kind), "1, or kind: improve")
	}
	const back = "limits.backtrack"
	switch {
	case !s.Backtracks():
	case k.Name != "" && !k.Reference:
		c.Add(back, "is true, but a loop of kind "+s.Kind+" keeps one change after the other", "false, or kind: improve")
	case s.Limits.ShiftAfter >= s.Limits.Discards:
		c.Add(back, fmt.Sprintf("has no effect, since the loop ends after %s in a row (limits.discards), before a plateau (limits.shiftAfter: %d)", evidence.Counted(s.Limits.Discards, "discard"), s.Limits.ShiftAfter), "limits.discards above limits.shiftAfter")
	}
}
