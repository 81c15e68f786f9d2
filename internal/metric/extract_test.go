package metric_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"pawl/internal/metric"
	"pawl/test/harness/tier"
)

func TestP5_NumberIsFoundInOutput(t *testing.T) {
	for _, test := range []struct {
		name, out, pattern string
		want, from, metric string
		several            bool
	}{
		{name: "a number alone", out: "84.7\n", want: "84.7"},
		{name: "decimals are kept", out: "84.70", want: "84.70"},
		{name: "the source's example", out: "coverage: 84.7% of statements\n", want: "84.7"},
		{name: "go test -cover", out: "ok  \tpkg\t0.012s\tcoverage: 84.7% of statements\n", want: "84.7", several: true},
		{name: "a unit glued on", out: "12ms", want: "12"},
		{name: "the last of several", out: "1 2 3\n", want: "3", several: true},
		{name: "negative", out: "delta=-0.5", want: "-0.5"},
		{name: "plus sign", out: "+5", want: "5"},
		{name: "exponent", out: "1.5e-3 s", want: "1.5e-3"},
		{name: "letter e is no exponent", out: "12 e", want: "12"},
		{name: "an exponent without digits", out: "12e-x", want: "12"},
		{name: "end of a sentence", out: "The total is 5.", want: "5"},
		{name: "a point before, as bc writes it", out: ".8470", want: "0.8470"},
		{name: "negative, with the minus sign of Unicode", out: "delta −0.5", want: "-0.5"},
		{name: "negative, with the minus sign of Unicode, without a nought", out: "delta −.5", want: "-0.5"},
		{name: "negative, as bc writes it", out: "-.5", want: "-0.5"},
		{name: "thousands separators", out: "1,234.5 ns", want: "1234.5"},
		{name: "millions", out: "(-1,234,567)", want: "-1234567"},
		{name: "a list with commas", out: "1,2,3", want: "3", several: true},
		{name: "a list that is no thousands", out: "1,2,345", want: "345", several: true},
		{name: "a list of decimals with commas", out: "1.5,2.5", want: "2.5", several: true},
		{name: "a table without blanks", out: "test_case_1,64", want: "64", several: true},
		{name: "a name with a hyphen in such a table", out: "BenchmarkSort-8,1234", want: "1234", several: true},
		{name: "a decimal in such a table", out: "0.123,456", want: "456", several: true},
		{name: "a version is no number", out: "score 84.7 (tool v1.2.3)", want: "84.7"},
		{name: "a short version is no number", out: "84.7 by v1.2", want: "84.7"},
		{name: "a prerelease is no number", out: "84.7 by 1.2.3-rc.1+build5", want: "84.7"},
		{name: "a short prerelease is no number", out: "84.7 by v1.2-rc5", want: "84.7"},
		{name: "a range of decimals", out: "1.2-3.4", want: "-3.4", several: true},
		{name: "an address is no number", out: "84.7 from 127.0.0.1", want: "84.7"},
		{name: "a date is no number", out: "84.7 on 2026-03-27", want: "84.7"},
		{name: "a timestamp is no number", out: "2026-03-27T14:02:11.123Z 84.7 2026-03-27T14:02:11+02:00", want: "84.7"},
		{name: "Go's log prefix", out: "2026/03/27 14:02:11 84.7", want: "84.7"},
		{name: "a time is no number", out: "84.7 at 14:02:11", want: "84.7"},
		{name: "hexadecimal is no number", out: "84.7 at 0x1f", want: "84.7"},
		{name: "a range", out: "3-5", want: "-5", several: true},
		{name: "a deviation", out: "METRIC ms=12.5 ± 0.3 ms", want: "12.5", from: "METRIC", metric: "ms"},
		{name: "an ellipsis", out: "1..5", want: "5", several: true},
		{name: "colours", out: "\x1b[1;32m84.7\x1b[0m\n", want: "84.7"},
		{name: "a cursor movement", out: "84.7\x1b[2K\x1b[10;20H", want: "84.7"},
		{name: "a link", out: "\x1b]8;;http://x/99\x1b\\84.7\x1b]8;;\x1b\\", want: "84.7"},
		{name: "a title", out: "\x1b]0;run 5\a84.7", want: "84.7"},
		{name: "bytes that are not UTF-8", out: "\xff\xfe84.7\x80\n", want: "84.7"},
		{name: "a progress line", out: "50%\r100%\r84.7\r\n", want: "84.7", several: true},
		{name: "an average behind NaN", out: "NaN 84.7", want: "84.7"},
		{name: "a name with nan in it", out: "84.7 banana nano nan-test /nan/x", want: "84.7"},

		{name: "METRIC line", out: "3 tests\nMETRIC coverage=84.70\ndone in 5s\n", want: "84.70", from: "METRIC", metric: "coverage"},
		{name: "a duration as Go prints it", out: "took 1m2.5s", want: "62.5"},
		{name: "a longer one", out: "METRIC t=-1h0m2.50s", want: "-3602.50", from: "METRIC", metric: "t"},
		{name: "bash's time", out: "real\t0m1.234s", want: "1.234"},
		{name: "a duration without seconds", out: "took 1h30m", want: "5400"},
		{name: "and in a METRIC line", out: "METRIC t=1h30m", want: "5400", from: "METRIC", metric: "t"},
		{name: "one with blanks, as cargo prints it", out: "Finished in 1m 02s", want: "62"},
		{name: "one in words, as RSpec prints it", out: "Finished in 1 minute 2.5 seconds", want: "62.5"},
		{name: "one of days", out: "up 2d 3h 4min 5s", want: "183845"},
		{name: "one with the smallest parts, as humantime prints it", out: "1m 2s 3ms 4us 5ns", want: "62.003004005"},
		{name: "one with a sign of micro", out: "2ms501µs", want: "0.002501"},
		{name: "one of small parts that the pattern takes as a whole", out: "took 2 s 200 ms", pattern: "took (.*)", want: "2.200", from: "pattern"},
		{name: "two durations as Go prints them", out: "1m2s 3ms", want: "3", several: true},
		{name: "two small durations before the metric", out: "2s 200ms 84.7", want: "84.7", several: true},
		{name: "minutes and seconds, as time prints them", out: "elapsed 1:02.50", want: "62.50"},
		{name: "less than a minute of them", out: "0:01.23elapsed", want: "1.23"},
		{name: "more than an hour of them", out: "METRIC t=-75:00,5", want: "-4500.5", from: "METRIC", metric: "t"},
		{name: "a time of day before the metric", out: "14:02 84.7", want: "84.7", several: true},
		{name: "a line and a column", out: "main.go:12:05", want: "5", several: true},
		{name: "two durations", out: "2h30m 1h10m", want: "4200", several: true},
		{name: "durations of one part", out: "[1.02 ms 990 µs 3 ms]", want: "3", several: true},
		{name: "a list whose units get larger", out: "5s 2m", want: "2", several: true},
		{name: "a part that reaches the unit before", out: "2m 90s", want: "90", several: true},
		{name: "parts and a letter that is no unit", out: "1h30mx", want: "30", several: true},
		{name: "bash's time in another locale", out: "real\t1m1,234s", want: "61.234"},
		{name: "a name that is no duration", out: "x1m2s 7", want: "7", several: true},

		{name: "the last METRIC line", out: "METRIC a=1\nMETRIC b=2\n", want: "2", from: "METRIC", metric: "b"},
		{name: "METRIC line with blanks and a unit", out: "  METRIC  p99 = 12.5 ms (was 13)\r\n", want: "12.5", from: "METRIC", metric: "p99"},
		{name: "METRIC line in colour", out: "\x1b[1mMETRIC x=5\x1b[0m", want: "5", from: "METRIC", metric: "x"},
		{name: "METRIC in a sentence", out: "the METRIC x=5\n7", want: "5", from: "METRIC", metric: "x"},
		{name: "METRIC in a sentence without a number", out: "print METRIC x=<number>\n7", want: "7"},
		{name: "METRIC without a name", out: "METRIC =5\n7", want: "7", several: true},
		{name: "METRICS is another word", out: "METRICS x=5\n7", want: "7", several: true},

		{name: "pattern with a group", out: "total: 84.7% of 90\n", pattern: `total: ([0-9.]+)%`, want: "84.7", from: "pattern"},
		{name: "pattern without a group", out: "a 84.7 b", pattern: `[0-9.]+`, want: "84.7", from: "pattern"},
		{name: "the pattern's last match", out: "t=1 t=2 u=3", pattern: `t=(\d)`, want: "2", from: "pattern"},
		{name: "the first group of several", out: "a1b2", pattern: `a(\d)b(\d)`, want: "1", from: "pattern"},
		{name: "a pattern that takes the unit along", out: "took 12.5ms", pattern: `took (.*)`, want: "12.5", from: "pattern"},
		{name: "pattern before METRIC", out: "METRIC x=5\nt=7", pattern: `t=(\d)`, want: "7", from: "pattern"},
		{name: "columns that the pattern tells apart", out: "1 234 ns", pattern: `(\d+) \d+ ns`, want: "1", from: "pattern"},
		{name: "columns that are no thousands", out: "12 3456 ns", pattern: `(\d+) ns`, want: "3456", from: "pattern"},
		{name: "columns after a number with decimals", out: "1.5 234 ns", pattern: `(\d+) ns`, want: "234", from: "pattern"},
		{name: "pattern over lines", out: "total\n84.7\n", pattern: `(?m)total$\s+(\S+)`, want: "84.7", from: "pattern"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var pattern *regexp.Regexp
			if test.pattern != "" {
				pattern = regexp.MustCompile(test.pattern)
			}
			if test.from == "" {
				test.from = "last"
			}
			got, err := metric.Extract([]byte(test.out), pattern)
			require.NoError(t, err)
			assert.Equal(t, test.want, got.Value.String())
			assert.Equal(t, test.from, got.From)
			assert.Equal(t, test.metric, got.Name)
			assert.Equal(t, test.several, got.Several, "several, of %d", got.Count)
			assert.Equal(t, got.Guessed(), got.Warning() != "")
		})
	}
}

