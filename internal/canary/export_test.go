package canary

import (
	"maps"
	"slices"
)

// Extensions are those of the files that it knows how to break.
func Extensions() []string { return slices.Sorted(maps.Keys(languages)) }
