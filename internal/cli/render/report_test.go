package render_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/cli/render"
	"pawl/internal/loop"
	"pawl/internal/metric"
	"pawl/internal/metric/stats"
	"pawl/internal/spec/kind"
)

func TestP9_TheReportHasTheFormOfTheSource(t *testing.T) {
	golden(t, "report", style.Report(kind.Improve, loop.Completed, loopResult(), render.Delivery{}))
	golden(t, "report-nothing-kept", style.Report(kind.Improve, loop.Completed, loop.Result{Iterations: 2, Discarded: 2, Baseline: ref("84.7"), Best: ref("84.7"), Delta: ref("0.0"), Recommendation: "diminishing returns"}, render.Delivery{}))
	failed := style.Report(kind.Improve, loop.Failed, loopResult(), render.Delivery{})
	require.True(t, strings.HasPrefix(failed, "Loop failed: "), failed)
	nothing := loopResult()
	nothing.Recommendation = ""
	require.NotContains(t, style.Report(kind.Improve, loop.Completed, nothing, render.Delivery{}), "Recommendation")
	require.True(t, strings.HasPrefix(style.Report(kind.Improve, loop.Halted, loopResult(), render.Delivery{}), "Loop halted: "))
	tested := loopResult()
	tested.Tested = &loop.Tested{Format: "pytest", Passed: 6, Skipped: 1}
	require.Contains(t, style.Report(kind.Improve, loop.Completed, tested, render.Delivery{}), "\nGuard: 6 passed, 1 skipped (pytest)")
	tested.Kept = []loop.Kept{{Vanished: "gone: a"}, {Vanished: "gone: a, b"}}
	require.Contains(t, style.Report(kind.Improve, loop.Completed, tested, render.Delivery{}), "\nVanished: gone: a, b")
	require.NotContains(t, style.Report(kind.Improve, loop.Completed, tested, render.Delivery{}), "Vanished: gone: a\n")
	require.Contains(t, style.Report(kind.Deliver, loop.Completed, tested, render.Delivery{}), "gone: a, b")
	many := loopResult()
	many.KeptCount = 102
	golden(t, "report-capped", style.Report(kind.Improve, loop.Completed, many, render.Delivery{}))
}

func TestTheEndSaysWhereEverythingIs(t *testing.T) {
	places := render.Places{
		Loop: "it's", Repo: "/home/me/my routes", Branch: "pawl/demo-1", Base: "2c9deac54712", Ledger: "refs/pawl-ledger/demo-1",
		Logs: "/home/me/.local/state/pawl/loops/demo-1/steps", UI: "http://127.0.0.1:8233/namespaces/default/workflows/demo-1",
	}
	golden(t, "ended", style.Ended(loop.Completed, loopResult(), places))
	failed := loop.Result{ExitStatus: "timeout", ErrorCode: "ALO_PHASE_TIMEOUT", Reason: "verify took longer than 30s", Recovery: "Increase the timeout."}
	golden(t, "ended-failed", style.Ended(loop.Failed, failed, render.Places{Loop: "demo-1"}))
}

func TestP9_ALoopThatKeptNothingClaimsNothing(t *testing.T) {
	c := loop.Claim{Claim: stats.Exact(metric.Higher, dec("10"), dec("10")), FalseKeeps: 1.6}
	require.Contains(t, style.State(kind.Improve, loop.State{Claim: &c}, now), "nothing was kept")
	require.NotContains(t, style.Report(kind.Improve, loop.Completed, loop.Result{Claim: &c}, render.Delivery{}), "Claim:")
}

func TestFurtherMetricsAreDrawnBelow(t *testing.T) {
	of := func(v string) map[string]metric.Decimal { return map[string]metric.Decimal{"size": dec(v)} }
	baseline := loop.Event{Type: loop.BaselineMeasured, Metric: ref("10"), Metrics: of("100")}
	c, f := render.Course{}.Follow(baseline, false), render.Further{}.Follow(baseline, false)
	for i, it := range []loop.Iteration{{Kept: true, Metrics: of("90")}, {Metrics: of("200")}, {Kept: true, Metrics: of("80")}} {
		it.N, it.Metric = i+1, ref("11")
		c, f = c.Follow(loop.Event{Record: &it}, false), f.Follow(loop.Event{Record: &it}, false)
	}
	require.Equal(t, render.Further{"size": {100, 90, 90, 80}}, f, "what was not kept is no point of it")
	plots := style.Plots(c, f)
	require.Len(t, plots, 2)
	require.Contains(t, plots[1], "size of what is kept, by iteration")
	require.Len(t, style.Plots(c, nil), 1)
}

func TestP9_TheReportBeginsWithWhatIsClaimed(t *testing.T) {
	for i, want := range []string{"Claim: better by 6.1 % or more (best guess 7.9 %;", "Loop complete: "} {
		c := claims()[i]
		text := style.Report(kind.Improve, loop.Completed, loop.Result{Claim: &c}, render.Delivery{})
		require.True(t, strings.HasPrefix(text, want), text)
		shown := style.State(kind.Improve, loop.State{Claim: &c, Noise: "the metric is noisy"}, now)
		require.Contains(t, shown, c.String())
		require.Contains(t, shown, "the metric is noisy")
		if i == 1 {
			require.Contains(t, shown, "(the baseline measured the same three times, so each change was measured once)")
		}
	}
}

