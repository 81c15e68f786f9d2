package render_test

import (
	"strings"
	"testing"
	"time"

	"github.com/mattn/go-runewidth"
	"github.com/stretchr/testify/require"

	"pawl/internal/cli/render"
	"pawl/internal/loop"
	"pawl/internal/spec/kind"
)

func TestRowsAndQuestionsBreakBetweenWords(t *testing.T) {
	narrow := render.Style{Width: 80, Wrap: true}
	gate := loop.Gate{ID: "diff-9", Kind: loop.GateDiff, Summary: "approve the change as a whole: 1 file, +1 -1, on a branch with quite a long name"}
	texts := map[string]string{
		"gate": narrow.Gate("loop-1", gate, nil, time.Now()),
	}
	undone := loop.Event{Type: loop.RepairAttempted, Attempt: 2, FailureReason: "not-atomic", Note: "move chains of at most two cities and skip the long legs, then begin again"}
	texts["note"], _ = narrow.Note(undone)
	texts["log"], _ = narrow.Event(kind.Improve, undone)
	for _, it := range iterations() {
		it.Description = "leave out what is not needed by anybody who reads it"
		texts[it.Reason] = narrow.Iteration(kind.Improve, it)
	}
	for name, text := range texts {
		for line := range strings.Lines(text) {
			require.LessOrEqual(t, runewidth.StringWidth(strings.TrimSuffix(line, "\n")), 80, "%s: %s", name, line)
		}
	}
	require.Contains(t, strings.Join(strings.Fields(texts["gate"]), " "), "`pawl apply` does, at any time.")
}

func TestCommandsStayWholeOnANarrowTerminal(t *testing.T) {
	narrow := render.Style{Width: 60, Wrap: true}
	text := narrow.Ended(loop.Completed, loop.Result{KeptCount: 1, Proposal: &loop.Proposal{Hash: hash, State: "open"}}, render.Places{
		Loop: "loop-1", Repo: "/home/ann/projects/a-shop-with-a-long-name", Base: "2c9deac54712", Branch: "refs/heads/pawl/loop-1", Ledger: "refs/pawl-ledger/loop-1",
	})
	for _, command := range []string{
		"git -C /home/ann/projects/a-shop-with-a-long-name show refs/pawl-ledger/loop-1:loop-results.tsv\n",
		"git -C /home/ann/projects/a-shop-with-a-long-name diff 2c9deac547..pawl/loop-1\n",
		"  pawl diff loop-1\n", "  pawl apply loop-1\n",
	} {
		require.Contains(t, text+"\n", command)
	}
}
