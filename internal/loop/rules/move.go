package rules

import (
	"strings"

	"pawl/internal/loop"
	"pawl/internal/metric/reason"
	"pawl/internal/spec/phase"
)

// Move is what a loop does next, as decided by the rules of its kind: one thing (Do), and what that thing needs.
// Improve and Deliver share it, and one driver (workflows/loop/iteration.go) carries out the moves of both.
type Move struct {
	Do     Do
	To     phase.Phase // Enter: the phase. Rework: the phase to enter again; None stays in the current one
	Reason string      // for the event, the record and the agent that is asked next
	Why    string      // for the agent that is asked next, if it is told more than Reason
	Drop   string      // Block: the reason for the record, if a person drops the change
	End    *End        // Stop: how the loop ends. Finish: it ends with this iteration.

	Kept     bool // Finish: the change is kept
	Judged   bool // Finish: the change was judged, so the same tree need not be judged again
	Measured bool // Finish: the record carries the iteration's own metric, not the reference (P7)

	Undo       bool // Enter: the last fix is undone first, since more tests failed after it
	Regenerate bool // Enter: no fixer is called; fix leads back to write at once
	Suspicious bool // Finish: the improvement is too good, and is marked if it is kept
	Approved   bool // Enter: the reviewer or a person approved the proposal
	Skipped    bool // Enter: the test phase is skipped; Reason says why (L2)

	Choices []string // AskPerson: what the person may choose, if it is a question
}

// Do names the one thing that a move does.
type Do string

// What a move does.
const (
	Enter       Do = "enter"  // enter a phase and do its work
	Again       Do = "again"  // do the phase's work once more; nothing is undone
	Rework      Do = "rework" // undo the attempt and make another one
	RunCheck    Do = "check"  // run the check command on the desk
	RunGuard    Do = "guard"  // pass the change through the guard gate: the only way out of write and fix (L1)
	Block       Do = "block"  // park the change and open the guard gate for a person (L9)
	AskReviewer Do = "review" // make the proposal and ask the reviewer, more than once if needed
	AskPerson   Do = "ask"    // open the diff gate: a person decides
	Finish      Do = "finish" // record the iteration
	Stop        Do = "stop"   // end the loop
)

func enter(p phase.Phase, reason string) Move { return Move{Do: Enter, To: p, Reason: reason} }

func stops(e End) Move { return Move{Do: Stop, End: &e, Reason: e.Reason} }

// because returns a cause as the end of a sentence, ": cause", "" if there is none.
func because(cause string) string {
	if cause = strings.TrimSpace(cause); cause == "" {
		return ""
	}
	return ": " + loop.Clip(cause, 1000)
}

// Unfinished returns how to record an iteration that the loop's end cut short. If the loop failed, the iteration has
// the loop's reason; otherwise it was interrupted.
func Unfinished(e End) Move {
	if e.Status == loop.Failed {
		line, _, _ := strings.Cut(strings.TrimSpace(e.Reason), "\n") // the rest is the output of a command
		return discard(line)
	}
	return discard(reason.Interrupted)
}
