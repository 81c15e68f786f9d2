// Package phase has the parts of a workflow's state machine: its phases, and a table with a row for each phase, which
// says what may follow and what is particular to it. The table is the machine: a workflow that takes any other step
// gets ALO_INVALID_TRANSITION. The tables themselves are in internal/spec/kind, with everything else about a kind of
// workflow. Pure. Start at Row.
package phase

import (
	"slices"

	"pawl/internal/fault"
)

// Phase is a state of a workflow's state machine.
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

// The phases of Deliver (L6), besides Verify and Complete.
const (
	Plan  Phase = "plan"
	Write Phase = "write"
	Test  Phase = "test"
	Fix   Phase = "fix"
)

// Machine is a transition table: a row for each phase, in the order in which a workflow enters them.
type Machine []Row

// Row is one phase: which phases may follow, and the phase's attributes.
type Row struct {
	At       Phase
	Next     []Phase
	Untested []Phase // more phases that may follow, if the spec does not require tests (L2)

	Role     string // the role whose agent works here, "" for none
	Edits    bool   // the agent's work here changes the source
	Begins   bool   // an iteration begins here
	Records  bool   // an iteration is recorded here
	Between  bool   // the loop is between its iterations here
	OnDesk   bool   // the desk may have uncommitted work, so it is kept while the loop waits here
	EveryEnd bool   // the workflow enters this phase at every end, not only after success
}

// Row returns the row of a phase, an empty one if the machine has no such phase.
func (m Machine) Row(current Phase) Row {
	if i := m.index(func(r Row) bool { return r.At == current }); i >= 0 {
		return m[i]
	}
	return Row{}
}

func (m Machine) index(matches func(Row) bool) int { return slices.IndexFunc(m, matches) }

// WithoutTests returns the table of a loop whose tests are not required.
func (m Machine) WithoutTests() Machine {
	m = slices.Clone(m)
	for i := range m {
		m[i].Next = slices.Concat(m[i].Next, m[i].Untested)
	}
	return m
}

// Phases returns the machine's phases in the order in which a loop enters them, without None.
func (m Machine) Phases() []Phase {
	var list []Phase
	for _, r := range m {
		if r.At != None {
			list = append(list, r.At)
		}
	}
	return list
}

// Check returns nil if next may follow current, else ALO_INVALID_TRANSITION (L6).
func (m Machine) Check(current, next Phase) error {
	if slices.Contains(m.Row(current).Next, next) {
		return nil
	}
	return fault.New(fault.InvalidTransition, "the phase %q may not follow %q", next, current)
}

// Between returns the phase between two iterations, from which the next one begins; None if the machine has no
// iterations.
func (m Machine) Between() Phase { return m.only(func(r Row) bool { return r.Between }) }

// Records returns the phase in which an iteration is recorded; None if there is no such phase.
func (m Machine) Records() Phase { return m.only(func(r Row) bool { return r.Records }) }

func (m Machine) only(matches func(Row) bool) Phase {
	if i := m.index(matches); i >= 0 {
		return m[i].At
	}
	return None
}

// Unbegun returns the phase from which a loop resumes that was in the phase current and had begun no iteration. That is the same
// phase. But if an iteration begins in it, it is the phase before, because the loop then enters it again.
func (m Machine) Unbegun(current Phase) Phase {
	if i := m.index(func(r Row) bool { return r.At == current }); i > 0 && m[i].Begins {
		return m[i-1].At
	}
	return current
}

// Completes reports whether a loop that ends in the phase current enters complete first. Otherwise it stays in its phase.
func (m Machine) Completes(current Phase, success bool) bool {
	return (success || m.Row(Complete).EveryEnd) && m.Check(current, Complete) == nil
}
