package rules_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"pawl/internal/loop/rules"
)

func TestAMetricThatTakesLongIsSaid(t *testing.T) {
	require.Equal(t, "verify takes 2m5s. A loop runs it three times before it begins and at least once for each change, more often if the number varies. To shorten it, name fewer benchmarks (-bench) or lower -benchtime and -count",
		rules.Slow("go test -bench . ./...", 125*time.Second))
	require.Contains(t, rules.Slow("make bench", time.Minute), "varies. Measure less of it")
	require.Contains(t, rules.NotSampled(2, 2*time.Minute), "so it was measured 2 times only. ")
	require.Equal(t, "verify takes 3m0s, so it was measured once. The loop finds out at its baseline whether the metric varies, and by how much", rules.NotSampled(1, 3*time.Minute))
}
