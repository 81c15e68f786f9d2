package metric_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/metric"
)

// compared reads two outputs of one loop. It returns the number of the second one, "" with the reason if there is none.
func compared(t *testing.T, base, change metric.Output, pattern string, further ...string) (value, why string) {
	t.Helper()
	s := metric.Search{Further: further}
	if pattern != "" {
		s.Pattern = regexp.MustCompile(pattern)
	}
	first, err := metric.Read(base, s)
	if err != nil {
		return "refused", err.Error()
	}
	s.Form = s.Form.With("", first)
	second, err := metric.Read(change, s)
	if err != nil {
		return "", err.Error()
	}
	in, err := s.Form.In("", second)
	if err != nil {
		return "", err.Error()
	}
	return in.String(), ""
}

func stdout(text string) metric.Output { return metric.Output{Stdout: []byte(text)} }

func TestP5_ANumberIsReadWhereTheBaselinesWas(t *testing.T) {
	for _, test := range []struct {
		name, base, change, pattern, want string
		further                           []string
	}{
		{name: "a crash after METRIC", base: "METRIC ms=120", change: "1 warning\nSegmentation fault"},
		{name: "METRIC of another name", base: "METRIC ms=120", change: "METRIC errors=0"},
		{name: "the last of two names is missing", base: "METRIC build_s=3\nMETRIC ms=120", change: "METRIC build_s=3"},
		{name: "a warning behind the number", base: "120", change: "120\n5 warnings generated."},
		{name: "a further metric is not the metric", base: "METRIC errors=0\nMETRIC ms=120", change: "METRIC errors=0", further: []string{"errors"}},
		{name: "a further metric is the last", base: "METRIC ms=120\nMETRIC errors=0", change: "METRIC ms=110\nMETRIC errors=0", further: []string{"errors"}, want: "110"},
		{name: "a further metric behind a last number", base: "took 120 ms\nMETRIC errors=0", change: "took 90 ms\nMETRIC errors=0", further: []string{"errors"}, want: "90"},
		{name: "a further metric alone", base: "METRIC errors=0", change: "", further: []string{"errors"}, want: "refused"},
		{name: "METRIC empties", base: "METRIC ms=120", change: "METRIC ms="},
		{name: "METRIC becomes NaN", base: "METRIC ms=120", change: "METRIC ms=nan"},
		{name: "METRIC in another case", base: "METRIC ms=120", change: "METRIC MS=3"},
		{name: "METRIC with a longer name", base: "METRIC ms=120", change: "METRIC ms_setup=3"},
		{name: "METRIC and a new name behind it", base: "METRIC ms=120", change: "METRIC ms=110\nMETRIC errors=0", want: "110"},
		{name: "METRIC and a new name before it", base: "METRIC ms=120", change: "METRIC errors=0\nMETRIC ms=110", want: "110"},
		{name: "METRIC of the same name fewer times", base: "METRIC ms=125\nMETRIC ms=120", change: "METRIC ms=60"},
		{name: "METRIC of the same name more often", base: "METRIC ms=125\nMETRIC ms=120", change: "METRIC ms=9\nMETRIC ms=8\nMETRIC ms=110", want: "110"},
		{name: "a pattern that matches fewer times", base: "time: 125\ntime: 120", change: "time: 60", pattern: `time: (\d+)`},
		{name: "no output", base: "METRIC ms=120", change: ""},
		{name: "a pattern that no longer matches", base: "time: 120", change: "3 errors", pattern: `time: (\d+)`},
		{name: "a pattern that matches beside METRIC", base: "time: 120", change: "METRIC ms=3\ntime: 110", pattern: `time: (\d+)`, want: "110"},
		{name: "METRIC where there was none", base: "120", change: "METRIC ms=3\n120"},
		{name: "a number in another line", base: "took 120 ms", change: "line 3"},
		{name: "a number in the same line", base: "took 120 ms", change: "took 80 ms", want: "80"},
		{name: "with decimals", base: "took 120 ms", change: "took 80.25 ms", want: "80.25"},
		{name: "in another unit", base: "took 1.01ms", change: "took 999µs", want: "0.999"},
		{name: "as one of several", base: "5 errors", change: "1 error", want: "1"},
		{name: "negative", base: "delta 5", change: "delta -3", want: "-3"},
		{name: "a date in the line", base: "2026-03-27T14:02:11Z score 5", change: "2026-03-28T01:00:00.123Z score 7", want: "7"},
		{name: "go test", base: "ok  \tpkg\t0.012s\tcoverage: 84.7% of statements", change: "ok  \tpkg\t(cached)\tcoverage: 85.1% of statements", want: "85.1"},
		{name: "half of the lines", base: "1: 10 ms\n2: 120 ms", change: "1: 10 ms"},
		{name: "a line more", base: "120", change: "120\n5"},
		{name: "another number in the line", base: "120", change: "120 5"},
		{name: "other words before", base: "compiling\n120", change: "warning\ncompiling\n110", want: "110"},
		{name: "a stack trace", base: "120 ms", change: "panic\n\tmain.go:12 +0x1f"},
		{name: "an exit code in words", base: "score: 120", change: "Command exited with status 1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, why := compared(t, stdout(test.base), stdout(test.change), test.pattern, test.further...)
			require.Equal(t, test.want, got, why)
		})
	}
}

