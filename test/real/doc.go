// Package real points pawl at repositories that others wrote: `init`, `validate`, three iterations of `Improve`
// with an agent that cheats once, and `Deliver` of one broken function. They come from Go's proxy, from npm and
// from Debian's source packages, and are kept in the user's cache. What `init` proposes for each is in testdata,
// to be read. Start at sources.
package real
