// Package kind describes the kinds of workflows that pawl runs. Each kind is one value, mostly plain data. Everything
// that is particular to a kind is in its value. So no other package checks which kind it has; it reads an attribute.
// The package is pure: it decides nothing and knows no spec, no state and no terminal. Start at Kind, then read
// improve.go and deliver.go. To add a kind, add a value to All.
package kind

import (
	"encoding/json"
	"slices"
	"strings"

	"pawl/internal/fault"
	"pawl/internal/lib/list"
	"pawl/internal/spec/phase"
)

// The roles in which an agent is called.
const (
	Planner  = "planner"
	Ideator  = "ideator"
	Writer   = "writer"
	Fixer    = "fixer"
	Reviewer = "reviewer"
)

// Kind is one kind of workflow.
type Kind struct {
	Name     string // the name in specs, states, flags and search attributes: "improve"
	Workflow string // the workflow type, as Temporal knows it: "Improve"

	// Machines are the transition tables: one for each version of the rules, beginning with version 1. A kind has
	// none if it is never in a single phase.
	Machines []phase.Machine

	Draft string // the template of the spec that `pawl init` writes

	// Loop says that the input is the spec of a loop. A kind with its own spec and reader leaves Loop and the fields
	// after it empty.
	Loop  bool
	Needs []Need // the keys that its spec requires, besides those that every loop requires

	Reference bool // a metric decides what is kept, compared with a baseline
	Mends     bool // its commands may fail on the unchanged code, because the loop may be there to fix that
	Tests     bool // it runs test.command
	Course    bool // its state counts fixes and reworks within an iteration

	Tasks    map[phase.Phase]Task // the task of the agent in each phase
	Standing string               // describes the state of the loop to the agent; a template like Task.Text

	Figures    []Figure // what people see of its progress, in this order
	PhaseLines bool     // each new phase is shown on its own line, because phases are few and take long
	Stops      []string // the keys of the limits that end it without success, besides its budgets
	Rejected   string   // what follows when a person rejects the change as a whole
	TriesAgain bool     // then an agent reads why, and tries again
	Kept       Words    // the words for an iteration that succeeded
	NotKept    Words    // the words for one that did not succeed, if no reason with a name applies
}

// Need is a key that a spec of the kind requires.
type Need struct {
	Key  string
	When When
	Want string // what belongs there, for the message about a missing key
}

// When says for which specs a need holds.
type When string

// A need holds always, only if tests are required, or only if they are not.
const (
	Always   When = ""
	Required When = "required"
	Optional When = "optional"
)

// Task is the task of an agent in a phase.
type Task struct {
	// Text is a template of text/template over prompt.Brief, with the functions of that package.
	Text string
	// Repair is the title above what went wrong, if the agent is shown that.
	Repair string
}

// Figure is one part of what is shown of a loop's progress.
type Figure string

// The figures. internal/cli/render shows them.
const (
	Keeps Figure = "keeps" // how many changes were kept, discarded, and discarded in a row
	Fixes Figure = "fixes" // the fixes in this iteration
	Suite Figure = "tests" // the result of the last test run
	Gate  Figure = "guard" // the guard command, if it failed
)

// Words are a word for an outcome and its meaning.
type Words struct{ Word, Meaning string }

// All lists all kinds. The first one is the kind of a spec that names none.
var All = []Kind{Improve, Deliver, Steward}

// Of returns the kind of that name. An unknown name is an error, wherever it was read: in a spec, on a command line,
// in the input of a workflow or in a ledger.
func Of(name string) (Kind, error) {
	if i := slices.IndexFunc(All, func(k Kind) bool { return k.Name == name }); i >= 0 {
		return All[i], nil
	}
	return Kind{}, fault.New(fault.InvalidSpec, "this version of pawl knows no kind %q, only %s", name, strings.Join(names(All), ", ")).
		Advise("Correct the kind, or use the version of pawl that the loop was started with.")
}

// Takes returns an error if the input of a workflow names another kind than this one: a steward's spec given to a
// loop, or a loop's to a steward. An input that names no kind is of the first kind. The kind's own reader reports
// everything else that is wrong with the input.
func (k Kind) Takes(input []byte) error {
	named := struct {
		Kind string `json:"kind"`
	}{All[0].Name}
	if json.Unmarshal(input, &named) != nil || named.Kind == k.Name {
		return nil
	}
	second, err := Of(named.Kind)
	if err != nil {
		return err
	}
	return fault.New(fault.InvalidSpec, "kind: the input is for a workflow of type %s (kind %s), and this one is of type %s (kind %s)", second.Workflow, second.Name, k.Workflow, k.Name).
		Advise("Start a workflow of type " + second.Workflow + " with it, or correct `kind`.")
}

// OfWorkflow returns the kind that runs as that workflow type; ok is false if there is none.
func OfWorkflow(name string) (k Kind, ok bool) {
	return list.First(All, func(k Kind) bool { return k.Workflow == name })
}

// Names lists the names of all kinds.
func Names() []string { return names(All) }

// Loops lists the names of the kinds whose input is a loop's spec.
func Loops() []string {
	return names(slices.DeleteFunc(slices.Clone(All), func(k Kind) bool { return !k.Loop }))
}

func names(kinds []Kind) []string {
	return list.Map(kinds, func(k Kind) string { return k.Name })
}

// Version returns the newest version of the rules in which a kind has a table of its own.
func Version() (newest int) {
	for _, k := range All {
		newest = max(newest, len(k.Machines))
	}
	return newest
}

// Machine returns the transition table in that version of the rules, or in the newest version before it. tests says
// whether the spec requires tests. It returns nil for a kind without tables.
func (k Kind) Machine(version int, tests bool) phase.Machine {
	if version < 1 || len(k.Machines) == 0 {
		return nil
	}
	m := k.Machines[min(version, len(k.Machines))-1]
	if !tests {
		return m.WithoutTests()
	}
	return m
}

// Phases lists all phases of the newest table, in order.
func (k Kind) Phases() []string {
	return list.Map(k.Machine(len(k.Machines), true).Phases(), func(p phase.Phase) string { return string(p) })
}

// Edits reports whether, in any kind, an agent's work in that phase is a change. In others it is thrown away.
func Edits(current phase.Phase) bool {
	return slices.ContainsFunc(All, func(k Kind) bool {
		return slices.ContainsFunc(k.Machines, func(m phase.Machine) bool { return m.Row(current).Edits })
	})
}

// Needed returns what a spec requires. tests says whether it requires tests.
func (k Kind) Needed(tests bool) []Need {
	negated := Required
	if tests {
		negated = Optional
	}
	return slices.DeleteFunc(slices.Clone(k.Needs), func(n Need) bool { return n.When == negated })
}
