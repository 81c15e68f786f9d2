package render

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/mattn/go-runewidth"
	"github.com/stretchr/testify/require"

	"pawl/internal/client"
	"pawl/internal/client/launch"
	"pawl/internal/loop"
	"pawl/internal/spec/kind"
	"pawl/internal/steward"
)

// noTerminal is a descriptor that is none: a screen on it has the default width.
const noTerminal = 1 << 20

// TestAMovingLineIsErasedAfterAResize: the cursor stays at its beginning, so that all rows below belong to it.
func TestAMovingLineIsErasedAfterAResize(t *testing.T) {
	t.Setenv("TERM", "xterm")
	var out bytes.Buffer
	s := &Screen{out: &out, fd: noTerminal}
	s.Live("one")
	require.Equal(t, "\r\x1b[J"+"one\r", out.String())
	out.Reset()
	s.Print("news")
	require.Equal(t, "\r\x1b[J"+"news\none\r", out.String())
	out.Reset()
	s.Still()
	require.Equal(t, "\r\x1b[J", out.String())
}

func TestAMovingLineTakesOneRow(t *testing.T) {
	t.Setenv("TERM", "xterm")
	var out bytes.Buffer
	s := &Screen{out: &out, fd: noTerminal}
	s.Live(cyan + strings.Repeat("界", 80) + reset)
	require.Less(t, runewidth.StringWidth(s.live), s.Style().Width)
}

func TestRowsOfALine(t *testing.T) {
	for name, c := range map[string]struct {
		line string
		want int
	}{
		"nothing":       {"\n", 1},
		"a full row":    {strings.Repeat("x", 40) + "\n", 1},
		"one more":      {strings.Repeat("x", 41) + "\n", 2},
		"wide":          {strings.Repeat("界", 21), 2},
		"tabs":          {"\t\t\t\t\tx", 2},
		"colours":       {green + strings.Repeat("x", 40) + reset, 1},
		"three screens": {strings.Repeat("x", 100), 3},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, Style{Wrap: true, Width: 40}.Rows(c.line))
			require.Equal(t, 1, Style{Width: 40}.Rows(c.line), "no terminal wraps it")
		})
	}
}

func TestWhatAPersonCopiesIsNotBroken(t *testing.T) {
	style := Style{Wrap: true, Width: 40}
	const margin = "                  "
	for _, word := range []string{
		"https://example.org/a/very/long/address/of/a/page?with=arguments&more",
		"/home/someone/projects/a-repository/with/a/long/path",
		"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
		"/home/müller/projects/日本語/with/a/long/path/to/a/file",
	} {
		f := style.fields(10)
		f.add("a field", "see "+word+" for more of it")
		require.Contains(t, f.String(), word)
		require.Contains(t, style.Hang("pawl: this is at "+word+", as was said", 6), word)
	}
	for _, line := range style.broken(strings.Repeat("日本語", 30), len(margin)) {
		require.LessOrEqual(t, columns(line), 40-len(margin), "a script without blanks is wrapped")
	}
	for _, line := range style.broken("{"+strings.Repeat("argparse,", 30)+"}", len(margin)) {
		require.LessOrEqual(t, columns(line), 40-len(margin), "a list is wrapped")
	}
}

// TestAnAddressInAContractIsWholeAndCounts: the terminal wraps it, and the contract stays on one screen.
func TestAnAddressInAContractIsWholeAndCounts(t *testing.T) {
	const address = "https://example.org/a/very/long/address/of/an/issue/page?with=arguments&more=1"
	style := Style{Wrap: true, Width: 80}
	c := Contract{Loop: "a", Kind: kind.Improve, InScope: 1}
	c.Spec.Goal = "See " + address + " and do that"
	require.Contains(t, style.ContractSummary(c, ""), address)

	row := summaryRow{lines: []string{strings.Repeat("x", 130), "y"}, width: 65, text: strings.Repeat("x", 130) + " y"}
	require.Equal(t, 3, row.height())
	row.shorten(1)
	require.Equal(t, 1, row.height())
	require.True(t, strings.HasSuffix(row.lines[0], "…"), row.lines)
}

func TestANarrowListLeavesColumnsOut(t *testing.T) {
	began := time.Now().Add(-3 * time.Hour)
	rows := []launch.Row{
		{Loop: "faster-parser", Kind: "improve", Status: "waiting", Gate: "contract", Iteration: 3, StartedAt: &began, Goal: "Make the parser faster than it is"},
		{Loop: "b", Kind: "improve", Status: "running", Phase: "modify", StartedAt: &began, Goal: "Another goal"},
	}
	for _, width := range []int{40, 60, 80} {
		text := Style{Wrap: true, Width: width}.List(rows, time.Now())
		for line := range strings.Lines(text) {
			require.LessOrEqual(t, columns(strings.TrimSuffix(line, "\n")), width, text)
		}
		require.Contains(t, text, "waits: contr")
	}
	require.Contains(t, Style{Wrap: true, Width: 80}.List(rows, time.Now()), "GOAL")
	require.Contains(t, Style{Width: 40}.List(rows, time.Now()), "ITERATION", "a file is not narrow")
}

func TestTheInboxCutsNoQuestion(t *testing.T) {
	const question = "the plan of the task needs an approval since it changes twelve files of the service"
	asks := client.Waiting{Steward: "shop", Gate: loop.Gate{ID: "tier-1", Kind: steward.GateTier, Task: "tea", Summary: question, OpenedAt: time.Now()}}
	for _, width := range []int{40, 60, 120} {
		text := Style{Wrap: true, Width: width}.Inbox([]client.Waiting{asks, asks}, time.Now())
		require.Contains(t, strings.Join(strings.Fields(text), " "), question)
		first, _, _ := strings.Cut(text, "\n")
		require.LessOrEqual(t, columns(first), width)
	}
	require.Contains(t, Style{Width: 100}.Inbox([]client.Waiting{asks, asks}, time.Now()), question, "nor in a file")
}

// TestAQuestionAskedHereNamesNoCommandForIt: the person answers below.
func TestAQuestionAskedHereNamesNoCommandForIt(t *testing.T) {
	question := loop.Gate{ID: "question-2", Kind: loop.GateQuestion, Summary: "verify fails", Choices: []string{"retry", "halt"}}
	asked := Style{}.Asked("x", question)
	require.Contains(t, asked, "Waiting: verify fails\n  retry: try it again\n  halt: end the loop\n")
	require.NotContains(t, asked, "pawl answer")
	require.Contains(t, asked, "\n  to change the spec first, from another terminal: `pawl amend x --set ", "that can't be done here")
	guard := loop.Gate{ID: "guard-2", Kind: loop.GateGuard, Summary: "a violation"}
	require.Equal(t, "Waiting: a violation\n  continue: judge the change again, as it is on the desk\n  reject: drop the change; the loop continues", Style{}.Asked("x", guard))
	for _, kind := range []loop.GateKind{loop.GateDiff, loop.GateNewFiles, loop.GateBudget} {
		require.Equal(t, "Waiting: one\n  - a point", Style{}.Asked("x", loop.Gate{Kind: kind, Hash: "0123456789abcdef0123", Summary: "one a point", Points: []string{"a point"}}))
	}
}
