package govern

import (
	"cmp"

	"pawl/internal/spec"
)

// Deliver2 holds the rules of the phase machine in version 2, as far as they differ from version 1: a person
// who rejects a blocked change drops it, and does not end the loop.
type Deliver2 struct{ Deliver }

// Deliver2Of returns the rules of a loop with that spec.
func Deliver2Of(s spec.Spec) Deliver2 { return Deliver2{DeliverOf(s)} }

// AfterReject decides what follows a person's rejection of a blocked change: it is dropped, and the agent is
// asked again, with what the person said. Only the person got the loop going again (L9).
func (Deliver2) AfterReject(_ Move, by, note string) Move {
	return Move{Do: Rework, Reason: "the blocked change was rejected by " + cmp.Or(by, "a person") + because(note)}
}

// AfterHalt returns how a loop ends that was halted while a change was blocked.
func (Deliver2) AfterHalt(why string) End { return BlockedGivenUp.Because(why) }