func TestP5_ANumberIsReadWholeOrNotAtAll(t *testing.T) {
	pieces := map[string]string{ // and its value, "" if nobody knows it
		"987_654": "987654", "1_001_234": "1001234", "1'234'567": "1234567", "1’234": "1234", "1\u00a0001": "1001", "1\u202f001": "1001", "1\u2009001": "1001",
		"1\u2007001": "1001", "1_001.5": "1001.5", "1'000e3": "1000e3", "1.5e+3": "1.5e+3", "1,234": "1234", "-1_000": "-1000",
		"1 001": "", "12_34": "", "1_0000": "", "1'23": "", "1\u00a00": "", "7/10": "", "7 / 10": "", "1.2×10^3": "", "1.2 × 10³": "", "1.2x10^3": "", "1.2*10^3": "", "2^20": "",
		"2**20": "", "10²": "", "10⁻⁴": "", "≈ 10⁻⁴": "", "1½": "", "1 ½": "", "1.5D+03": "", "1e5e3": "", "1.5e+ 3": "", "1.5 E+03": "", "0.15+104": "", "1٫5": "", "1٬234": "1234", "0,75": "", "3５": "",
	}
	for piece, want := range pieces {
		for form, pattern := range map[string]string{"METRIC n=%s": "", "%s": "", "n: %s": `n: +(.*)`} {
			reading, err := metric.Extract(fmt.Appendf(nil, form, piece), compilable(pattern))
			if want == "" {
				require.Error(t, err, "%q in %q reads as %s", piece, form, reading.Value)
				continue
			}
			require.NoError(t, err, "%q in %q", piece, form)
			require.Equal(t, want, reading.Value.String(), "%q in %q", piece, form)
		}
	}
	for _, out := range []string{"METRIC n=120 130", "METRIC n=120, 130", "METRIC n=12-15", "METRIC n=1;2", "METRIC n=1,2,3", "METRIC n=120 -> 110", "METRIC n=5:3"} {
		_, err := metric.Extract([]byte(out), nil)
		require.Error(t, err, out)
	}
	for out, want := range map[string]string{
		"METRIC n=120 (was 130)": "120", "METRIC n=120 # run 5": "120", "METRIC n=12.5 +/- 0.3": "12.5", `{"out":"METRIC n=120\n","t":5}`: "120", "METRIC n=120 ms/op": "120",
		"METRIC n=120, and 5 more": "120",
	} {
		reading, err := metric.Extract([]byte(out), nil)
		require.NoError(t, err, out)
		require.Equal(t, want, reading.Value.String(), out)
	}
}

func compilable(pattern string) *regexp.Regexp {
	if pattern == "" {
		return nil
	}
	return regexp.MustCompile(pattern)
}

