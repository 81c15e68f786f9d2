package govern_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"pawl/internal/govern"
)

func TestAMetricThatTakesLongIsSaid(t *testing.T) {
	require.Equal(t, "verify takes 2m5s. A loop runs it three times before it begins and at least once for each change, more often if the number varies. To shorten it, name fewer benchmarks (-bench) or lower -benchtime and -count",
		govern.Slow("go test -bench . ./...", 125*time.Second))
	require.Contains(t, govern.Slow("make bench", time.Minute), "varies. Measure less of it")
	require.Contains(t, govern.NotSampled(2, 2*time.Minute), "so it was measured 2 times only. ")
	require.Equal(t, "verify takes 3m0s, so it was measured once. The loop finds out at its baseline whether the metric varies, and by how much", govern.NotSampled(1, 3*time.Minute))
}
