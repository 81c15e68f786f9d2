package spec

import (
	"fmt"

	"pawl/internal/kind"
)

// mostParallel is how many agents may be at work for one loop.
const mostParallel = 16

// AtOnce is how many candidates are made at a time (`limits.parallel`), each by an agent of its own.
func (s Spec) AtOnce() int {
	if s.Limits.Parallel == nil {
		return 1
	}
	return *s.Limits.Parallel
}

// parallel checks how many candidates there may be at once: several where a metric says which of them is kept.
func (s Spec) parallel(c *Checker, k kind.Kind) {
	const key = "limits.parallel"
	n := s.AtOnce()
	c.Least(key, n, leasts[key])
	switch {
	case n > mostParallel:
		c.Add(key, fmt.Sprintf("is %d", n), fmt.Sprintf("at most %d", mostParallel))
	case n > 1 && k.Name != "" && !k.Reference:
		c.Add(key, fmt.Sprintf("is %d, and a loop of kind %s makes one change at a time", n, s.Kind), "1, or kind: improve")
	}
}
