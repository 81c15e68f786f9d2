package ui_test

import (
	"strings"
	"testing"
	"time"

	"github.com/mattn/go-runewidth"
	"github.com/stretchr/testify/require"

	"pawl/internal/kind"
	"pawl/internal/loop"
	"pawl/internal/ui"
)

func TestRowsAndQuestionsBreakBetweenWords(t *testing.T) {
	narrow := ui.Style{Width: 80, Wrap: true}
	gate := loop.Gate{ID: "diff-9", Kind: loop.GateDiff, Summary: "approve the change as a whole: 1 file, +1 -1, on a branch with quite a long name"}
	texts := map[string]string{
		"gate": narrow.Gate("loop-1", gate, nil, time.Now()),
	}
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
