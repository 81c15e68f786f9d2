package render_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mattn/go-runewidth"
	"github.com/stretchr/testify/require"

	"pawl/internal/cli/render"
	"pawl/internal/client/launch"
	"pawl/internal/loop"
	"pawl/internal/metric"
	"pawl/internal/spec/kind"
	"pawl/internal/spec/phase"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares a text with a file under testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got+"\n"), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "run the test with -update to write it")
	require.Equal(t, string(want), got+"\n")
}

var (
	zone  = time.FixedZone("CET", 3600)
	now   = time.Date(2026, 3, 27, 14, 2, 11, 0, time.UTC)
	style = render.Style{Width: 100, Zone: zone}
)

func dec(s string) metric.Decimal  { return metric.MustDecimal(s) }
func ref(s string) *metric.Decimal { d := dec(s); return &d }

const hash = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// running is a loop in its fifth iteration.
func running() loop.State {
	approved := now.Add(-4 * time.Minute)
	s := loop.State{
		Loop: "demo-1", Kind: "improve", Goal: "Make it shorter", Status: loop.Running, Phase: phase.Verify, Iteration: 5, Attempt: 2,
		Budget: loop.NewBudget(map[loop.Resource]metric.Decimal{
			loop.Iterations: dec("10"), loop.ActiveTime: dec("600000"), loop.ToolCalls: dec("60"), loop.CostUSD: dec("2.50"),
		}).Spend(loop.Iterations, dec("5")).Spend(loop.ActiveTime, dec("95000")).Spend(loop.ToolCalls, dec("59")).Spend(loop.CostUSD, dec("0.75")),
		Baseline: ref("34051.6"), Best: ref("24056.4"), DiscardsInARow: 1,
		Repo: "/home/me/src/routes", Branch: "refs/heads/pawl/demo-1", Base: "2c9deac54712", Head: "fc8b6b3b4f00", Ledger: "c5851f42ceaa",
		Desk: "/home/me/.local/state/pawl/loops/demo-1/desk", Host: "620ea65b4614",
		ChangedFiles: []string{"a.go", "b.go", "c.go", "d.go", "e.go", "f.go"}, ChangedFilesCount: 7,
		Contract:  &loop.Contract{Hash: hash, Base: "2c9deac54712", ApprovedBy: "me", ApprovedAt: &approved},
		KeptCount: 2, Discarded: 2, StartedAt: now.Add(-5 * time.Minute),
	}
	s.Iterations = iterations()
	return s
}

func iterations() []loop.Iteration {
	return []loop.Iteration{
		{N: 1, Description: "go on from each city to the nearest one", Metric: ref("28356.6"), Delta: dec("-5695.0"), Kept: true, Commit: "3eff7429e6aa", DurationMs: 1400},
		{N: 2, Description: "visit the cities from west to east", Metric: ref("90350.1"), Delta: dec("61993.5"), DurationMs: 2300},
		{N: 3, Description: "leave the last city for another trip", Metric: ref("28356.6"), Reason: "guard-fail", Attempts: 3, DurationMs: 68_700},
		{N: 4, Description: "uncross legs that cross (2-opt)", Metric: ref("24056.4"), Delta: dec("-4300.2"), Kept: true, Commit: "29db84bd0aaa", DurationMs: 2400},
	}
}

