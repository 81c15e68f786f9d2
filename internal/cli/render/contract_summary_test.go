package render_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mattn/go-runewidth"
	"github.com/stretchr/testify/require"

	"pawl/internal/cli/render"
	"pawl/internal/loop"
	"pawl/internal/spec"
	"pawl/internal/spec/kind"
)

// longContract has more than a screen can hold in every field.
func longContract() render.Contract {
	long := strings.Repeat("words of a long goal ", 60)
	seals := []loop.Seal{{Path: "pytest.py", Names: loop.SealNew}}
	for range 30 {
		seals = append(seals, loop.Seal{Path: "tests/test_a.py"})
	}
	return render.Contract{
		Kind: kind.Improve, Loop: "demo-1", Repo: "/home/me/src/routes", Branch: "pawl/demo-1", Baseline: ref("34051.6"), InScope: 5,
		Noise: strings.Repeat("it varies much ", 30), Spread: "± 2 % an evaluation", Tested: "6 passed, 1 skipped (pytest)",
		Contract: loop.Contract{Hash: hash, Base: "2c9deac54712", Tools: []string{"*"}, Sealed: seals},
		Spec: spec.Spec{
			Goal: long, Repo: spec.Repo{Base: "main"}, Scope: []string{strings.Repeat("src/*.py ", 40)}, NewFiles: "deny",
			Setup:  spec.Setup{Command: strings.Repeat("make deps && ", 30)},
			Verify: spec.Verify{Command: strings.Repeat("go run ./cmd/measure && ", 20), Timeout: spec.Duration(30 * time.Second), Direction: "lower"},
			Guard:  spec.Guard{Command: "pytest -q", Timeout: spec.Duration(5 * time.Minute)},
			Agent:  spec.Agent{Command: spec.Argv{List: []string{"sh", "/tmp/my agent.sh"}}},
			Limits: spec.Limits{Iterations: 1, ActiveTime: spec.Duration(10 * time.Minute), ToolCalls: 60, Discards: 10},
			Notify: []string{"https://example.com/hook"},
		},
	}
}

func TestTheSummaryOfAContractFitsOnAScreen(t *testing.T) {
	narrow := render.Style{Width: 80, Zone: zone, Wrap: true}
	c := longContract()
	c.Claims = 8
	text := narrow.ContractSummary(c, "")
	lines := strings.Split(text, "\n")
	require.LessOrEqual(t, len(lines), 20, text)
	for _, line := range lines {
		require.LessOrEqual(t, runewidth.StringWidth(line), 80, line)
	}
	for _, want := range []string{"goal", "src/*.py", "(5 files)", "lower is better", "pytest -q — 6 passed, 1 skipped (pytest)", "30 files, 1 name of files", "sh '/tmp/my agent.sh'; tools: *", "1 iteration", "34051.6 ± 2 % an evaluation", "full (8 of 8", hash} {
		require.Contains(t, strings.Join(strings.Fields(text), " "), want)
	}
	require.Contains(t, text, " …\n", "what is cut says so")
}

func TestANarrowSummaryHasMoreLines(t *testing.T) {
	c := longContract()
	c.Spec.Goal, c.Spec.Setup.Command, c.Spec.Verify.Command, c.Spec.Scope = "Make it shorter", "", "cat src/*.py | wc -c", []string{"src/**"}
	c.Claims = 7
	text := render.Style{Width: 40, Zone: zone, Wrap: true}.ContractSummary(c, "")
	require.Contains(t, strings.Join(strings.Fields(text), " "), "cat src/*.py | wc -c — within 30s; lower is better", "nothing of it is cut")
	require.LessOrEqual(t, len(strings.Split(text, "\n")), 40)
}

func TestWhatTheSandboxLacksIsNeverCut(t *testing.T) {
	c := longContract()
	c.Claims = 8
	c.Lacks = []string{"THE NETWORK IS THIS MACHINE'S: " + strings.Repeat("an agent could reach it ", 20) + "to the end", "MEMORY IS NOT BOUNDED"}
	text := strings.Join(strings.Fields(render.Style{Width: 80, Zone: zone}.ContractSummary(c, "")), " ")
	require.Contains(t, text, "to the end MEMORY IS NOT BOUNDED")
	require.NotContains(t, text, "full (")
	c.Claims, c.Lacks, c.Protections = 0, nil, []string{"a worker knows it; none answers now"}
	text = render.Style{Width: 80, Zone: zone}.ContractSummary(c, "")
	require.Contains(t, text, "sandbox     a worker knows it; none answers now")
	require.NotContains(t, text, "full (")
}

