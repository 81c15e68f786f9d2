package metric_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"pawl/internal/metric"
)

func TestP7_ARowThatWasNeverMeasuredSaysSoInAColumnOfItsOwn(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	decimal, err := metric.ParseDecimal("10")
	require.NoError(t, err)
	row := metric.Row{Iter: 2, Time: at, Metric: &decimal, Reason: "error:agent", Description: "it failed"}
	require.Len(t, strings.Split(row.String(), "\t"), 6, "one that was measured has the columns of the source")
	row.Unmeasured = true
	require.Equal(t, []string{"2", "2026-01-02T03:04:05Z", "10", "+0.00", "no", "error:agent: it failed", "0", "-", "-", "-", "not measured"},
		strings.Split(row.String(), "\t"))
}