func gates() map[string]loop.Gate {
	opened := now.Add(-90 * time.Minute)
	return map[string]loop.Gate{
		"contract": {ID: "contract-8", Kind: loop.GateContract, Summary: "approve the contract: Make it shorter", Hash: hash, OpenedAt: opened, Answers: []string{"approve", "reject"}},
		"pause":    {ID: "pause-21", Kind: loop.GatePause, Summary: "paused at verify", OpenedAt: opened, Answers: []string{"continue"}},
		"guard":    {ID: "guard-30", Kind: loop.GateGuard, Summary: "the change is blocked by sealed: route/city.go", OpenedAt: opened, Answers: []string{"continue", "reject"}},
		"question": {ID: "question-44", Kind: loop.GateQuestion, Summary: "verify printed no number twice in a row", OpenedAt: opened, Answers: []string{"answer", "amend"}, Choices: []string{"retry", "halt"}},
		"newFiles": {ID: "newFiles-51", Kind: loop.GateNewFiles, Summary: "approve 1 new file: plan.go (split it)", Hash: hash, Tree: hash, OpenedAt: opened, Answers: []string{"approve", "reject"}},
		"diff":     {ID: "diff-60", Kind: loop.GateDiff, Summary: "approve the change as a whole: 3 files, +80 -25, on pawl/demo-1", Hash: hash, OpenedAt: opened, Answers: []string{"approve", "reject"}},
		"budget":   {ID: "budget-63", Kind: loop.GateBudget, Budget: loop.ActiveTime, Summary: "the time is used up", Hash: hash, OpenedAt: opened, Answers: []string{"extend", "reject"}},
	}
}

func loopResult() loop.Result {
	return loop.Result{
		ExitStatus: "max_steps", Reason: "the iteration limit is reached", Iterations: 10, KeptCount: 2, Discarded: 8,
		Kept:     []loop.Kept{{Iteration: 1, Commit: "3eff7429e6aa", Description: "go on from each city to the nearest one"}, {Iteration: 4, Commit: "29db84bd0aaa", Description: "uncross legs that cross (2-opt)"}},
		Baseline: ref("34051.6"), Best: ref("24056.4"), Delta: ref("-9995.2"), Branch: "pawl/demo-1", Recommendation: "continue",
	}
}

func TestServing(t *testing.T) {
	golden(t, "serving", style.Serving(render.Serving{Address: "127.0.0.1:7233", UI: "http://127.0.0.1:8233", Namespace: "default", Worker: "pawl@620ea65b4614", Engine: "ours", Log: "/tmp/pawl.log"}))
}

func TestDurationsHaveAtMostTwoUnits(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0.0s", 0: "0.0s", 349 * time.Millisecond: "0.3s", 9990 * time.Millisecond: "9.9s", 10 * time.Second: "10s",
		59900 * time.Millisecond: "59s", time.Minute: "1m", 185 * time.Second: "3m 5s", time.Hour: "1h", 130 * time.Minute: "2h 10m", 76 * time.Hour: "3d 4h",
	} {
		require.Equal(t, want, render.Duration(d))
	}
}

func TestWhatOthersWroteCannotMoveTheCursor(t *testing.T) {
	require.Equal(t, `a [2K b  c\u{202e}`, render.Clean("a\x1b[2K\rb\n\tc\u202e"))
	require.Equal(t, "\uFFFD", render.Clean("\xff"))
	bad := iterations()[0]
	bad.Description = "x\x1b[2J\r\ny"
	require.NotContains(t, style.Iteration(kind.Improve, bad), "\x1b")
}

func TestNothingMovesWithoutATerminal(t *testing.T) {
	var out bytes.Buffer
	s := render.NewScreen(&out)
	require.False(t, s.Moves())
	s.Live("moving")
	s.Print("a line")
	s.Print("two\nlines\n")
	s.Still()
	require.Equal(t, "a line\ntwo\nlines\n", out.String())
	require.False(t, s.Style().Color)
	require.NotContains(t, s.Style().State(kind.Improve, running(), now), "\x1b")
}

func TestWideAndCombiningCharactersStayInTheirColumns(t *testing.T) {
	rows := []launch.Row{{Loop: "日本語", Status: "running", Goal: "one"}, {Loop: "e\u0301te\u0301", Status: "running", Goal: "two"}, {Loop: "plain", Status: "running", Goal: "three"}}
	var at []int
	for line := range strings.Lines(style.List(rows, now)) {
		if before, _, row := strings.Cut(line, "running"); row {
			at = append(at, runewidth.StringWidth(before))
		}
	}
	require.Equal(t, []int{8, 8, 8}, at)
}
