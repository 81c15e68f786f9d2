// Package phase holds the transition tables: which phase may follow which. The table is the
// machine; a workflow that takes any other step gets ALO_INVALID_TRANSITION. Pure. Start at
// Improve and Deliver.
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

// The phases of Deliver (L6), beside Verify and Complete.
const (
	Plan  Phase = "plan"
	Write Phase = "write"
	Test  Phase = "test"
	Fix   Phase = "fix"
)

// Machine is a transition table: for each phase, in the order in which a loop meets them, the
// phases that may follow it.
type Machine struct {
	rows []row
	// everyEnd says that a loop goes to complete however it ends. Without it complete is a success
	// alone, and a loop that fails or is halted stays in the phase in which that happened.
	everyEnd bool
	first    Phase // of an iteration
}

// row is what may follow one phase: next always, untested only where tests are not required.
type row struct {
	from     Phase
	next     []Phase
	untested []Phase
}

// improve1 is the metric protocol's machine, version 1. Every phase may go to complete, since
// a loop can be halted anywhere; an attempt that can't go on goes to log, which records it.
var improve1 = Machine{everyEnd: true, first: Review, rows: []row{
	{from: None, next: []Phase{Precheck}},
	{from: Precheck, next: []Phase{Baseline, Complete}},
	{from: Baseline, next: []Phase{Review, Complete}},
	{from: Review, next: []Phase{Ideate, Modify, Log, Complete}},
	{from: Ideate, next: []Phase{Modify, Log, Complete}},
	{from: Modify, next: []Phase{Commit, Modify, Log, Complete}},
	{from: Commit, next: []Phase{Verify, Modify, Log, Complete}},
	{from: Verify, next: []Phase{Guard, Decide, Log, Complete}},
	{from: Guard, next: []Phase{Decide, Modify, Log, Complete}},
	{from: Decide, next: []Phase{Log, Complete}},
	{from: Log, next: []Phase{Review, Complete}},
	{from: Complete},
}}

// deliver1 is the phase machine of the source, version 1: exactly the transitions of L6. The
// guard is the gate out of write and fix and no phase; a rework happens within its phase. An end
// is not a transition, so that the state says where a loop stood when it failed.
var deliver1 = Machine{first: Write, rows: []row{
	{from: None, next: []Phase{Plan}},
	{from: Plan, next: []Phase{Write}},
	{from: Write, next: []Phase{Test}, untested: []Phase{Verify}},
	{from: Test, next: []Phase{Fix, Verify}},
	{from: Fix, next: []Phase{Test, Write}},
	{from: Verify, next: []Phase{Complete, Write}},
	{from: Complete},
}}

// Version is the newest version of the rule tables; a run asks for it once.
const Version = 1

// Improve returns the table of the metric protocol in that version of the rules.
func Improve(version int) Machine {
	return improve1
}

// Deliver returns the table of the phase machine in that version of the rules. Only where tests
// are not required may write go to verify past them (L2).
func Deliver(version int, testRequired bool) Machine {
	m := Machine{everyEnd: deliver1.everyEnd, first: deliver1.first}
	for _, r := range deliver1.rows {
		if !testRequired {
			r.next = slices.Concat(r.next, r.untested)
		}
		m.rows = append(m.rows, r)
	}
	return m
}

// Phases returns the machine's phases in the order in which a loop meets them, None left out.
func (m Machine) Phases() []Phase {
	var list []Phase
	for _, r := range m.rows {
		if r.from != None {
			list = append(list, r.from)
		}
	}
	return list
}

// Next returns the phases that may follow from, nil for a terminal or an unknown one.
func (m Machine) Next(from Phase) []Phase {
	for _, r := range m.rows {
		if r.from == from {
			return slices.Clone(r.next)
		}
	}
	return nil
}

// Check returns nil where to may follow from, else ALO_INVALID_TRANSITION (L6).
func (m Machine) Check(from, to Phase) error {
	if slices.Contains(m.Next(from), to) {
		return nil
	}
	return fault.New(fault.InvalidTransition, "the phase %q may not follow %q", to, from)
}

// Between is the phase in which a loop is between its iterations: from there the next one begins.
func (m Machine) Between() Phase {
	if m.everyEnd {
		return Log
	}
	return Plan
}

// Unbegun is the phase from which a loop is taken up that was in a phase and had begun no iteration: the
// same, but where it was about to begin one, what leads there, since it is entered again.
func (m Machine) Unbegun(at Phase) Phase {
	for _, r := range m.rows {
		if at == m.first && slices.Contains(r.next, at) {
			return r.from
		}
	}
	return at
}

// Completes reports whether a loop that ends in phase from goes to complete first: always where
// the table lets it and every end of this machine is one; in Deliver only on success, out of
// verify. A loop that does not complete keeps the phase that it was in.
func (m Machine) Completes(from Phase, success bool) bool {
	return (success || m.everyEnd) && m.Check(from, Complete) == nil
}
