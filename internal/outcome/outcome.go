// Package outcome classifies how a call of an agent ended: one class for each call, decided from its stream, from how
// its process ended and from the state of the desk, never from an exit code or from words alone. It reads no stream
// (internal/agent/stream does) and decides nothing about a loop (internal/govern does). Pure. Start at Of.
package outcome

import "slices"

// Class is what came of a call.
type Class string

// The classes.
const (
	Done         Class = "done"
	Nothing      Class = "nothing-changed"
	Denied       Class = "denied"
	Failed       Class = "failed"
	RateLimited  Class = "rate-limited"
	AuthMissing  Class = "auth-missing"
	ProviderDown Class = "provider-down"
	Crashed      Class = "crashed"
	TimedOut     Class = "timed-out"
	Silent       Class = "silent"
)

// Classes says of each class what it means, and what a loop does then.
var Classes = []struct {
	Class   Class
	Meaning string
}{
	{Done, "the program says that it ended well"},
	{Nothing, "it says so, and the files are as they were"},
	{Denied, "it was not allowed to use a tool, and changed nothing"},
	{Failed, "it says that it failed, or it gave up"},
	{RateLimited, "its provider refuses work for a while"},
	{AuthMissing, "its provider does not know who asks"},
	{ProviderDown, "its provider fails, or can't be reached"},
	{Crashed, "it could not be started, or ended without saying how"},
	{TimedOut, "it did not end in time"},
	{Silent, "it said nothing for limits.silence, and none of its tools was at work"},
}

// Refused reports whether the provider did not let the agent work. Such a call is made again and counts as none: it
// costs no iteration, no attempt and no active time.
func (c Class) Refused() bool {
	return slices.Contains([]Class{RateLimited, AuthMissing, ProviderDown}, c)
}

// After is the class of a call that ended well once it is known what became of the desk. denied says that the agent was
// not allowed to use a tool.
func (c Class) After(changed, denied bool) Class {
	switch {
	case c != Done || changed:
		return c
	case denied:
		return Denied
	}
	return Nothing
}

// Facts are what a call is classified by.
type Facts struct {
	Stream  bool   // the program's stdout is a stream of events
	Begun   bool   // the stream says that it began
	Ended   bool   // the stream says that it ended
	Failure string // why it failed, as the stream says, or the program's result file; "" for none
	GaveUp  bool   // the agent says that it can't
	// Refusal is the class of what its provider answered last instead of work, "" where it has worked since.
	Refusal Class

	NotStarted bool // there is no such program, or it can't be run
	TimedOut   bool // pawl ended it: its time was up
	Silent     bool // pawl ended it: it said nothing for too long
	Signal     bool // somebody else ended it
	Exit       int
	Stderr     string // its last lines
}

// Of returns what came of a call that was neither interrupted nor ended for a budget. What its provider refuses counts
// before how the program took it: some end with a failure then, others go on asking until their time is up.
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
	case f.Stream && !f.Ended && !f.Begun && ByWords(f.Stderr) == AuthMissing: // it looked for its sign-in before it said anything
		return AuthMissing
	case f.Signal && !f.Ended, f.Stream && !f.Ended:
		return Crashed
	}
	return Failed
}
