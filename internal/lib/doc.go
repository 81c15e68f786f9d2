// Package lib is the room for small things that many rooms use and that know nothing of loops.
//
// Sub-rooms: text (other people's text, shown safely), fsutil (files that survive crashes and hostile trees), shell
// (reads and quotes shell commands), secretscan (finds credentials), toolpath (the programs that pawl itself runs),
// loosejson (JSON that others wrote), lazyregexp, safego (a panic as an error of its work), crashpoint (the hook by
// which tests kill the process), list and must.
//
// A package comes here when two rooms need it. It may import only other packages of lib.
package lib
