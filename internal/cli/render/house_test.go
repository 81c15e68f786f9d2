package render_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/cli/render"
	"pawl/internal/cli/scaffold"
)

// What is measured matters to the reader, and the command that does so is in the file.
func TestProposedShowsTheMetricInFewLines(t *testing.T) {
	t.Parallel()
	metric := scaffold.Metric{Command: strings.Repeat("measure it | sum up | ", 20), Why: "the geometric mean of the 2 Go benchmarks in the root", Direction: "lower"}
	v := render.Drafted{Repo: "/repo", Agent: "claude", Found: scaffold.Repository{Metric: metric, Scope: []string{"**/*.go"}, Test: "go test ./..."}}
	shown := render.Style{Width: 80, Wrap: true}.Proposed(v, true)
	_, after, found := strings.Cut(shown, "  metric ")
	require.True(t, found)
	before, _, _ := strings.Cut(after, "  guard ")
	require.Equal(t, 3, strings.Count(before, "\n"), shown)
	require.Contains(t, strings.Join(strings.Fields(before), " "), "… the geometric mean of the 2 Go benchmarks in the root; lower is better")
	for line := range strings.Lines(shown) {
		require.Less(t, len([]rune(line)), 80)
	}
}

// Advice about a check is for whom has one.
func TestDraftedSpeaksOfACheckOnlyIfThereIsOne(t *testing.T) {
	t.Parallel()
	const advice = "a loop can do without a check"
	v := render.Drafted{Repo: "/repo", Found: scaffold.Repository{Test: "go test ./..."}}
	require.NotContains(t, render.Style{}.Drafted(v, true), advice)
	v.Found.Check = "go vet ./..."
	require.Contains(t, render.Style{}.Drafted(v, true), advice)
}
