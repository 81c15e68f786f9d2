package metric_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"pawl/internal/metric"
)

func decimal(s string) *metric.Decimal {
	d := metric.MustDecimal(s)
	return &d
}

func sample() metric.Analysis {
	var a metric.Analysis
	a.Add(metric.Trial{N: 0, Kept: true, Metric: decimal("80")})
	a.Add(metric.Trial{N: 1, Files: []string{"src/lexer.go"}, Kept: true, Metric: decimal("82"), Delta: *decimal("2"), Description: "cache tokens"})
	a.Add(metric.Trial{N: 2, Files: []string{"src/parser.go"}, Metric: decimal("81"), Delta: *decimal("-1"), Description: "inline the loop"})
	a.Add(metric.Trial{N: 3, Files: []string{"src/parser.go"}, Reason: "guard-fail", Description: "Inline a loop!"})
	a.Add(metric.Trial{N: 4, Files: []string{"src/parser.go"}, Reason: "error:verify-crash", Description: "drop bounds checks"})
	a.Add(metric.Trial{N: 5, Files: []string{"src/lexer.go", "src/lex/state.go"}, Kept: true, Metric: decimal("83.5"), Delta: *decimal("1.5"), Description: "cache states"})
	a.Add(metric.Trial{N: 6, Reason: "no-change", Description: "nothing"})
	return a
}

func TestP1_AnalysisFindsWhatImprovedAndWhatWasAlwaysDiscarded(t *testing.T) {
	a := sample()
	assert.Equal(t, 6, a.Tried)
	assert.Equal(t, 2, a.Kept)
	names := func(stats []metric.AreaStat) (all []string) {
		for _, s := range stats {
			all = append(all, s.Area)
		}
		return all
	}
	assert.Equal(t, []string{"src", "src/lexer.go"}, names(a.Improved()))
	assert.Equal(t, []string{"src/parser.go"}, names(a.AlwaysDiscarded()))
	assert.Equal(t, "1.5", a.Improved()[0].Gain.String())
	assert.Equal(t, metric.AreaStat{Area: "src/parser.go", Tried: 3, DiscardsInARow: 3, Last: 4}, a.AlwaysDiscarded()[0])
}

func TestP2_PivotAfterThreeDiscardsInTheSameArea(t *testing.T) {
	a := sample()
	require.Len(t, a.Stuck(3), 1)
	assert.Equal(t, "src/parser.go", a.Stuck(3)[0].Area)
	assert.Empty(t, a.Stuck(4))
	a.Add(metric.Trial{N: 7, Files: []string{"src/parser.go"}, Kept: true, Metric: decimal("84"), Delta: *decimal("0.5")})
	assert.Empty(t, a.Stuck(3), "a keep ends the row")
	assert.Empty(t, metric.Analysis{}.Stuck(0))
}

func TestP2_DiscardedChangesAreRememberedByTheirWords(t *testing.T) {
	a := sample()
	n, found := a.Discarded("INLINE the loop.", false)
	assert.True(t, found)
	assert.Equal(t, 3, n, "the latest of the two")
	_, found = a.Discarded("cache tokens", true)
	assert.False(t, found, "it was kept")
	_, found = a.Discarded("", true)
	assert.False(t, found)
}

func TestP1_Trend(t *testing.T) {
	// K marks a kept value
	for _, test := range []struct{ name, direction, points, want string }{
		{"nothing", "higher", "", "unknown"},
		{"too few", "higher", "80K 81K 82K", "unknown"},
		{"rising", "higher", "80K 81K 82K 83K", "improving"},
		{"a keep among discards", "higher", "80K 79 78 81K 80", "improving"},
		{"falling, and lower is better", "lower", "80K 79K 78K 77K", "improving"},
		{"kept under the other direction", "higher", "80K 79K 78K 77K", "plateau"},
		{"the first keep is in the newer half", "higher", "79 78 80K 79", "improving"},
		{"keeps long ago, flat since", "higher", "80K 81K 81 81 81 81", "plateau"},
		{"always a little worse", "higher", "80K 79 78 77 76", "plateau"},
		{"one dip", "higher", "80K 80 79 80 80", "plateau"},
		{"up and down", "higher", "80K 78 80 78 80 78", "oscillating"},
		{"up and down around plateaus", "lower", "80K 82 82 80 80 83 81 84", "oscillating"},
		{"down, up and down", "higher", "80K 78 80 78", "oscillating"},
		{"a better one was discarded", "higher", "80K 90 81 82K", "improving"},
		{"slow swing", "higher", "80K 79 78 77 76 75 74 75 76 77 76 75", "plateau"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var a metric.Analysis
			for i, point := range strings.Fields(test.points) {
				value, kept := strings.CutSuffix(point, "K")
				a.Add(metric.Trial{N: i, Kept: kept, Metric: decimal(value)})
			}
			assert.Equal(t, test.want, a.Trend(test.direction))
		})
	}
}

