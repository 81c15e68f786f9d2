package govern

import "cmp"

// AfterReject decides what follows when a person rejects a blocked change. In version 1 of the rules, for loops of both
// kinds, the loop ends.
func (Approval) AfterReject(_ Move, by, note string) Move {
	return stops(BlockedGivenUp.Because("the blocked change was rejected by " + cmp.Or(by, "a person") + because(note)))
}

// AfterHalt returns how a loop ends in version 1 when it is halted while a change is blocked.
func (Approval) AfterHalt(why string) End { return Interrupted.Because(why) }
