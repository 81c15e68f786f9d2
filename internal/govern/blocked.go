package govern

import "cmp"

// AfterReject decides what follows a person's rejection of a blocked change in version 1 of the rules, in
// loops of both kinds: it ends the loop.
func (Approval) AfterReject(_ Move, by, note string) Move {
	return stops(BlockedGivenUp.Because("the blocked change was rejected by " + cmp.Or(by, "a person") + because(note)))
}

// AfterHalt returns how a loop ends in version 1 that was halted while a change was blocked.
func (Approval) AfterHalt(why string) End { return Interrupted.Because(why) }
