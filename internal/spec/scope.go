package spec

import (
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// Match reports whether a path from the root of the repository is in scope. If it is sealed, it still may not change.
func (s Spec) Match(path string) bool { return MatchAny(s.Scope, path) }

// MatchAny reports whether one of the globs matches a path. "*" matches within a folder and "**" across folders.
// Files that begin with a dot are like any others. "./src/**" is "src/**", "src/" is everything in src, and "." is
// everything. A path may have any bytes that git returns.
func MatchAny(globs []string, path string) bool {
	return slices.ContainsFunc(globs, func(glob string) bool {
		matched, err := doublestar.Match(Tidy(glob), path)
		return matched && err == nil
	})
}

// Tidy returns a glob in the full form that MatchAny uses: "src/" becomes "src/**".
func Tidy(glob string) string {
	for strings.HasPrefix(glob, "./") {
		glob = strings.TrimLeft(glob[1:], "/")
	}
	switch {
	case glob == "" || glob == ".":
		return "**"
	case strings.HasSuffix(glob, "/"):
		return glob + "**"
	}
	return glob
}