func TestP1_TrendLooksAtTheLastTwelveMeasuredOnly(t *testing.T) {
	var a metric.Analysis
	for n := range 6 {
		a.Add(metric.Trial{N: n, Kept: true, Metric: decimal(fmt.Sprint(n))})
	}
	assert.Equal(t, "improving", a.Trend("higher"))
	assert.Equal(t, 5, a.KeptRecently(), "the baseline is not one of them")
	for n := range 6 {
		a.Add(metric.Trial{N: 6 + n, Reason: "guard-fail"}) // not measured
	}
	assert.Equal(t, "improving", a.Trend("higher"))
	for n := range 12 {
		a.Add(metric.Trial{N: 12 + n, Metric: decimal("5")})
	}
	assert.Equal(t, "plateau", a.Trend("higher"))
	assert.Len(t, a.Points, 12)
	assert.Zero(t, a.KeptRecently())
}

// TestP9_Recommendation: trials are values, K marks a kept one; a word alone is a change that nothing measured, and
// "value:word" one that something else than the metric refused.
func TestP9_Recommendation(t *testing.T) {
	for _, test := range []struct {
		name, trials, want string
		met                bool
	}{
		{name: "no iteration", want: ""},
		{name: "the unchanged code meets the target", met: true, want: "target met"},
		{name: "target met after discards", trials: "79 79 79 79 79 81K", met: true, want: "target met"},

		{name: "a policy refused every change", trials: "policy:max-files policy:max-files policy:scope policy:scope policy:scope policy:scope", want: ""},
		{name: "the guard failed every time", trials: "guard-fail guard-fail guard-fail guard-fail guard-fail", want: ""},
		{name: "no number", trials: "error:no-number error:no-number", want: ""},
		{name: "the agent failed or changed nothing", trials: "error:agent no-change no-change no-change no-change", want: ""},
		{name: "verify crashed", trials: "error:verify-crash error:timeout", want: ""},
		{name: "all set aside", trials: "0:suspicious 1:suspicious 0:suspicious 1:suspicious 0:suspicious", want: ""},
		{name: "all too noisy", trials: "79:inconclusive 81:inconclusive 79:inconclusive 81:inconclusive 80:inconclusive", want: ""},
		{name: "a bound refused better ones", trials: "85:bound:mem 86:bound:mem 87:bound:mem 88:bound:mem 89:bound:mem", want: ""},
		{name: "a person rejected each", trials: "85:rejected 86:rejected", want: ""},

		{name: "one discard", trials: "79", want: "continue"},
		{name: "one keep", trials: "81K", want: "continue"},
		{name: "kept, then refused by a policy", trials: "81K 82K 83K policy:scope policy:scope policy:scope policy:scope policy:scope", want: "continue"},
		{name: "kept, then better ones that the guard refused", trials: "81K guard-fail guard-fail guard-fail guard-fail guard-fail", want: "continue"},
		{name: "four discards", trials: "81K 82K 80 80 79 79", want: "continue"},
		{name: "one discard, and its tree again and again", trials: "80 repeat repeat repeat repeat repeat repeat repeat", want: "continue"},
		{name: "the same, as earlier versions recorded it", trials: "80 80:repeat 80:repeat 80:repeat 80:repeat 80:repeat", want: "continue"},
		{name: "flat, but two kept", trials: "81K 82K 81 81 81", want: "continue"},

		{name: "five discards", trials: "81K 82K 83K 80 80 79 79 78", want: "diminishing returns"},
		{name: "five discards, and others between", trials: "81K 82K 83K 80 policy:scope 80 guard-fail 79 79 error:agent 78", want: "diminishing returns"},
		{name: "flat since one keep", trials: "81K 81 81 80", want: "diminishing returns"},
		{name: "oscillating", trials: "78 80 78 80", want: "diminishing returns"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var a metric.Analysis
			a.Add(metric.Trial{Kept: true, Metric: decimal("80")})
			for i, trial := range strings.Fields(test.trials) {
				value, kept := strings.CutSuffix(trial, "K")
				value, why, _ := strings.Cut(value, ":")
				next := metric.Trial{N: i + 1, Kept: kept, Reason: why}
				if value[0] >= '0' && value[0] <= '9' {
					next.Metric = decimal(value)
				} else {
					next.Reason = trial
				}
				a.Add(next)
			}
			assert.Equal(t, test.want, a.Recommend("higher", test.met))
		})
	}
}

func TestAreaIsTheFileOrTheDeepestCommonDirectory(t *testing.T) {
	for _, test := range []struct {
		files []string
		want  string
	}{
		{nil, ""},
		{[]string{"a/b.go"}, "a/b.go"},
		{[]string{"a/b.go", "a/c.go"}, "a"},
		{[]string{"a/b/c.go", "a/b/d/e.go", "a/bc/f.go"}, "a"},
		{[]string{"a.go", "b.go"}, "."},
		{[]string{"a/x.go", "b/x.go"}, "."},
	} {
		assert.Equal(t, test.want, metric.Area(test.files), "%v", test.files)
	}
}

