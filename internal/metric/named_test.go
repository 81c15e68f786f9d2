package metric_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/metric"
)

func TestFurtherMetricsAreTheLinesOfAnOutput(t *testing.T) {
	named := func(out string) map[string]metric.Reading {
		return metric.Named(metric.Output{Stdout: []byte(out)}, nil)
	}
	require.Empty(t, named("12 ms"))
	got := named("METRIC time=11\n METRIC size = 7 kB\nMETRIC loss=NaN\nMETRIC time=12.50\nMETRIC none=\n")
	require.Len(t, got, 2)
	require.Equal(t, []string{"12.50", "7", "kB"}, []string{got["time"].Value.String(), got["size"].Value.String(), got["size"].Unit})
	var many strings.Builder
	for i := range 100 {
		fmt.Fprintf(&many, "METRIC m%d=%d\n", i, i)
	}
	many.WriteString("METRIC m7=70\n")
	got = named(many.String())
	require.Len(t, got, 32)
	require.Equal(t, metric.MustDecimal("70"), got["m7"].Value, "the last of a name, also when there are too many names")
}

func TestAFurtherMetricHasABound(t *testing.T) {
	bound := func(direction, atWorst string) metric.Bound {
		threshold, err := metric.ParseThreshold(atWorst)
		require.NoError(t, err)
		return metric.Bound{Name: "m", Direction: direction, AtWorst: &threshold}
	}
	value := func(text string) map[string]metric.Decimal {
		return map[string]metric.Decimal{"m": metric.MustDecimal(text)}
	}
	for _, c := range []struct {
		bound            metric.Bound
		baseline, change string
		says             string
	}{
		{bound(metric.Lower, "120"), "100", "120", ""},
		{bound(metric.Lower, "120"), "100", "120.1", "m is 120.1, at worst it may be 120"},
		{bound(metric.Higher, "80"), "100", "80", ""},
		{bound(metric.Higher, "80"), "100", "79", "m is 79, at worst it may be 80"},
		{bound(metric.Lower, "1%"), "200", "202.00", ""},
		{bound(metric.Lower, "1%"), "200", "202.01", "m is 202.01, at worst it may be 202.00"},
		{bound(metric.Higher, "1%"), "200", "198", ""},
		{bound(metric.Higher, "1%"), "200", "197", "m is 197, at worst it may be 198.00"},
		{bound(metric.Lower, "1%"), "-200", "-198", ""},
		{bound(metric.Lower, "1%"), "-200", "-197", "m is -197, at worst it may be -198.00"},
		{metric.Bound{Name: "m"}, "1", "1e300", ""},
	} {
		broken, found := metric.Broken([]metric.Bound{c.bound}, value(c.baseline), value(c.change))
		require.Equal(t, c.says != "", found, "%+v", c)
		if found {
			require.Equal(t, c.says, broken.String())
		}
	}
	first, found := metric.Broken([]metric.Bound{{Name: "free"}, bound(metric.Lower, "3"), {Name: "n", AtWorst: &metric.Threshold{}}}, nil, value("4"))
	require.True(t, found)
	require.Equal(t, "m", first.Name)
	_, found = metric.Broken([]metric.Bound{bound(metric.Lower, "1%")}, nil, value("4"))
	require.True(t, found, "nobody knows what 1 % is of")
	missing, found := metric.Broken([]metric.Bound{bound(metric.Lower, "3")}, value("1"), nil)
	require.True(t, found)
	require.Equal(t, "no line METRIC m=<number> that can be compared with its bound", missing.String())
}

func TestFurtherMetricsAreAveraged(t *testing.T) {
	var a metric.Averages
	for _, v := range []string{"1.0", "2.0", "2.0"} {
		before := a
		a = a.With(map[string]metric.Decimal{"m": metric.MustDecimal(v), "n": metric.MustDecimal("7")})
		require.NotEqual(t, before, a)
	}
	require.Equal(t, map[string]metric.Decimal{"m": metric.MustDecimal("1.6666667"), "n": metric.MustDecimal("7")}, a.Values())
	require.Equal(t, "1e-300", metric.Averages{}.With(map[string]metric.Decimal{"m": metric.MustDecimal("1e-300")}).Values()["m"].String())
	values := map[string]metric.Decimal{}
	for i := range 100 {
		values[fmt.Sprint(i)] = metric.MustDecimal("1")
	}
	require.Len(t, a.With(values), 32)
	require.Equal(t, a.With(values), a.With(values))
}
