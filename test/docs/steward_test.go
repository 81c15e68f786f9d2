package docs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/loop"
	"pawl/internal/steward"
	"pawl/internal/steward/stuck"
)

// TestS2_TheStewardsPageIsInStep writes the machine and the rules of loop detection into docs/reference/steward.md.
func TestS2_TheStewardsPageIsInStep(t *testing.T) {
	text := page(t, "reference/steward.md")
	for name, want := range map[string]string{"transitions": transitions(), "stops": stops(), "rules": circles()} {
		before, rest, found := strings.Cut(text, "<!-- "+name+" -->\n")
		require.True(t, found, name)
		_, after, found := strings.Cut(rest, "<!-- /"+name+" -->")
		require.True(t, found, name)
		text = before + "<!-- " + name + " -->\n" + want + "<!-- /" + name + " -->" + after
	}
	if *update {
		require.NoError(t, os.WriteFile(filepath.Join("..", "..", "docs", "reference", "steward.md"), []byte(text), 0o644))
	}
	require.Equal(t, text, page(t, "reference/steward.md"), "docs/reference/steward.md is out of step: go test ./test/docs -update")
}

// transitions lists the table of S2 with its evidence.
func transitions() string {
	var w strings.Builder
	w.WriteString("| from | to | when | evidence |\n|---|---|---|---|\n")
	for _, r := range steward.Transitions {
		fmt.Fprintf(&w, "| `%s` | `%s` | %s | %s |\n", r.From, r.To, r.When, strings.Join(r.Needs, ", "))
	}
	return w.String()
}

// stops returns the table of S6.
func stops() string {
	var w strings.Builder
	w.WriteString("| stop | when | what runs for the task |\n|---|---|---|\n")
	for _, s := range steward.Stops {
		what := map[string]string{loop.PauseStep: "ends its step, then pauses", loop.PauseIteration: "ends its iteration, then pauses"}[s.At]
		if s.Immediate {
			what = "is interrupted at once"
		}
		fmt.Fprintf(&w, "| `%s` | %s | %s |\n", s.Name, s.When, what)
	}
	return w.String()
}

// circles returns the table of loop detection.
func circles() string {
	var w strings.Builder
	w.WriteString("| rule | counts | begins again with | warns | limit |\n|---|---|---|---|---|\n")
	for _, r := range stuck.Rules {
		warns, key := "no", "fixed"
		if r.Warns != "" {
			warns = r.Warns
		}
		if r.Key != "" {
			key = "`" + r.Key + "`"
		}
		fmt.Fprintf(&w, "| `%s` | %s | %s | %s | %s |\n", r.Name, r.Counts, r.Resets, warns, key)
	}
	return w.String()
}
