package metric_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/metric"
)

// The subjects are of real commits; the first ones were once refused for a single word.
func TestP2_SeveralChangesAreWhatTheDescriptionAndTheDiffShow(t *testing.T) {
	hunk, file, files, folders := metric.Shape{Areas: 1, Files: 1, Hunks: 1}, metric.Shape{Areas: 1, Files: 1, Hunks: 3}, metric.Shape{Areas: 1, Files: 3, Hunks: 5}, metric.Shape{Areas: 2, Files: 3, Hunks: 5}
	for _, c := range []struct {
		description string
		shape       metric.Shape
		several     bool
	}{
		{"Swap prepare_auth and prepare_body", hunk, false},
		{"Swap prepare_auth and prepare_body", file, false},
		{"Handle both upper and lower case", file, false},
		{"Support Python 3.12 and 3.13", files, false},
		{"compare bytes and strings alike", files, false},
		{"Fix typos in README and CONTRIBUTING", files, false},
		{"use a search-and-replace", folders, false},
		{"improve the parser and remove the cache", hunk, false}, // one place can't be two changes
		{"expand the table", folders, false},
		{"raise the limit", folders, false},

		{"improve the parser and remove the cache", file, true},
		{"improve the parser, and then remove the cache", files, true},
		{"improved the parser and removed the cache", files, true},
		{"improve the parser & rename the cache", files, true},
		{"raise the number and count the attempts", metric.Shape{Areas: 1, Files: 2, Hunks: 2}, true},
		{"the parser and the printer", folders, true},
		{"improve the parser and remove the cache", metric.Shape{Areas: 1, Files: 1}, true}, // nobody counted hunks
	} {
		require.Equal(t, c.several, metric.Several(c.description, c.shape) != "", "%s %+v", c.description, c.shape)
	}
	require.Equal(t, "the description names several changes, and the diff is in 3 places", metric.Several("improve x and remove y", file))
	require.Equal(t, "the description names several changes, and the diff is in 2 folders", metric.Several("x and y", folders))
}

func TestP2_ALargeChangeIsWorthANote(t *testing.T) {
	require.Empty(t, metric.Large(metric.Shape{Areas: 3, Files: 19, Hunks: 59}))
	require.Equal(t, "a large change: 8 files in 5 folders", metric.Large(metric.Shape{Areas: 5, Files: 8, Hunks: 9}))
	require.Equal(t, "a large change: 70 places in 1 folder", metric.Large(metric.Shape{Areas: 1, Files: 1, Hunks: 70}))
	require.Equal(t, metric.Shape{Areas: 2, Files: 3, Hunks: 4}, metric.ShapeOf([]string{"a/b.go", "a/c.go", "d.go"}, 4))
}
