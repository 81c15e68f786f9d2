package metric_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"pawl/internal/metric"
)

var noon = time.Date(2026, 3, 27, 14, 2, 11, 999, time.UTC)

func TestP7_RowIsOneTSVLine(t *testing.T) {
	d := metric.MustDecimal
	m := func(text string) *metric.Decimal { n := d(text); return &n }
	for _, test := range []struct {
		row  metric.Row
		want string
	}{
		{metric.Row{Iter: 0, Time: noon, Metric: m("82.4"), Kept: true, Description: "baseline"}, "0\t2026-03-27T14:02:11Z\t82.4\t+0.00\tyes\tbaseline"},
		{metric.Row{Iter: 3, Time: noon.In(time.FixedZone("", 7200)), Metric: m("84.70"), Delta: d("2.3"), Kept: true, Description: "add branch coverage to tokenizer edge cases"}, "3\t2026-03-27T14:02:11Z\t84.70\t+2.30\tyes\tadd branch coverage to tokenizer edge cases"},
		{metric.Row{Iter: 4, Time: noon, Metric: m("84.7"), Delta: d("-0.1"), Description: "extract\thelper\r\nnow\x00"}, "4\t2026-03-27T14:02:11Z\t84.7\t-0.10\tno\textract helper  now"},
		{metric.Row{Iter: 5, Time: noon, Metric: m("84.7"), Reason: "guard-fail", Description: "drop tests"}, "5\t2026-03-27T14:02:11Z\t84.7\t+0.00\tno\tguard-fail: drop tests"},
		{metric.Row{Iter: 6, Time: noon, Metric: m("84.7"), Reason: "no-change"}, "6\t2026-03-27T14:02:11Z\t84.7\t+0.00\tno\tno-change"},
		{metric.Row{Iter: 7, Time: noon, Description: "bad \xff bytes \u202e evil"}, "7\t2026-03-27T14:02:11Z\t-\t+0.00\tno\tbad \uFFFD bytes  evil"},
	} {
		assert.Equal(t, test.want, test.row.String())
		back, err := metric.ParseRows([]byte(test.want + "\n"))
		require.NoError(t, err)
		require.Len(t, back, 1)
		assert.Equal(t, test.want, back[0].String())
		assert.Equal(t, test.row.Reason, back[0].Reason)
	}
	long := metric.Row{Time: noon, Reason: "policy:maxFiles", Description: strings.Repeat("ä", 500)}.String()
	description := long[strings.LastIndex(long, "\t")+1:]
	assert.Equal(t, metric.MaxDescription, utf8.RuneCountInString(strings.TrimPrefix(description, "policy:maxFiles: ")))
}

func TestP7_RowsAreReadBack(t *testing.T) {
	rows, err := metric.ParseRows([]byte("0\t2026-03-27T14:02:11Z\t82.40\t+0.00\tyes\tbaseline\n\n" +
		"3\t2026-03-27T14:02:11\t84.7\t+2.3\tyes\tadd branch coverage\r\n" +
		"4\t2026-03-27T14:03:45Z\t84.7\t+0.00\tno\terror:verify-crash: try: it\n" +
		"5\t2026-03-27T14:03:45Z\t-\t+0.00\tyes\tdeliver it"))
	require.NoError(t, err)
	require.Len(t, rows, 4)
	assert.Nil(t, rows[3].Metric, "a delivery needs none")
	assert.Equal(t, "82.40", rows[0].Metric.String())
	assert.Equal(t, time.Date(2026, 3, 27, 14, 2, 11, 0, time.UTC), rows[1].Time, "the source's example has no zone")
	assert.Equal(t, "error:verify-crash", rows[2].Reason)
	assert.Equal(t, "try: it", rows[2].Description)

	for name, text := range map[string]string{
		"fields": "1\t2", "iteration": "x\t2026-03-27T14:02:11Z\t1\t+0\tno\td", "time": "1\tnow\t1\t+0\tno\td",
		"metric": "1\t2026-03-27T14:02:11Z\tNaN\t+0\tno\td", "delta": "1\t2026-03-27T14:02:11Z\t1\t\tno\td", "kept": "1\t2026-03-27T14:02:11Z\t1\t+0\tmaybe\td",
	} {
		rows, err := metric.ParseRows([]byte("0\t2026-03-27T14:02:11Z\t1\t+0.00\tyes\tbaseline\n" + text))
		assert.ErrorContains(t, err, "loop-results.tsv line 2: ", name)
		assert.Len(t, rows, 1, name)
	}
}

func FuzzRows(f *testing.F) {
	f.Add([]byte("0\t2026-03-27T14:02:11Z\t82.40\t+0.00\tyes\tbaseline\n"), "description", "guard-fail")
	f.Add([]byte("4\t2026-03-27T14:03:45\t84.7\t+0.0\tno\terror:verify-crash: x"), "a\tb\nc", "")
	f.Add([]byte("1\t2026-03-27T14:03:45Z\t-\t+0.00\tyes\tdeliver it\n"), "", "")
	f.Add([]byte("\n\r\n"), "\xff\u2028\u202e", "error:x: y")
	f.Fuzz(func(t *testing.T, data []byte, description, reason string) {
		rows, _ := metric.ParseRows(data)
		decimal := metric.MustDecimal("1.50")
		rows = append(rows, metric.Row{Iter: 1, Time: noon, Metric: &decimal, Description: description, Reason: reason})
		for _, row := range rows {
			line := row.String()
			if strings.Count(line, "\t") != 5 || strings.ContainsAny(line, "\n\r\x00") || !utf8.ValidString(line) {
				t.Fatalf("%q is not one line of six fields", line)
			}
			back, err := metric.ParseRows([]byte(line + "\n"))
			if err != nil || len(back) != 1 {
				t.Fatalf("%q does not read back: %v", line, err)
			}
			if utf8.RuneCountInString(back[0].Description) <= metric.MaxDescription && back[0].String() != line {
				t.Fatalf("%q became %q", line, back[0].String())
			}
		}
	})
}