func TestP5_APatternFindsAWholeNumber(t *testing.T) {
	for _, test := range []struct{ out, pattern, want string }{
		{"time: 987_654", `time: +(\d+)`, ""},
		{"time: 987_654", `time: +(\d+).*`, ""},
		{"time: 987_654", `time: +(.*)`, "987654"},
		{"time: 987_654", `(\d+)$`, ""},
		{"time: 1,234 ms", `time: (\d+)`, ""},
		{"time: 1,234 ms", `(\d+) ms`, ""},
		{"time: 12.5 ms", `(\d+) ms`, ""},
		{"time: 12.5 ms", `time: (\d+)`, ""},
		{"time: 12.5 ms", `time: (\d+)\.\d+ ms`, "12"},
		{"time: 1.5e-3", `time: ([\d.]+)`, ""},
		{"delta: -5", `(\d+)`, ""},
		{"7/10 passed", `(\d+)/\d+ passed`, "7"},
		{"7/10 passed", `(\d+)`, ""},
		{"7 of 10 passed", `(.*) passed`, ""},
		{"7 of 10 passed", `(\d+) of`, "7"},
		{"p99 12.5", `p99 ([\d.]+)`, "12.5"},
		{"p99 12.5", `p99 [\d.]+`, "12.5"},
		{"n=1\u00a0001", `n=(\d+)`, ""},
		{"n=1'001", `n=(\d+)`, ""},
		{"a 12, b 13", `a (\d+), b`, "12"},
		{"1,200,300", `(\d+)`, ""},
	} {
		reading, err := metric.Extract([]byte(test.out), regexp.MustCompile(test.pattern))
		got := ""
		if err == nil {
			got = reading.Value.String()
		}
		require.Equal(t, test.want, got, "%+v: %v", test, err)
	}
	_, err := metric.Extract([]byte("a\nscore 5\nb"), regexp.MustCompile(`^score (\d+)$`))
	require.ErrorContains(t, err, "(?m)")
	_, err = metric.Extract([]byte("a\nscore 5\nb"), regexp.MustCompile(`(?m)^points (\d+)$`))
	require.NotContains(t, err.Error(), "(?m) before")
}

func TestP5_AMETRICIsFoundWhereverItIsPrinted(t *testing.T) {
	for _, test := range []struct{ base, change, want string }{
		{".METRIC ms=120\n1 passed in 3.21s", ".METRIC ms=240\n1 passed in 3.11s", "240"},
		{".METRIC ms=120\n1 passed", "..s.METRIC ms=110\n4 passed", "110"},
		{"[bench] METRIC ms=1\n7", "[bench] METRIC ms=2\n3", "2"},
		{"[bench] METRIC ms=1\n7", "[warmup] METRIC ms=0.5\n3", ""},
		{"[bench] METRIC ms=1\n7", "METRIC ms=0.5\n3", ""},
		{"METRIC ms=120", "[bench] METRIC ms=3", ""},
		{"METRIC ms=120", "METRIC ms=110\n[log] METRIC ms=3", "110"},
		{"[1] METRIC ms=3\n[2] METRIC ms=5", "", "refused"},
		{"[a] METRIC ms=3\n[b] METRIC ms=5", "", "refused"},
		{"METRIC ms=3\n[b] METRIC ms=5", "", "refused"},
		{"2026-03-27 14:02:11 METRIC ms=120", "2026-03-28 09:12:45 METRIC ms=110", "110"},
		{"[0.123] METRIC ms=120\n[0.456] METRIC ms=121", "[0.223] METRIC ms=111\n[0.344] METRIC ms=110", "110"},
		{"bench-1  | METRIC ms=120", "bench-1 | METRIC ms=110", "110"},
		{"okMETRIC ms=120\n3.2s", "okMETRIC ms=110\n3.1s", "110"},
		{"100%METRIC ms=120\n3.2s", "100%METRIC ms=240\n3.1s", "240"},
		{`{"output":"METRIC ms=120\n"}`, `{"output":"METRIC ms=110\n"}`, "110"},
		{"BIOMETRIC score=3\n120", "BIOMETRIC score=5\n110", "110"},
		{"METRIC a=1 METRIC b=120", "METRIC a=0 METRIC b=110", "110"},
		{"METRIC a=1 METRIC b=120", "METRIC a=0", ""},
		{"\x1b[32m  METRIC ms=120\x1b[0m\n7", "  METRIC ms=110\n5", "110"},
		{"> METRIC ms=120\r\n7", "> METRIC ms=110\r\n5", "110"},
	} {
		got, why := compared(t, stdout(test.base), stdout(test.change), "")
		require.Equal(t, test.want, got, "%+v: %s", test, why)
	}
	errs := metric.Output{Stdout: []byte("took 3.2s"), Stderr: []byte("METRIC ms=120")}
	got, why := compared(t, errs, errs, "")
	require.Equal(t, "refused", got)
	require.Contains(t, why, "METRIC ms= is on stderr")
	got, why = compared(t, stdout("took 3.2s"), errs, "")
	require.Equal(t, "", got)
	require.Contains(t, why, "stderr")
	got, why = compared(t, stdout("METRIC ms=120"), errs, "")
	require.Equal(t, "", got)
	require.Contains(t, why, "on stderr")
	traced := metric.Output{Stdout: []byte("METRIC ms=120"), Stderr: []byte("+ echo METRIC ms=120")}
	got, why = compared(t, traced, traced, "")
	require.Equal(t, "120", got, why)
}

