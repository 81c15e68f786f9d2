// Package phase holds the transition tables: which phase may follow which. The table is the
// machine; a workflow that takes any other step gets ALO_INVALID_TRANSITION. Pure. Start at
// Improve.
package phase

import (
	"slices"

	"pawl/internal/fault"
)

// Phase is a node of a loop's state machine.
type Phase string

// The phases of Improve (P0-P8).
const (
	None     Phase = ""
	Precheck Phase = "precheck"
	Baseline Phase = "baseline"
	Review   Phase = "review"
	Ideate   Phase = "ideate"
	Modify   Phase = "modify"
	Commit   Phase = "commit"
	Verify   Phase = "verify"
	Guard    Phase = "guard"
	Decide   Phase = "decide"
	Log      Phase = "log"
	Complete Phase = "complete"
)

// Machine is a transition table: for each phase the phases that may follow it.
type Machine map[Phase][]Phase

// improve1 is the metric protocol's machine, version 1. Every phase may go to complete, since
// a loop can be halted anywhere; an attempt that can't go on goes to log, which records it.
var improve1 = Machine{
	None:     {Precheck},
	Precheck: {Baseline, Complete},
	Baseline: {Review, Complete},
	Review:   {Ideate, Modify, Log, Complete},
	Ideate:   {Modify, Log, Complete},
	Modify:   {Commit, Modify, Log, Complete},
	Commit:   {Verify, Modify, Log, Complete},
	Verify:   {Guard, Decide, Log, Complete},
	Guard:    {Decide, Modify, Log, Complete},
	Decide:   {Log, Complete},
	Log:      {Review, Complete},
	Complete: {},
}

// Version is the newest version of the rule tables; a run asks for it once.
const Version = 1

// Improve returns the table of the metric protocol in that version of the rules.
func Improve(version int) Machine {
	return improve1
}

// Check returns nil where to may follow from, else ALO_INVALID_TRANSITION (L6).
func (m Machine) Check(from, to Phase) error {
	if slices.Contains(m[from], to) {
		return nil
	}
	return fault.New(fault.InvalidTransition, "the phase %q may not follow %q", to, from)
}