func TestP5_AMetricAmongMETRICLinesOfOtherNamesIsAGuess(t *testing.T) {
	for _, test := range []struct {
		out     string
		further []string
		others  []string
	}{
		{out: "METRIC a=1\nMETRIC a=2\n"},
		{out: "METRIC a=1\nMETRIC b=2\n", others: []string{"a"}},
		{out: "METRIC a=1\nMETRIC b=2\n", further: []string{"a"}},
		{out: "METRIC a=2\nMETRIC b=3\n", further: []string{"b"}},
	} {
		got, err := metric.Extract([]byte(test.out), nil, test.further...)
		require.NoError(t, err)
		assert.Equal(t, "2", got.Value.String())
		assert.Equal(t, test.others, got.Others, "%+v", test)
		assert.Equal(t, test.others != nil, strings.HasPrefix(got.Warning(), "METRIC lines of several names in the output, the last one, b=2, was taken, and not a; "), "%+v", test)
	}
}

func TestP5_OfDifferentNumbersInOnePlaceTheReaderIsToldWhichCounts(t *testing.T) {
	for _, test := range []struct{ name, out, pattern, want string }{
		{"once", "METRIC ms=120\n", "", ""},
		{"the same again", "METRIC ms=120\nMETRIC ms=120.0\n", "", ""},
		{"twice", "METRIC ms=120\nMETRIC ms=110\n", "", "METRIC ms is printed with 2 different numbers, the last one, 110, was taken; print it once"},
		{"three lines, two numbers", "METRIC ms=120\nMETRIC ms=110\nMETRIC ms=120\n", "", "METRIC ms is printed with 2 different numbers, the last one, 120, was taken; print it once"},
		{"other words behind the same", "METRIC ms=120 (run 1)\nMETRIC ms=120 (run 2)\n", "", ""},
		{"another unit", "METRIC t=1ms\nMETRIC t=1s\n", "", "METRIC t is printed with 2 different numbers, the last one, 1, was taken; print it once"},
		{"on one line", "METRIC ms=120 METRIC ms=110\n", "", "METRIC ms is printed with 2 different numbers, the last one, 110, was taken; print it once"},
		{"a pattern, once", "t: 12\n", `t: (\d+)`, ""},
		{"a pattern, the same again", "t: 12\nt: 12\n", `t: (\d+)`, ""},
		{"a pattern, others", "t: 12\nt: 11\n", `t: (\d+)`, "verify.pattern matches 2 different numbers in the output, the last one, 11, was taken"},
		{"a pattern without a group", "12\n11\n", `\d+`, "verify.pattern matches 2 different numbers in the output, the last one, 11, was taken"},
		{"a group that is empty at first", "x\nt: 11\n", `x|t: (\d+)`, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			var pattern *regexp.Regexp
			if test.pattern != "" {
				pattern = regexp.MustCompile(test.pattern)
			}
			got, err := metric.Extract([]byte(test.out), pattern)
			require.NoError(t, err)
			require.Equal(t, test.want, got.Warning())
		})
	}
}