func TestP1_AnalysisStaysBoundedAndSurvivesJSON(t *testing.T) {
	var a metric.Analysis
	rng := rand.New(rand.NewPCG(7, 8))
	size := map[int]int{}
	for n := range 1001 {
		file := fmt.Sprintf("dir%d/%s.e%d", rng.IntN(200), strings.Repeat("long\xff\n`", 40), rng.IntN(50))
		a.Add(metric.Trial{
			N: n, Files: []string{file}, Kept: rng.IntN(4) == 0, Metric: decimal(fmt.Sprintf("%d.25", rng.IntN(100000))), Delta: *decimal("0.1"),
			Reason: fmt.Sprintf("policy:%d", rng.IntN(100)), Description: fmt.Sprintf("word%d %d", rng.IntN(100), n),
		})
		data, err := json.Marshal(a)
		require.NoError(t, err)
		size[n] = len(data)
		if n%100 == 0 {
			var back metric.Analysis
			require.NoError(t, json.Unmarshal(data, &back))
			require.Equal(t, a, back)
		}
		for _, most := range []int{0, 1, 40, 300, 2000} {
			text := a.Markdown(most)
			require.LessOrEqual(t, len(text), most)
			require.False(t, strings.HasSuffix(text, ":\n"), "a title without its list")
		}
	}
	assert.Less(t, size[1000], 12<<10)
	assert.InDelta(t, size[100], size[1000], 600, "iteration 1,000 is as large as iteration 100")
	assert.Less(t, len(a.Markdown(1<<20)), 8<<10)
	assert.Len(t, a.Areas, 24)
	assert.Equal(t, 1000, a.Areas[23].Last, "the least recent were dropped")
}

func TestAnalysisIsAValue(t *testing.T) {
	a := sample()
	for n := range 50 {
		before, err := json.Marshal(a)
		require.NoError(t, err)
		one, other := a, a
		one.Add(metric.Trial{N: 7 + n, Files: []string{"src/parser.go"}, Metric: decimal("1"), Description: "one thing"})
		kept, err := json.Marshal(one)
		require.NoError(t, err)
		other.Add(metric.Trial{N: 7 + n, Files: []string{"src/parser.go"}, Metric: decimal("2"), Description: "other thing"})
		after, err := json.Marshal(one)
		require.NoError(t, err)
		require.Equal(t, string(kept), string(after), "a copy changed with the other")
		after, err = json.Marshal(a)
		require.NoError(t, err)
		require.Equal(t, string(before), string(after), "the original changed with a copy")
		a = one
	}
}

func TestP1_P2_AnalysisInThePromptHasHighLeverageTargetsFirst(t *testing.T) {
	assert.Equal(t, "- Nothing has been tried yet.\n", metric.Analysis{}.Markdown(1000))
	assert.Equal(t, strings.TrimPrefix(`
- Tried so far: 6, kept: 2, discarded: 4.
- High-leverage targets first: areas that improved, by how much:
  - `+"`src/lexer.go`"+`: delta +2.00, kept 1 of 1, last in iteration 1
  - `+"`src`"+`: delta +1.50, kept 1 of 1, last in iteration 5
- Stuck, pivot away from these areas:
  - `+"`src/parser.go`"+`: the last 3 changes were all discarded
- Areas that were always discarded:
  - `+"`src/parser.go`"+`: 0 of 3, last in iteration 4
- Kept by kind of change (first word): `+"`cache` 2 of 2, `inline` 0 of 2, `nothing` 0 of 1, `drop` 0 of 1"+`.
- Kept by type of file: `+"`.go` 2 of 5"+`.
- Discarded for: `+"`no-change` 1, `error:verify-crash` 1, `guard-fail` 1"+`.
`, "\n"), sample().Markdown(4000))
}

func TestP2_ADiscardedIdeaIsRecognisedHoweverTheWriterWordedTheChange(t *testing.T) {
	var a metric.Analysis
	a.Add(metric.Trial{N: 3, Idea: "Cache the parser", Description: "memoise what the tokens come to"})
	for _, again := range []string{"cache parser.", "Memoise what the tokens come to"} {
		n, found := a.Discarded(again, true)
		assert.True(t, found, again)
		assert.Equal(t, 3, n)
	}
	_, found := a.Discarded("Caching the parsers", false)
	assert.False(t, found, "loops that began before other words were known")
	n, found := a.Discarded("Caching the parsers", true)
	assert.True(t, found)
	assert.Equal(t, 3, n)
	a.Add(metric.Trial{N: 4, Idea: "inline the lexer", Description: "Inline the lexer"})
	assert.Len(t, a.Rejected, 3, "one wording is kept once")
}