// A change that prints anything but the line of the baseline has no number.
func TestP5_OtherOutputIsNeverTheMetric(t *testing.T) {
	rng := rand.New(rand.NewPCG(41, 1))
	number := func() string { return fmt.Sprint(rng.IntN(100000)) }
	bases := []func(n string) string{
		func(n string) string { return "METRIC ms=" + n },
		func(n string) string { return "setup 3\nMETRIC build_s=3\nMETRIC ms=" + n + "\ndone in 5s" },
		func(n string) string { return "..METRIC ms=" + n + "\n2 passed in 0.2s" },
		func(n string) string { return "[bench] METRIC ms=" + n },
		func(n string) string { return "mean " + n + " ms" },
		func(n string) string { return n },
		func(n string) string { return "run 1\nrun 2\ntotal: " + n + " bytes" },
	}
	noise := []func() string{
		func() string { return number() + " warnings generated." },
		func() string { return "Segmentation fault (core dumped) at 0x" + number() },
		func() string { return "Killed: " + number() },
		func() string { return "METRIC errors=" + number() },
		func() string { return "[warm] METRIC ms=" + number() },
		func() string { return "took " + number() + " s" },
		func() string { return "panic: index out of range [" + number() + "]" },
		func() string { return "exit status " + number() },
	}
	for range 3000 {
		base := bases[rng.IntN(len(bases))]
		var broken []string
		for range 1 + rng.IntN(3) {
			broken = append(broken, noise[rng.IntN(len(noise))]())
		}
		crash := strings.Join(broken, "\n")
		got, why := compared(t, stdout(base("120000")), stdout(crash), "")
		require.Equal(t, "", got, "%q then %q: %s", base("120000"), crash, why)
		want := number()
		got, why = compared(t, stdout(base("120000")), stdout(base(want)), "")
		require.Equal(t, want, got, why)
	}
}

func TestP5_SizesInWordsAreOfOneSize(t *testing.T) {
	for _, pair := range [][2]string{
		{"980", "1.2K"}, {"980", "1k"}, {"980000", "1 million"}, {"980000", "1.2M"}, {"980 thousand", "1 million"}, {"980 million", "1 billion"}, {"980", "1 Mio"}, {"980 Tsd", "1 Mrd"},
		{"12", "1 dozen"}, {"500", "1 Ki"}, {"5%", "6‰"}, {"0.5", "5‰"}, {"980", "1 bn"}, {"980", "2kk"}, {"99999", "1 lakh"},
	} {
		got, why := compared(t, stdout("METRIC n="+pair[0]), stdout("METRIC n="+pair[1]), "")
		require.Equal(t, "", got, "%v: %s", pair, why)
		got, why = compared(t, stdout("n: "+pair[0]), stdout("n: "+pair[1]), "")
		require.Equal(t, "", got, "%v: %s", pair, why)
	}
	got, why := compared(t, stdout("METRIC n=1.2 million"), stdout("METRIC n=1.1 million"), "")
	require.Equal(t, "1.1", got, why)
}

func TestP5_ALoopOfAnEarlierVersionReadsAsBefore(t *testing.T) {
	form := &metric.Form{Units: map[string]string{"": ""}}
	for out, want := range map[string]string{"1 warning": "1", "METRIC errors=0": "0", "x METRIC ms=5\n7": "7"} {
		got, err := metric.Read(stdout(out), metric.Search{Form: form})
		require.NoError(t, err)
		require.Equal(t, want, got.Value.String())
		require.Nil(t, form.With("", got).Sources)
	}
}

