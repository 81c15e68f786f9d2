// Package real points pawl at repositories that others wrote: `init`, `validate`, three iterations of `Improve`
// with an agent that cheats once, and `Deliver` of one broken function. What `init` proposes for each is
// in testdata, to be read.
package real
