package store

import "slices"

// RootFiles are the names in a working tree's root that belong to pawl. They are never part of a change and never make
// a tree dirty: the copy of the results, the stop request, and the lock of P0.
var RootFiles = []string{"loop-results.tsv", "loop-stop", "loop-results.tsv.lock"}

// IsRootFile reports whether a path is one of RootFiles.
func IsRootFile(path string) bool {
	return slices.Contains(RootFiles, path)
}
