package metric_test

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/metric"
)

// A number in another unit is converted, or refused: 999µs is less than 1.01ms.
func TestP5_NumbersAreComparedInOneUnit(t *testing.T) {
	for _, test := range []struct{ first, then, pattern, want string }{
		{first: "1.01ms", then: "999µs", want: "0.999"},
		{first: "999µs", then: "1.01 ms", want: "1010"},
		{first: "45.3 usec per loop", then: "1.2 msec per loop", want: "1200"},
		{first: "59.9s", then: "1m0.5s", want: "60.5"},
		{first: "90m0s", then: "1h30m", want: "5400"},
		{first: "METRIC t=1h30m", then: "METRIC t=89 min", want: "5340"},
		{first: "total 1h30m", then: "total 1h10m", pattern: `total (\S+)`, want: "4200"},
		{first: "METRIC t=1.5s", then: "METRIC t=250ms # quick", want: "0.25"},
		{first: "2 min", then: "90 s", want: "1.5"},
		{first: "1.5MiB", then: "512KiB", want: "0.5"},
		{first: "12 ms/op", then: "800 µs/op", want: "0.8"},
		{first: "time: [1 ms 2 ms 3 ms]", then: "time: [1 ms 990 µs 3 ms]", pattern: `\[\S+ \S+ ([\d.]+)`, want: "0.99"},
		{first: "5 s", then: "7 seconds", want: "7"},
		{first: "1.20ms", then: "1.10ms", want: "1.10"},
		{first: "84.7%", then: "85.70%", want: "85.70"},
		{first: "12 tests", then: "13 things", want: "13"},
		{first: "METRIC n=12", then: "METRIC n=13 things", want: "13"},
		{first: "METRIC n=12rps", then: "METRIC n=13rps", want: "13"},
		{first: "12x", then: "13x", pattern: `(\d+)x`, want: "13"},
		{first: "1 test", then: "2 tests", want: "2"},
		{first: "1.2 Mbit", then: "1.1 Mbit", want: "1.1"},
		{first: "0:59.90", then: "1:00.10", want: "60.10"},
		{first: "1m 02s", then: "58.20s", want: "58.20"},
		{first: "4.0K", then: "0", want: "0"},
		{first: "1.2 MB", then: "0 B", want: "0"},

		{first: "1.2M", then: "980K"},
		{first: "1.2 MB", then: "980 kB"},
		{first: "980", then: "1.2K"},
		{first: "1.2K", then: "980"},
		{first: "5 ms", then: "5 KiB"},
		{first: "1.2 M", then: "980 K"},
		{first: "1.2 M/sec", then: "980"},
		{first: "1.2 Mbit/s", then: "980 kbit/s"},
		{first: "1.2krps", then: "980rps"},
		{first: "1 ns", then: "1e305 h"},
		{first: "METRIC n=120", then: "METRIC n=1OO"},
		{first: "METRIC n=120", then: "METRIC n=1e"},
		{first: "n=120", then: "n=1OO", pattern: `n=(\d+)`},
		{first: "n=120", then: "n=11x", pattern: `n=(.*)`},
	} {
		var pattern *regexp.Regexp
		if test.pattern != "" {
			pattern = regexp.MustCompile(test.pattern)
		}
		first, err := metric.Extract([]byte(test.first), pattern)
		require.NoError(t, err)
		var form *metric.Form
		form = form.With("", first)
		then, err := metric.Extract([]byte(test.then), pattern)
		require.NoError(t, err)
		got, err := form.In("", then)
		if test.want == "" {
			var none *metric.NoNumber
			require.ErrorAs(t, err, &none, "%+v: %s", test, got)
			continue
		}
		require.NoError(t, err, "%+v", test)
		require.Equal(t, test.want, got.String(), "%+v", test)
		require.Equal(t, form, form.With("", then), "the form is that of the first")
	}
}

func TestP5_AnotherUnitIsToldWithBothNumbers(t *testing.T) {
	form := &metric.Form{Units: map[string]string{"": "MB"}}
	_, err := form.In("", metric.Reading{Value: metric.MustDecimal("980"), Unit: "kB"})
	require.EqualError(t, err, "no number to compare: 980 has the unit kB, and the number of the unchanged code has the unit MB")
	got, err := form.In("size", metric.Reading{Value: metric.MustDecimal("980"), Unit: "kB"})
	require.NoError(t, err, "the first of this name")
	require.Equal(t, "980", got.String())
	got, err = (*metric.Form)(nil).In("", metric.Reading{Value: metric.MustDecimal("980"), Unit: "kB"})
	require.NoError(t, err, "a loop of an earlier version does not know")
	require.Equal(t, "980", got.String())
}