func TestTheReportNamesCandidatesThatNoIterationHasTaken(t *testing.T) {
	left := []loop.Candidate{
		{N: 4, Made: true, Commit: "3eff7429e6aa", Description: "remove Y", Trial: &loop.Trial{Passed: true, Metric: ref("13")}}, {N: 5, Idea: "cache Z"},
	}
	want := "Candidates that no iteration has taken, and that are given up:\n  4: would be kept, 13: remove Y\n  5: was not made: cache Z"
	require.Contains(t, style.Report(kind.Improve, loop.Halted, loop.Result{Candidates: left}, render.Delivery{}), want)
	require.NotContains(t, style.Report(kind.Improve, loop.Halted, loop.Result{}, render.Delivery{}), "Candidates")
	require.Contains(t, style.State(kind.Improve, loop.State{Candidates: left}, now), "5: its agent is at work")
}

func TestTheCourseIsThatOfTheHeadAndNotOfBranches(t *testing.T) {
	kept := func(metric string) loop.Event {
		return loop.Event{Type: loop.IterationSucceeded, Metric: ref(metric), Record: &loop.Iteration{Kept: true, Metric: ref(metric)}}
	}
	compared := loop.Event{Type: loop.BranchCompared, Judgement: &loop.Judgement{Samples: &stats.Judgement{Reference: *ref("99")}}}
	var c render.Course
	beside := false
	for _, e := range []loop.Event{
		{Type: loop.BaselineMeasured, Metric: ref("10")}, kept("15"), kept("16"),
		{Type: loop.BranchBegun}, kept("12"), {Type: loop.BranchGivenUp},
		{Type: loop.BranchBegun}, kept("20"), compared, {Type: loop.BranchKept, Metric: ref("20")}, kept("21"),
	} {
		beside = render.Beside(beside, e)
		c = c.Follow(e, beside)
	}
	require.Equal(t, render.Course{10, 15, 16, 16, 20, 21}, c)
}

func TestTheCourseIsThatOfTheBaselineWhileNothingIsKept(t *testing.T) {
	judged := func(reference string) loop.Event {
		return loop.Event{Type: loop.ChangeJudged, Judgement: &loop.Judgement{Samples: &stats.Judgement{Reference: *ref(reference)}}}
	}
	record := func(kept bool, metric string) loop.Event {
		return loop.Event{Type: loop.IterationFailed, Record: &loop.Iteration{Kept: kept, Metric: ref(metric)}}
	}
	var c render.Course
	for _, e := range []loop.Event{{Type: loop.BaselineMeasured, Metric: ref("10")}, judged("10.3"), record(false, "9"), judged("10.4"), record(true, "12"), judged("11.8"), record(false, "11")} {
		c = c.Follow(e, false)
	}
	require.Equal(t, render.Course{10, 10, 11.8, 11.8}, c)
}

func TestTheCourseIsDrawnAsSteps(t *testing.T) {
	var c render.Course
	require.Empty(t, c.Follow(loop.Event{Type: loop.IterationSucceeded, Record: &loop.Iteration{N: 7, Kept: true, Metric: ref("5")}}, false), "without the baseline nobody knows where 7 is")
	c = c.Follow(loop.Event{Type: loop.BaselineMeasured, Metric: ref("34051.6")}, false)
	for _, it := range iterations() {
		c = c.Follow(loop.Event{Type: loop.IterationFailed, Record: &it}, false)
	}
	require.Equal(t, render.Course{34051.6, 28356.6, 28356.6, 28356.6, 24056.4}, c)
	golden(t, "plot", style.Plot(c))
	require.Empty(t, style.Plot(c[:1]), "one point is no course")
	require.Empty(t, style.Plot(render.Course{-1.7e308, 1.7e308}), "too large to draw")
	require.NotEmpty(t, style.Plot(render.Course{5, 5, 5}))
	for _, c := range []render.Course{{1e19, 1e19}, {9.3e18, 9.4e18}, {-1e19, 1e19}, {1e300, 1e300}, {5e-324, 1e-323}} { // huge, tiny
		require.Contains(t, style.Plot(c), "best metric by iteration", c)
	}
	require.NotEmpty(t, style.Plot(make(render.Course, 1000)))
}

// claims returns the claims of a metric that varies, with a holdout, and of one that does not.
func claims() []loop.Claim {
	c := stats.Claim{Estimate: 7.9, Low: 5.8, High: 10, Bound: 6.1, Pairs: 5, Unit: stats.Percent}
	noisy := c
	noisy.TooNoisy, noisy.Needs, noisy.Low = true, 277, -2
	return []loop.Claim{{Claim: c, FalseKeeps: .8, Holdout: &noisy}, {Claim: stats.Exact(metric.Higher, dec("10"), dec("12"))}}
}

func TestAReportMarksKeptChangesThatWereDoubted(t *testing.T) {
	r := loop.Result{Kept: []loop.Kept{
		{Commit: "1111111", Description: "plain"}, {Commit: "2222222", Description: "once more", Flaky: true},
		{Commit: "3333333", Description: "too good", Suspicious: true}, {Commit: "4444444", Description: "both", Suspicious: true, Flaky: true},
	}, KeptCount: 4}
	text := style.Report(kind.Improve, loop.Completed, r, render.Delivery{})
	for _, line := range []string{"1111111  plain\n", "2222222  once more (flaky guard)\n", "3333333  too good (suspicious)\n", "4444444  both (suspicious, flaky guard)\n"} {
		require.Contains(t, text, line)
	}
}
