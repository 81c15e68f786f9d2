package evidence_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/evidence"
)

// The subjects are of real commits; the first ones were once refused for a single word.
func TestP2_SeveralChangesAreWhatTheDescriptionAndTheDiffShow(t *testing.T) {
	hunk, file, files, folders := evidence.Shape{Areas: 1, Files: 1, Hunks: 1}, evidence.Shape{Areas: 1, Files: 1, Hunks: 3}, evidence.Shape{Areas: 1, Files: 3, Hunks: 5}, evidence.Shape{Areas: 2, Files: 3, Hunks: 5}
	for _, c := range []struct {
		description string
		shape       evidence.Shape
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
		{"raise the number and count the attempts", evidence.Shape{Areas: 1, Files: 2, Hunks: 2}, true},
		{"the parser and the printer", folders, true},
		{"improve the parser and remove the cache", evidence.Shape{Areas: 1, Files: 1}, true}, // nobody counted hunks
	} {
		require.Equal(t, c.several, evidence.Several(c.description, c.shape) != "", "%s %+v", c.description, c.shape)
	}
	require.Equal(t, "the description names several changes, and the diff is in 3 places", evidence.Several("improve x and remove y", file))
	require.Equal(t, "the description names several changes, and the diff is in 2 folders", evidence.Several("x and y", folders))
}

func TestP2_ALargeChangeIsWorthANote(t *testing.T) {
	require.Empty(t, evidence.Large(evidence.Shape{Areas: 3, Files: 19, Hunks: 59}))
	require.Equal(t, "a large change: 8 files in 5 folders", evidence.Large(evidence.Shape{Areas: 5, Files: 8, Hunks: 9}))
	require.Equal(t, "a large change: 70 places in 1 folder", evidence.Large(evidence.Shape{Areas: 1, Files: 1, Hunks: 70}))
	require.Equal(t, evidence.Shape{Areas: 2, Files: 3, Hunks: 4}, evidence.ShapeOf([]string{"a/b.go", "a/c.go", "d.go"}, 4))
}
