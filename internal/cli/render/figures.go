package render

import (
	"strings"

	"pawl/internal/loop"
	"pawl/internal/spec/kind"
)

// row returns how a figure of a loop's progress is shown as a row of `pawl show`. The text is empty if there is nothing to
// say.
func row(f kind.Figure, st loop.State) (label, text string) {
	switch {
	case f == kind.Keeps:
		kept := itoa(st.KeptCount) + " kept, " + itoa(st.Discarded) + " discarded, " + itoa(st.DiscardsInARow) + " in a row"
		return "iteration", itoa(st.Iteration) + ": " + kept
	case f == kind.Fixes:
		return "iteration", itoa(st.Iteration) + ": " + plural(st.FixAttempts, "fix") + " in it"
	case f == kind.Suite && st.LastTest != nil && st.LastTest.Tests != nil:
		return "tests", strings.TrimPrefix(tests(*st.LastTest), "tests: ")
	case f == kind.Gate && st.LastGuard != nil && !st.LastGuard.Passed:
		return "guard", "failed" + note(st.LastGuard.Reason)
	}
	return "", ""
}

// part returns how a figure is shown on the moving line, "" if it is not.
func part(f kind.Figure, st loop.State) string {
	switch {
	case f == kind.Keeps && st.Best != nil:
		return itoa(st.KeptCount) + " kept, " + itoa(st.Discarded) + " discarded"
	case f == kind.Fixes && st.FixAttempts != 0:
		return plural(st.FixAttempts, "fix")
	case f == kind.Suite && st.LastTest != nil && st.LastTest.Tests != nil:
		return "tests: " + counts(*st.LastTest.Tests)
	}
	return ""
}
