package risk

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/spec"
)

func TestGlobsThatCouldMatchTheSameFileOverlap(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"AGENTS.md", "AGENTS.md", true}, {"AGENTS.md", "agents.md", true}, {"AGENTS.md", "README.md", false},
		{"*.md", "AGENTS.md", true}, {"A?ENTS.*", "*TS.md", true}, {"*.md", "*.go", false}, {"a*", "*b", true}, {"a*c", "b*", false},
		{"**", "x/y/z", true}, {".", "x", true}, {"src/", "src/a/b", true}, {"./src/**", "src/a", true}, {"src/**", "docs/**", false},
		{"src/*", "src/a/b", false}, {"src/*/b", "src/a/*", true}, {"**/b", "a/**", true}, {"**/x", "a/b", false},
		{"{docs,src}/*.{md,go}", "src/*.go", true}, {"{docs,src}/*.md", "src/*.go", false}, {"{a,b/c}/d", "b/**", true}, {"{a,{b,c}}x", "cx", true}, {"aa", "aaa", true},
		{"[ab].md", "c.md", true}, // cautious: a class is any character
		{`\*.md`, "x.md", true}, {`\*.md`, "*.md", true},
		{strings.Repeat("{a,b}", 8), "zzz", true}, {"{a", "b", true}, // cautious: too many alternatives, or none
	} {
		require.Equal(t, c.want, Overlap(c.a, c.b), "%s and %s", c.a, c.b)
		require.Equal(t, c.want, Overlap(c.b, c.a), "%s and %s", c.b, c.a)
	}
}

// TestOverlapAndWithinAreCautious compares both with what globs really match: two globs that match the same path
// overlap, and a scope within a glob matches only paths that the glob matches.
func TestOverlapAndWithinAreCautious(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	parts := []string{"a", "b", "*", "**", "a*", "*b", "?", "[ab]", "{a,b}", "a.md", "*.md", "docs"}
	names := []string{"a", "b", "ab", "a.md", "b.md", "docs", "cb"}
	pick := func(from []string, n int) string {
		var all []string
		for range 1 + r.IntN(n) {
			all = append(all, from[r.IntN(len(from))])
		}
		return strings.Join(all, "/")
	}
	met, inWithin := 0, 0
	for range 60_000 {
		a, b, path := pick(parts, 3), pick(parts, 3), pick(names, 4)
		inA, inB := spec.MatchAny([]string{a}, path), spec.MatchAny([]string{b}, path)
		if inA && inB {
			met++
			require.True(t, Overlap(a, b), fmt.Sprintf("%s and %s match %s", a, b, path))
		}
		if inA && within(a, []string{b}) {
			inWithin++
			require.True(t, inB, fmt.Sprintf("%s is within %s, which does not match %s", a, b, path))
		}
	}
	require.Greater(t, met, 500)
	require.Greater(t, inWithin, 50)
}
