// Package harness is the room for what tests share. Nothing but tests may import it.
//
// Sub-rooms: world (the built programs, driven from outside), actest (activities without Temporal), gittest
// (repositories), testbin, testdir, testflow, and constants (the constants that a Go file declares).
package harness
