package rules

import (
	"fmt"
	"time"

	"pawl/internal/metric"
)

// cachedFraction is how much faster than the first a measurement is that did not measure anything.
const cachedFraction = 5

// Cached says that the measurements of the unchanged code look as if only the first one measured: a time or a rate that is
// the same to the last digit, each time in a fraction of the first one's time. It is "" otherwise.
func Cached(form *metric.Form, values []metric.Decimal, took []time.Duration) string {
	if !form.Timed() || len(values) < 2 {
		return ""
	}
	for i := 1; i < len(values); i++ {
		if values[i].Cmp(values[0]) != 0 || took[i]*cachedFraction > took[0] {
			return ""
		}
	}
	return fmt.Sprintf("verify looks cached: it printed %s %d times, the first time after %s and then after %s. Have it measure anew each time",
		values[0], len(values), lasting(took[0]), lasting(took[len(took)-1]))
}
