package spec

import (
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// Match says whether a path, relative to the root of the repository and with slashes, is in
// scope. A sealed file may not change even so: sealed wins over scope.
func (s Spec) Match(path string) bool { return MatchAny(s.Scope, path) }

// MatchAny says whether one of the globs matches a path. "*" stays within a directory and "**"
// does not, dot files are files like any others, "./src/**" is "src/**", "src/" is all of src,
// and "." is everything. A path may be any bytes that git gives.
func MatchAny(globs []string, path string) bool {
	return slices.ContainsFunc(globs, func(glob string) bool {
		matched, err := doublestar.Match(Tidy(glob), path)
		return matched && err == nil
	})
}

// Tidy writes a glob out in full, as MatchAny understands it: "src/" is "src/**".
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
