package metric_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/metric"
)

func TestAThresholdIsANumberOrAPercentage(t *testing.T) {
	for _, c := range []struct{ text, json, of200, of0 string }{
		{"0.5", `0.5`, "0.5", "0.5"}, {"2%", `"2%"`, "4.00", "0.00"}, {" 1.50 % ", `"1.50%"`, "3.0000", "0.0000"}, {"0", `0`, "0", "0"},
	} {
		threshold, err := metric.ParseThreshold(c.text)
		require.NoError(t, err, c.text)
		data, err := json.Marshal(threshold)
		require.NoError(t, err)
		require.Equal(t, c.json, string(data))
		var back metric.Threshold
		require.NoError(t, json.Unmarshal(data, &back))
		require.Equal(t, threshold, back)
		require.Zero(t, threshold.Of(metric.MustDecimal("200")).Cmp(metric.MustDecimal(c.of200)))
		require.Zero(t, threshold.Of(metric.MustDecimal("-200")).Cmp(metric.MustDecimal(c.of200)), "a share of a negative number is no negative threshold")
		require.Zero(t, threshold.Of(metric.Decimal{}).Cmp(metric.MustDecimal(c.of0)))
	}
	for _, bad := range []string{"", "%", "2 percent", "NaN", "1e999%", "2%%"} {
		_, err := metric.ParseThreshold(bad)
		require.Error(t, err, bad)
	}
	var read metric.Threshold
	require.NoError(t, json.Unmarshal([]byte(`"0.10"`), &read), "a number may be quoted, as everywhere")
	require.Equal(t, metric.Threshold{Value: metric.MustDecimal("0.10")}, read)
	require.Error(t, json.Unmarshal([]byte(`"much%"`), &read))
	require.Error(t, json.Unmarshal([]byte(`true`), &read))
}
