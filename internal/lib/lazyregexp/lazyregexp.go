// Package lazyregexp has regular expressions that are compiled when they are first used. pawl has about a hundred of
// them. Every command and every supervisor starts the same program, and needs only a few. It never takes an expression
// from outside, because a wrong one panics.
package lazyregexp

import (
	"regexp"
	"sync"
)

// Regexp returns a regular expression, which its first call compiles.
type Regexp func() *regexp.Regexp

// New returns an expression that is not compiled yet.
func New(expr string) Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
