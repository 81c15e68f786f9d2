// Package reason is the table of the words that say why a change was not kept. They are written into records, events
// and results, and read from there, so they never change. Pure. Start at Table.
package reason

import "strings"

// The reasons. In the results they stand before the description (P7).
const (
	NotAtomic    = "not-atomic"
	NoChange     = "no-change"
	Repeated     = "repeat"
	GuardFailed  = "guard-fail"
	AgentFailed  = failure + "agent"
	CheckFailed  = failure + "syntax"
	VerifyFailed = failure + "verify-crash"
	VerifySlow   = failure + "timeout"
	NoNumber     = failure + "no-number"
	Interrupted  = "interrupted"
	Inconclusive = "inconclusive"
	Suspicious   = "suspicious"
	Rejected     = "rejected"
	Conflict     = "conflict"
	Policy       = "policy:" // followed by the rule that was broken
	Bound        = "bound:"  // followed by the metric that exceeds its bound
)

// failure begins the reasons for which an iteration failed before its change was judged.
const failure = "error:"

// Table says what each reason means.
var Table = []struct{ Reason, Meaning string }{
	{GuardFailed, "the guard command failed"},
	{VerifyFailed, "the verify command failed"},
	{NoNumber, "verify printed no number"},
	{VerifySlow, "verify took too long"},
	{CheckFailed, "the check command failed"},
	{AgentFailed, "the agent failed"},
	{Policy, "a rule was broken, so nothing was run"},
	{Bound, "another metric is worse than its bound"},
	{Inconclusive, "too noisy: the evaluations showed neither a gain nor its absence"},
	{Suspicious, "too good to be kept unseen: to 0, or by 90 % or more"},
	{Rejected, "a person rejected it"},
	{Conflict, "it conflicts with what was kept meanwhile; its idea is tried again"},
	{NotAtomic, "the description names several changes"},
	{NoChange, "nothing was changed"},
	{Repeated, "the same change was discarded before"},
	{Interrupted, "the loop was ended"},
}

// Meaning returns what a reason means, "" if it is not in the table.
func Meaning(reason string) string {
	for _, row := range Table {
		if reason == row.Reason || strings.HasSuffix(row.Reason, ":") && strings.HasPrefix(reason, row.Reason) {
			return row.Meaning
		}
	}
	return ""
}

// Failed reports whether something failed, as opposed to a change that was judged.
func Failed(reason string) bool { return strings.HasPrefix(reason, failure) }
