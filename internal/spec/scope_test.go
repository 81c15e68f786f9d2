package spec_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"pawl/internal/spec"
)

func TestP3_ScopeIsMatchedByGlobs(t *testing.T) {
	for _, test := range []struct {
		glob, path string
		want       bool
	}{
		{"src/**", "src/a/b.go", true}, {"src/**", "srcs/a", false}, {"src/*", "src/a/b.go", false}, {"*.go", "a.go", true}, {"*.go", "x/a.go", false},
		{"**/*.go", "a.go", true}, {"**/*.go", "x/y/a.go", true}, {"**", ".github/x", true}, {"src/", "src/a/b", true}, {"./src/**", "src/a", true},
		{".", "a/b", true}, {"./", "a", true}, {"{a,b}/*.x", "b/c.x", true}, {"a?c", "abc", true}, {"a[!b]c", "abc", false}, {"a\\*", "a*", true}, {"a\\*", "ab", false},
		{"src/**", "src/\xff\xfe", true}, {"src/?", "src/\xff", true}, {"src/*.go", "src/a\nb.go", true}, {"src/ä*", "src/äb", true}, {"src/[", "src/[", false},
		{"SRC/**", "src/a", false}, {"a b/**", "a b/c d", true},
	} {
		assert.Equal(t, test.want, spec.Spec{Scope: []string{"none", test.glob}}.Match(test.path), "%q %q", test.glob, test.path)
	}
	assert.False(t, spec.MatchAny(nil, "a"))
}
