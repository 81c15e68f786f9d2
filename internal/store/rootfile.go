package store

import "slices"

// RootFiles are pawl's own names in a working tree's root. They are never part of a change and
// never make a tree dirty: the results' copy, the stop request, and the lock of P0.
var RootFiles = []string{"loop-results.tsv", "loop-stop", "loop-results.tsv.lock"}

// IsRootFile reports whether a path is one of them.
func IsRootFile(path string) bool {
	return slices.Contains(RootFiles, path)
}
