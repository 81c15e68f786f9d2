package render

import (
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/loop"
	"pawl/internal/metric"
)

func TestAShareIsOfWhatADifferenceStartedFrom(t *testing.T) {
	for _, c := range []struct{ delta, from, want string }{
		{"-9995.2", "34051.6", "-29 %"}, {"+1", "11", "+9.1 %"}, {"361.6", "23656.2", "+1.5 %"}, {"-0.05", "10", "-0.50 %"}, {"0.005", "10", "+0.050 %"},
		{"5", "-10", "+50 %"}, {"-30", "-10", "-300 %"}, {"-10", "10", "-100 %"},
		{"0", "10", ""}, {"5", "0", ""}, {"7", "0.001", ""}, {"0.00001", "10", ""},
	} {
		require.Equal(t, c.want, share(metric.MustDecimal(c.delta), metric.MustDecimal(c.from)), "%s of %s", c.delta, c.from)
	}
}

// A row of a metric that varies says what its difference is from: the reference is measured again and again.
func TestARowNamesTheReferenceThatSamplesWereComparedWith(t *testing.T) {
	value := metric.MustDecimal("24017.8")
	it := loop.Iteration{Metric: &value, Delta: metric.MustDecimal("361.6"), Samples: 3}
	require.Equal(t, "3 evaluations against 23656.2", evaluated(it))
	it.Samples = 0
	require.Empty(t, evaluated(it))
}