func TestP5_NoNumberSaysWhatWasSeen(t *testing.T) {
	for _, test := range []struct{ name, out, pattern, want string }{
		{"nothing", "", "", "the output is empty, a number was expected on stdout"},
		{"blank", " \n\t\n", "", "the output is empty, a number was expected on stdout"},
		{"words", "all fine\nbye\n\n", "", `no number in the output, which ends with: "bye"`},
		{"NaN", "NaN\n", "", `the last value in the output is not a number: "NaN"`},
		{"NaN after a number", "epoch 3: loss=nan", "", `the last value in the output is not a number: "nan"`},
		{"Inf", "-Inf", "", `the last value in the output is not a number: "Inf"`},
		{"a version alone", "v1.2.3", "", `no number in the output, which ends with: "v1.2.3"`},
		{"a decimal comma", "score: 0,75", "", `a comma in a number may be a decimal point or separate two numbers; print a point (LC_ALL=C), or set verify.pattern: "0,75"`},
		{"a decimal comma with an exponent", "0,75e-3", "", `a comma in a number may be a decimal point or separate two numbers; print a point (LC_ALL=C), or set verify.pattern: "0,75e-3"`},
		{"a decimal comma behind thousands", "1.234,5 ms", "", `a comma in a number may be a decimal point or separate two numbers; print a point (LC_ALL=C), or set verify.pattern: "1.234,5"`},
		{"a decimal comma in a METRIC line", "METRIC x=-0,75", "", `a comma in a number may be a decimal point or separate two numbers; print a point (LC_ALL=C), or set verify.pattern: "-0,75"`},
		{"a decimal comma in what the pattern found", "x: 0,75", `x: (.*)`, `a comma in a number may be a decimal point or separate two numbers; print a point (LC_ALL=C), or set verify.pattern: "0,75"`},
		{"two small durations side by side", "mean 2 s 200 ms", "", `this may be one number or two; print one number, or set verify.pattern: "2 s 200 ms"`},
		{"a time of day, or minutes and seconds", "elapsed 1:02", "", `this may be one number or two; print one number, or set verify.pattern: "1:02"`},
		{"a deviation", "mean: 5 ± 2 ms", "", `this may be one number or two; print one number, or set verify.pattern: "± 2"`},
		{"a deviation in ASCII", "5.1 +/-0.2", "", `this may be one number or two; print one number, or set verify.pattern: "+/-0.2"`},
		{"out of range", "1e999999999", "", `the number is out of range: "1e999999999"`},
		{"METRIC NaN with numbers about", "5\nMETRIC x=NaN\n7", "", `the line METRIC x= has no number: "NaN"`},
		{"METRIC empty", "METRIC x=\n7", "", `the line METRIC x= has no number: ""`},
		{"pattern misses", "total 5", `sum (\d+)`, `the pattern "sum (\\d+)" matches nothing in the output, which ends with: "total 5"`},
		{"thousands go on behind what the pattern found", "Score: 1 234\n", `Score: (\d+)`, `the pattern found only a part of a number: "1 234"`},
		{"thousands go on before what the pattern found", "total 1 234 ns", `(\d+) ns`, `the pattern found only a part of a number: "1 234"`},
		{"letters between digits", "METRIC n=0b11", "", `this may be one number or several; print one number in plain digits, or set verify.pattern: "0b11"`},
		{"a letter for a nought", "METRIC n=1O0", "", `this may be one number or several; print one number in plain digits, or set verify.pattern: "1O0"`},
		{"group took no part", "ab", `a(\d)?b`, `the pattern's last match leaves its first group empty: "ab"`},
		{"group has no number", "x=abc", `x=(.*)`, `what the pattern found is not a number: "abc"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			var pattern *regexp.Regexp
			if test.pattern != "" {
				pattern = regexp.MustCompile(test.pattern)
			}
			_, err := metric.Extract([]byte(test.out), pattern)
			var none *metric.NoNumber
			require.ErrorAs(t, err, &none)
			assert.Equal(t, test.want, err.Error())
		})
	}
}

// In quadratic time this test would not end before the limit of its package.
func TestP5_LargeOutputIsReadInLinearTime(t *testing.T) {
	for name, piece := range map[string]string{
		"digits": "7", "words": "word ", "numbers": "12.5 ", "metrics": "METRIC", "metric lines": "METRIC x\n", "escapes": "\x1b]", "colours": "\x1b[1m", "dots": "1.", "commas": "1,234", "blanks": " ", "signs": "+-", "nan": "nan ", "durations": "1m2.5s ", "pairs": "0,75 ", "clocks": "1:02.5 ", "parts": "2s 200ms ", "units": "5 Mbit ",
	} {
		out := append(bytes.Repeat([]byte(piece), 1<<20/len(piece)), "\n84.7\n"...)
		got, err := metric.Extract(out, nil)
		require.NoError(t, err, name)
		assert.Equal(t, "84.7", got.Value.String(), name)
	}
}

// A pattern that is tried at every number would take 30 times as long.
func BenchmarkExtractFromLargeOutput(b *testing.B) {
	out := bytes.Repeat([]byte("12 "), 1<<18)
	b.SetBytes(int64(len(out)))
	for b.Loop() {
		_, _ = metric.Extract(out, nil)
	}
}

// floor is bench/floor.sh's number().
func floor(t testing.TB, out string) string {
	t.Helper()
	cmd := exec.Command("sh", "-c", `grep -aEo '[-+]?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?' | tail -n 1`)
	cmd.Stdin = strings.NewReader(out)
	cmd.Env = []string{"LC_ALL=C", "PATH=/usr/bin:/bin"}
	found, err := cmd.Output()
	require.NoError(t, err)
	return strings.TrimSpace(string(found))
}

func TestP5_OrdinaryOutputReadsAsTheFloorDoes(t *testing.T) {
	if _, err := exec.LookPath("grep"); err != nil {
		t.Skip("no grep")
	}
	rng := rand.New(rand.NewPCG(3, 4))
	words := []string{"coverage:", "of", "statements", "ns/op", "(", ")", "total", "=", "ok", "bench-8", "file2.go", "\n", "\t", "x", "utf8", "%", ";", "score=", "a:b"}
	numbers := []func() string{
		func() string { return fmt.Sprint(rng.IntN(1000)) },
		func() string { return fmt.Sprintf("%.*f", rng.IntN(5), rng.NormFloat64()*100) },
		func() string { return fmt.Sprintf("%e", rng.NormFloat64()) },
		func() string { return fmt.Sprintf("%+d%%", rng.IntN(100)) },
		func() string { return fmt.Sprintf("%dms", rng.IntN(100)) },
	}
	outputs := 60 // each costs a shell and its grep
	if tier.Nightly {
		outputs = 400
	}
	for range outputs {
		var b strings.Builder
		for range 1 + rng.IntN(8) {
			if rng.IntN(2) == 0 {
				b.WriteString(words[rng.IntN(len(words))])
			} else {
				b.WriteString(numbers[rng.IntN(len(numbers))]())
			}
			b.WriteString("  ") // with one blank, 12 345 may be one number
		}
		want := floor(t, b.String())
		got, err := metric.Extract([]byte(b.String()), nil)
		if want == "" {
			require.Error(t, err, "%q", b.String())
			continue
		}
		require.NoError(t, err, "%q", b.String())
		require.Equal(t, metric.MustDecimal(want), got.Value, "%q", b.String())
	}
}

func FuzzExtract(f *testing.F) {
	for _, s := range []string{
		"coverage: 84.7% of statements", "METRIC x=5\n", "v1.2.3", "1,234.5", "0x1f", "2026-03-27T14:02:11Z", "NaN", "\x1b[1m5", "\x1b]0;", "\xff5", "-.5", "1e999",
		"METRIC", "METRIC x", "+-", "1.2.3-", "2026-03-27 1:", "0:00:00", "1,234,", "inf", "v", "0x",
	} {
		f.Add([]byte(s), "")
		f.Add([]byte(s), `(\d+)`)
	}
	f.Fuzz(func(t *testing.T, out []byte, expr string) {
		var pattern *regexp.Regexp
		if expr != "" {
			var err error
			if pattern, err = regexp.Compile(expr); err != nil {
				return
			}
		}
		before := bytes.Clone(out)
		got, err := metric.Extract(out, pattern)
		if !bytes.Equal(before, out) {
			t.Fatal("the output was changed")
		}
		if err != nil {
			if _, ok := err.(*metric.NoNumber); !ok || len(err.Error()) > 2000 {
				t.Fatalf("%T: %d bytes", err, len(err.Error()))
			}
			return
		}
		if !bytes.ContainsAny(out, "0123456789") {
			t.Fatalf("%q has no digit and reads as %v", out, got)
		}
		if again, err := metric.Extract([]byte(got.Value.String()), nil); err != nil || again.Value != got.Value {
			t.Fatalf("%v reads back as %v, %v", got.Value, again.Value, err)
		}
		if got.Several && got.Count < 2 {
			t.Fatalf("%+v", got)
		}
	})
}
