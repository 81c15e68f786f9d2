package spec

import (
	"fmt"

	"pawl/internal/metric"
	"pawl/internal/spec/kind"
)

// mostParallel is the maximum number of agents that work for one loop at the same time.
const mostParallel = 16

// AtOnce returns how many candidates are made at the same time (`limits.parallel`), each by its own agent.
func (s Spec) AtOnce() int { return or(s.Limits.Parallel, 1) }

// Backtracks reports whether the loop may continue from an earlier kept commit on a plateau (`limits.backtrack`).
func (s Spec) Backtracks() bool { return or(s.Limits.Backtrack, false) }

// parallel checks limits.parallel and limits.backtrack, which are only for loops in which a metric decides.
func (s Spec) parallel(c *Checker, k kind.Kind) {
	if n := s.AtOnce(); n > 1 && n <= mostParallel && k.Name != "" && !k.Reference {
		c.Add("limits.parallel", fmt.Sprintf("is %d, but a loop of kind %s makes one change at a time", n, s.Kind), "1, or kind: improve")
	}
	const back = "limits.backtrack"
	switch {
	case !s.Backtracks():
	case k.Name != "" && !k.Reference:
		c.Add(back, "is true, but a loop of kind "+s.Kind+" keeps one change after the other", "false, or kind: improve")
	case s.Limits.ShiftAfter >= s.Limits.Discards:
		c.Add(back, fmt.Sprintf("has no effect, since the loop ends after %s in a row (limits.discards), before a plateau (limits.shiftAfter: %d)", metric.Counted(s.Limits.Discards, "discard"), s.Limits.ShiftAfter), "limits.discards above limits.shiftAfter")
	}
}
