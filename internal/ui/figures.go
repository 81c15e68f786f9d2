package ui

import (
	"strings"

	"pawl/internal/kind"
	"pawl/internal/loop"
)

// figure is how a part of a loop's progress is shown, if there is a text: as a row of `pawl show`, on the moving line.
type figure struct {
	label     string
	row, part func(loop.State) string
}

// figures are all figures that a kind can have.
var figures = map[kind.Figure]figure{
	kind.Keeps: {
		"iteration",
		func(st loop.State) string {
			return itoa(st.Iteration) + ": " + itoa(st.KeptCount) + " kept, " + itoa(st.Discarded) + " discarded, " + itoa(st.DiscardsInARow) + " in a row"
		},
		func(st loop.State) string {
			if st.Best == nil {
				return ""
			}
			return itoa(st.KeptCount) + " kept, " + itoa(st.Discarded) + " discarded"
		},
	},
	kind.Fixes: {
		"iteration",
		func(st loop.State) string {
			return itoa(st.Iteration) + ": " + plural(st.FixAttempts, "fix") + " in it"
		},
		func(st loop.State) string {
			if st.FixAttempts == 0 {
				return ""
			}
			return plural(st.FixAttempts, "fix")
		},
	},
	kind.Suite: {
		"tests",
		func(st loop.State) string {
			if st.LastTest == nil || st.LastTest.Tests == nil {
				return ""
			}
			return strings.TrimPrefix(tests(*st.LastTest), "tests: ")
		},
		func(st loop.State) string {
			if st.LastTest == nil || st.LastTest.Tests == nil {
				return ""
			}
			return "tests: " + counts(*st.LastTest.Tests)
		},
	},
	kind.Gate: {
		"guard",
		func(st loop.State) string {
			if st.LastGuard == nil || st.LastGuard.Passed {
				return ""
			}
			return "failed" + note(st.LastGuard.Reason)
		},
		func(loop.State) string { return "" },
	},
}