func TestNothingHidesInASummary(t *testing.T) {
	c := longContract()
	c.Spec.Setup.Command, c.Spec.Verify.Command = "true\nrm -rf ~", "echo 1 \x1b[2K\r# rm -rf ~\u202e"
	text := render.Style{Width: 80, Zone: zone}.ContractSummary(c, "")
	require.Contains(t, text, `true\nrm -rf ~`)
	require.Contains(t, text, `echo 1 \u{1b}[2K\r# rm -rf ~\u{202e}`)
	require.NotContains(t, text, "\x1b")
}

func TestLongLinesOfATerminalHang(t *testing.T) {
	narrow := render.Style{Width: 40, Zone: zone, Wrap: true}
	require.Equal(t, "note: a sentence that has more words\n      than fit on a line", narrow.Hang("note: a sentence that has more words than fit on a line", 6))
	require.Equal(t, "short", narrow.Hang("short", 6))
	require.Equal(t, "mended; start it with\n      `pawl run --set goal=\"a b c d e f g h\"`\n      again", narrow.Hang("mended; start it with `pawl run --set goal=\"a b c d e f g h\"` again", 6), "a command is whole")
	require.Equal(t, "      `a command that is longer than the line`\n      is first", narrow.Hang("      `a command that is longer than the line` is first", 6))
	bold := render.Style{Width: 40, Wrap: true, Color: true}
	require.Equal(t, "\x1b[1ma sentence in a colour that has more\x1b[0m\n  \x1b[1mwords than fit on a line\x1b[0m",
		bold.Hang(bold.Bold("a sentence in a colour that has more words than fit on a line"), 2), "no line is there twice")
	require.Equal(t, "\x1b[1mnote:\x1b[0m a sentence in two colours, with\n  more words than fit on a line",
		bold.Hang(bold.Bold("note:")+" a sentence in two colours, with more words than fit on a line", 2))
	require.Equal(t, "an odd ` in a sentence that is not\n      closed, and goes on", narrow.Hang("an odd ` in a sentence that is not closed, and goes on", 6))
	long := "{" + strings.Repeat("x,", 50) + "}"
	for _, line := range strings.Split(narrow.Hang(long, 6), "\n") {
		require.LessOrEqual(t, len(line), 40)
	}
	colored := render.Style{Width: 40, Color: true, Wrap: true}
	text := colored.Protections([]string{"THE NETWORK IS OPEN and so on and so forth until the line is over"})
	for _, line := range strings.Split(text, "\n") {
		require.Equal(t, strings.Count(line, "\x1b[31m"), strings.Count(line, "\x1b[0m")-strings.Count(line, "\x1b[2m"), "each line has its colour: %q", line)
	}
}

func TestTheContractSaysHowOldItsBaselineIs(t *testing.T) {
	c := longContract()
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	c.Age = render.Ago(now.Add(-4*time.Minute), now)
	narrow := render.Style{Width: 80, Zone: zone, Wrap: true}
	const want = "± 2 % an evaluation, measured by pawl validate 4 min ago"
	require.Contains(t, strings.Join(strings.Fields(narrow.ContractSummary(c, "")), " "), want)
	require.Contains(t, narrow.Contract(c), "34051.6, measured by pawl validate 4 min ago")
	c.Age = render.Ago(time.Time{}, now)
	require.NotContains(t, narrow.ContractSummary(c, "")+narrow.Contract(c), "pawl validate")
}

func TestADeliverysContractSaysHowOldItsGuardIs(t *testing.T) {
	c := longContract()
	c.Kind, c.Spec.Kind, c.Age = kind.Deliver, "deliver", "4 min ago"
	c.Spec.Test = spec.Test{Required: new(bool)}
	c.Spec.Guard.Command, c.Tested = "make lint", "6 passed"
	narrow := render.Style{Width: 80, Zone: zone, Wrap: true}
	const want = "6 passed, measured by pawl validate 4 min ago"
	require.Contains(t, strings.Join(strings.Fields(narrow.ContractSummary(c, "")), " "), want)
	require.Contains(t, strings.Join(strings.Fields(narrow.Contract(c)), " "), want)
}

// On a narrow terminal the lines that are never cut take no room from the others.
func TestANarrowSummaryCutsNothingForWhatIsNeverCut(t *testing.T) {
	c := longContract()
	c.Spec.Goal, c.Spec.Scope, c.Spec.Setup.Command, c.Spec.Verify.Command = "less", []string{"src/*.py"}, "", "cat src/*.py | wc -c"
	c.Spec.Guard.Command, c.Tested = "true", "its tests are not counted: no output that pawl reads"
	c.Claims, c.Lacks, c.Protections = 0, nil, slices.Repeat([]string{"no sandbox: agent and commands run with your rights on this machine"}, 6)
	text := render.Style{Width: 40, Wrap: true}.ContractSummary(c, "")
	require.Contains(t, strings.Join(strings.Fields(text), " "), "guard true — its tests are not counted: no output that pawl reads")
}
