// Package result classifies how a call of an agent ended: one class for each call, decided from its stream, from how
// its process ended and from the state of the desk, never from an exit code or from words alone. It reads no stream
// (internal/agent/adapter does) and decides nothing about a loop (internal/loop/rules does). Pure. Start at Of.
package result

import (
	"slices"
	"strings"
)

// Class says how a call ended.
type Class string

// The classes, each with what it means.
const (
	Done         Class = "done"            // the program says that it ended well
	Nothing      Class = "nothing-changed" // it says that it ended well, but changed nothing
	Denied       Class = "denied"          // it was not allowed to use a tool, and changed nothing
	Failed       Class = "failed"          // it says that it failed, or it gave up
	RateLimited  Class = "rate-limited"    // its provider refuses work for a while
	AuthMissing  Class = "auth-missing"    // its provider refuses its sign-in, or it has none
	ProviderDown Class = "provider-down"   // its provider fails, or can't be reached
	Crashed      Class = "crashed"         // it could not be started, or ended without saying how
	TimedOut     Class = "timed-out"       // it did not end in time
	Silent       Class = "silent"          // it said nothing for limits.silence, and none of its tools was at work
)

// Refused reports whether the provider did not let the agent work. Such a call is repeated and does not count: it costs
// no iteration, no attempt and no active time.
func (c Class) Refused() bool {
	return slices.Contains([]Class{RateLimited, AuthMissing, ProviderDown}, c)
}

// After returns the class of a call after its changes on the desk are known. denied says that the agent was not allowed
// to use a tool. It changes only the class Done.
func (c Class) After(changed, denied bool) Class {
	switch {
	case c != Done || changed:
		return c
	case denied:
		return Denied
	}
	return Nothing
}

// Facts are what decides the class of a call.
type Facts struct {
	Stream  bool   // the program's stdout is a stream of events
	Begun   bool   // the stream says that the program began
	Ended   bool   // the stream says that the program ended
	Failure string // why the call failed, from the stream or the program's result file; "" for none
	GaveUp  bool   // the agent says that it gives up
	// Refusal is the class of the provider's last refusal, "" if the provider has worked since.
	Refusal Class

	NotStarted bool // there is no such program, or it can't be run
	TimedOut   bool // pawl ended it: its time was up
	Silent     bool // pawl ended it: it printed nothing for too long
	Signal     bool // somebody else ended it
	Exit       int
	Stderr     string // its last lines
}

// Of returns the class of a call that was neither interrupted nor ended for a budget. A provider's refusal decides
// before the way in which the program ended: some programs then end with a failure, others try again until their time
// is up.
func Of(f Facts) Class {
	ok := f.Failure == "" && !f.GaveUp && !f.Signal && f.Exit == 0 && !f.NotStarted && !f.TimedOut && !f.Silent && (!f.Stream || f.Ended)
	switch {
	case ok:
		return Done
	case f.NotStarted:
		return Crashed
	case f.Refusal != "":
		return f.Refusal
	case f.Silent:
		return Silent
	case f.TimedOut:
		return TimedOut
	case f.Stream && !f.Ended && !f.Begun && wantsSignIn(f.Stderr): // it looked for its sign-in before it printed anything
		return AuthMissing
	case f.Signal && !f.Ended, f.Stream && !f.Ended:
		return Crashed
	}
	return Failed
}

// wantsSignIn reports whether a line of what a program complains of is about its sign-in.
func wantsSignIn(stderr string) bool {
	for line := range strings.Lines(stderr) {
		if ByWords(line) == AuthMissing {
			return true
		}
	}
	return false
}
