package loop

import (
	"strings"

	"pawl/internal/lib/list"
)

// Rewritten says that the branch no longer has the commit that the proposal was made on: it was amended, rebased or
// reset.
type Rewritten struct {
	Base  string   `json:"base"`            // the commit that is gone
	Refs  []string `json:"refs,omitempty"`  // pawl's refs that still reach commits that are gone
	Loops []string `json:"loops,omitempty"` // the loops on this host that have these refs
}

// String says what still has the removed commits, and what removes that.
func (r Rewritten) String() string {
	text := "The new proposal has the loop's own change alone."
	if len(r.Refs) == 0 {
		return text
	}
	names := list.Map(r.Refs, func(ref string) string { return strings.TrimPrefix(ref, "refs/heads/") })
	text += " What was removed is still in " + strings.Join(names, ", ")
	if len(r.Loops) == 0 {
		return text + ": remove it with `git update-ref -d`."
	}
	return text + ": once the proposal is applied or rejected, stop the worker and run `pawl clean --refs " + strings.Join(r.Loops, " ") + "`."
}
