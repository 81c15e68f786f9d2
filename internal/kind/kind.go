// Package kind describes the kinds of workflows that pawl runs. Each kind is one value, mostly plain data. All packages
// above read from it what is particular to a kind, so no other package asks which kind it has: it asks for an
// attribute. Pure: it decides nothing and knows no spec, no state and no terminal. Start at Kind, then read improve.go
// and deliver.go. To add a kind, add a value to All.
package kind

import (
	"encoding/json"
	"slices"
	"strings"

	"pawl/internal/fault"
	"pawl/internal/phase"
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
	Name     string // in specs, states, flags and search attributes: "improve"
	Workflow string // the workflow type, as Temporal knows it: "Improve"

	// Machines are the transition tables, one for each version of the rules from 1. A kind that is
	// never in one single phase has none.
	Machines []phase.Machine

	Draft string // the template of the spec that `pawl init` writes

	// Loop says that the input is a loop's spec. A kind that has a spec and a reader of its own
	// leaves out all that follows.
	Loop  bool
	Needs []Need // what its spec has to have beside what every loop's has

	Reference bool // it goes by a metric, and compares it with a baseline
	Mends     bool // its commands may fail on the unchanged code, since it may be there to mend that
	Tests     bool // it runs test.command
	Course    bool // its state counts fixes and reworks within an iteration

	Tasks    map[phase.Phase]Task // what its agents are asked for
	Standing string               // how the agent is told where the loop stands; a template as Task.Text is

	Figures    []Figure // what is shown of its progress, in this order
	PhaseLines bool     // each phase that it enters has a line of its own: they are few and take long
	Stops      []string // the keys of the limits that end it without success, beside its budgets
	Kept       Words    // of an iteration that succeeded
	NotKept    Words    // of one that did not, for no reason that has a name
}

// Need is a key that a spec of the kind has to have.
type Need struct {
	Key  string
	When When
	Want string // what belongs there, as people are told who left it out
}

// When says for which specs a need holds.
type When string

// A need holds always, or only where tests are required, or only where they are not.
const (
	Always   When = ""
	Required When = "required"
	Optional When = "optional"
)

// Task is what an agent is asked for in a phase.
type Task struct {
	// Text is a template of text/template over agent.Brief, with the functions of that package.
	Text string
	// Repair is the title above what went wrong, where the agent is shown that.
	Repair string
}

// Figure is something that is shown of a loop's progress.
type Figure string

// The figures. How each is shown is in internal/ui.
const (
	Keeps Figure = "keeps" // kept, discarded, discards in a row
	Fixes Figure = "fixes" // in this iteration
	Suite Figure = "tests" // what the last run of them showed
	Gate  Figure = "guard" // the guard command, where it failed
)

// Words are a word for an outcome and what it means.
type Words struct{ Word, Meaning string }

// All are the kinds there are. The first is what a spec is that names none.
var All = []Kind{Improve, Deliver, Steward}

// Of returns the kind of that name. A name that there is no kind for is an error, wherever it was
// read: in a spec, on a command line, in the input of a workflow or in a ledger.
func Of(name string) (Kind, error) {
	if i := slices.IndexFunc(All, func(k Kind) bool { return k.Name == name }); i >= 0 {
		return All[i], nil
	}
	return Kind{}, fault.New(fault.InvalidSpec, "this version of pawl knows no kind %q, only %s", name, strings.Join(names(All), ", ")).
		Advise("Correct the kind, or use the version of pawl that the loop was started with.")
}

// Takes returns an error if the input of a workflow names another kind than this one: a steward's spec
// given to a loop, a loop's to a steward. An input that names none is of the first kind. What else is
// wrong with it is for the kind's own reader to say.
func (k Kind) Takes(input []byte) error {
	named := struct {
		Kind string `json:"kind"`
	}{All[0].Name}
	if json.Unmarshal(input, &named) != nil || named.Kind == k.Name {
		return nil
	}
	other, err := Of(named.Kind)
	if err != nil {
		return err
	}
	return fault.New(fault.InvalidSpec, "kind: the input is for a workflow of type %s (kind %s), and this one is of type %s (kind %s)", other.Workflow, other.Name, k.Workflow, k.Name).
		Advise("Start a workflow of type " + other.Workflow + " with it, or correct `kind`.")
}

// OfWorkflow returns the kind that runs as that workflow type; ok is false where none does.
func OfWorkflow(name string) (k Kind, ok bool) {
	i := slices.IndexFunc(All, func(k Kind) bool { return k.Workflow == name })
	if i < 0 {
		return Kind{}, false
	}
	return All[i], true
}

// Names lists the names of all kinds.
func Names() []string { return names(All) }

// Loops lists the names of the kinds whose input is a loop's spec.
func Loops() []string {
	return names(slices.DeleteFunc(slices.Clone(All), func(k Kind) bool { return !k.Loop }))
}

func names(kinds []Kind) (all []string) {
	for _, k := range kinds {
		all = append(all, k.Name)
	}
	return all
}

// Version returns the newest version of the rules in which a kind has a table of its own.
func Version() (newest int) {
	for _, k := range All {
		newest = max(newest, len(k.Machines))
	}
	return newest
}

// Machine returns the transition table in that version of the rules, or in the newest before it;
// tests says whether the spec requires them. It is nil for a kind that has none.
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
func (k Kind) Phases() (all []string) {
	for _, p := range k.Machine(len(k.Machines), true).Phases() {
		all = append(all, string(p))
	}
	return all
}

// Edits reports whether an agent's work in that phase is a change of the source, in any kind. In all
// other phases an agent's changes are thrown away.
func Edits(at phase.Phase) bool {
	return slices.ContainsFunc(All, func(k Kind) bool {
		return slices.ContainsFunc(k.Machines, func(m phase.Machine) bool { return m.Row(at).Edits })
	})
}

// Needed lists what a spec has to have, tests being required or not.
func (k Kind) Needed(tests bool) []Need {
	not := Required
	if tests {
		not = Optional
	}
	return slices.DeleteFunc(slices.Clone(k.Needs), func(n Need) bool { return n.When == not })
}
