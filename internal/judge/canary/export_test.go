package canary

import (
	"maps"
	"slices"
)

// Extensions returns the extensions of the files that canary can break.
func Extensions() []string { return slices.Sorted(maps.Keys(languages)) }
