package rules

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"pawl/internal/metric"
)

func TestAMeasurementThatLooksCached(t *testing.T) {
	ms := &metric.Form{Units: map[string]string{"": "ms"}}
	size := &metric.Form{Units: map[string]string{"": "B"}}
	times := func(all ...int) (took []time.Duration) {
		for _, n := range all {
			took = append(took, time.Duration(n)*time.Millisecond)
		}
		return took
	}
	values := func(all ...string) (d []metric.Decimal) {
		for _, text := range all {
			d = append(d, metric.MustDecimal(text))
		}
		return d
	}
	require.Contains(t, Cached(ms, values("12.5", "12.5", "12.50"), times(3068, 68, 68)), "looks cached: it printed 12.5 3 times")
	require.Empty(t, Cached(ms, values("12.5", "12.5", "12.6"), times(3068, 68, 68)), "another number")
	require.Empty(t, Cached(ms, values("12.5", "12.5"), times(3068, 1068)), "not in a fraction of the time")
	require.Empty(t, Cached(size, values("12.5", "12.5"), times(3068, 68)), "a size is the same each time")
	require.Empty(t, Cached(ms, values("12.5"), times(3068)))
}
