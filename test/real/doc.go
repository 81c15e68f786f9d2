// Package real runs pawl on repositories that others wrote: `init`, `validate`, three iterations of `Improve` with an
// agent that cheats once, and `Deliver` of one broken function. They come from Go's proxy, from npm and from Debian's
// source packages, and are kept in the user's cache. testdata has what `init` proposes for each, for people to read.
// Start at sources.
package real