func TestP5_WhatWasLeftOutIsSearchedToo(t *testing.T) {
	lost := func(head, found, tail string) metric.Output {
		return metric.Output{Stdout: []byte(head), Found: []byte(found), Tail: []byte(tail), Lost: 4111406}
	}
	for _, test := range []struct {
		base, change  metric.Output
		pattern, want string
	}{
		{base: lost("x\nx\n", "METRIC ms=120\n", "k\nok\n"), change: lost("x\n", "METRIC ms=240\n", "k\nok\n"), want: "240"},
		{base: lost("x\n", "METRIC ms=120\n", "k\nok\n"), change: lost("x\n", "", "k\nok 3\n")},
		{base: lost("x\n", "METRIC ms=120\n", "k\nok\n"), change: stdout("METRIC ms=110"), want: "110"},
		{base: lost("x\n", "", "k\nok\n"), want: "refused"},
		{base: lost("x 5\n", "", "9\nok 120\n"), change: lost("x\n", "", "8\nok 110\n"), want: "110"},
		{base: lost("x\n", "", "9ok 120"), want: "refused"},
		{base: lost("x\n", "time: 120\n", "k\nok\n"), change: lost("x\n", "time: 110\n", "k\nok\n"), pattern: `time: (\d+)`, want: "110"},
		{base: lost("x\n", "time: 120\n", "k\ntime: 130\n"), change: lost("x\n", "time: 110\n", "time: 5\nok\n"), pattern: `time: (\d+)`, want: "110"},
		{base: lost("x\n", "", "k\nok\n"), pattern: `(?s)begin.*(\d+)`, want: "refused"},
		{base: lost("5 x\n", "", "k\nok\n"), change: lost("6 x\n", "", "k"), pattern: `^(\d+)`, want: "6"},
		{base: lost("x\n", "", "k\nok 5"), change: lost("x\n", "", "k\nok 6"), pattern: `(\d+)$`, want: "6"},
	} {
		got, why := compared(t, test.base, test.change, test.pattern)
		require.Equal(t, test.want, got, "%s %s", test.pattern, why)
	}
}

// A benchmark that dies after the first of several equal lines prints a number, but not the last one.
func TestP5_FewerOfTheSameLineAreNoNumber(t *testing.T) {
	for _, c := range []struct {
		name, pattern string
		unchanged     []string // what the unchanged code prints
		changed       string
		kept          bool
	}{
		{"fewer METRIC lines", "", []string{"METRIC ms=120\nMETRIC ms=121\nMETRIC ms=122\n", "METRIC ms=119\nMETRIC ms=120\nMETRIC ms=121\n"}, "METRIC ms=20\nSegmentation fault\n", false},
		{"as many", "", []string{"METRIC ms=120\nMETRIC ms=121\n", "METRIC ms=119\nMETRIC ms=120\n"}, "METRIC ms=20\nMETRIC ms=21\n", true},
		{"more", "", []string{"METRIC ms=120\nMETRIC ms=121\n", "METRIC ms=119\nMETRIC ms=120\n"}, "METRIC ms=20\nMETRIC ms=21\nMETRIC ms=22\n", true},
		{"progress that varies", "", []string{"METRIC ms=120\nMETRIC ms=121\nMETRIC ms=122\n", "METRIC ms=119\nMETRIC ms=120\n", "METRIC ms=119\nMETRIC ms=120\n"}, "METRIC ms=20\n", true},
		{"fewer in the last measurement", "", []string{"METRIC ms=120\nMETRIC ms=121\n", "METRIC ms=119\nMETRIC ms=120\n", "METRIC ms=119\n"}, "METRIC ms=20\n", true},
		{"one line", "", []string{"METRIC ms=120\n", "METRIC ms=119\n"}, "METRIC ms=20\n", true},
		{"measured once", "", []string{"METRIC ms=120\nMETRIC ms=121\n"}, "METRIC ms=20\n", false},
		{"fewer matches", `took (\d+)`, []string{"took 9\ntook 8\n", "took 9\ntook 9\n"}, "took 1\n", false},
	} {
		search := metric.Search{Unchanged: true}
		if c.pattern != "" {
			search.Pattern = regexp.MustCompile(c.pattern)
		}
		for _, text := range c.unchanged {
			reading, err := metric.Read(metric.Output{Stdout: []byte(text)}, search)
			require.NoError(t, err, c.name)
			search.Form = search.Form.With("", reading)
		}
		search.Unchanged = false
		_, err := metric.Read(metric.Output{Stdout: []byte(c.changed)}, search)
		if c.kept {
			require.NoError(t, err, c.name)
			continue
		}
		require.ErrorContains(t, err, "and this output 1 time; the last one is", c.name)
	}
}
