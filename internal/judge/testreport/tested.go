package testreport

import (
	"cmp"

	"pawl/internal/loop"
)

// Tested returns what a command that exits 0 has tested.
func (r Report) Tested() *loop.Tested {
	return &loop.Tested{
		Format: cmp.Or(r.Format, r.empty), Passed: r.Passed, Failed: r.Failed, Skipped: r.Skipped, Partial: r.Partial,
		Packages: r.Format == "go" && !r.naming,
	}
}
