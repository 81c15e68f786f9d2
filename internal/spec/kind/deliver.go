package kind

import (
	_ "embed" // embeds the draft

	"pawl/internal/spec/phase"
)

//go:embed deliver.yaml.tmpl
var deliverDraft string

// Deliver is the phase machine (L): plan, write, test, fix, verify, until one change is done.
var Deliver = Kind{
	Name: "deliver", Workflow: "Deliver", Machines: []phase.Machine{deliver1},

	Loop: true, Mends: true, Tests: true, Course: true,
	Needs: []Need{
		{"verify.command", Optional, "a command that says whether the work is done, since no tests do"},
		{"test.command", Required, "the command that runs the tests, or test.required: false"},
	},

	Tasks: map[phase.Phase]Task{
		phase.Plan: {Text: `Write a plan for reaching the goal: which files to change and how, in which order, and how to check that it works. ` +
			`Print it as Markdown; it is shown to a person and stays fixed once it is approved. Do not edit anything now: edits made in this call are thrown away.`},
		phase.Write: {Text: `Write the change that reaches the goal, all of it, and nothing else.` + judged + ` {{where "description"}}`},
		phase.Fix: {Repair: "What fails", Text: `The tests fail. Find the cause and fix it in the code, not in the tests.` + judged +
			` {{where "description"}} If the whole approach is wrong, {{regenerate}}.`},
	},
	Standing: `- Iteration {{.State.Iteration}}, fixes in it so far: {{.State.FixAttempts}}.`,

	Figures: []Figure{Fixes, Suite, Gate}, PhaseLines: true,
	Stops:    []string{"limits.fixAttempts", "limits.iterations", "limits.phaseTimeout"},
	Rejected: "another iteration", TriesAgain: true,
	Kept:    Words{"delivered", "tested, verified and proposed"},
	NotKept: Words{"discarded", "it goes back to write"},
	Draft:   deliverDraft,
}

const judged = ` Keep it minimal. Edit only files in this folder; you need not commit.` +
	"{{if .Spec.Test.Command}} `{{clip .Spec.Test.Command 512}}` decides whether it works, whatever you say about it.{{end}}"

// deliver1 is the machine in version 1 of the rules: exactly the transitions of L6. The guard must pass before write
// and fix end; it is not a phase. A rework happens within its phase. An end is not a transition, so that the state
// shows where a loop failed.
var deliver1 = phase.Machine{
	{At: phase.None, Next: []phase.Phase{phase.Plan}},
	{At: phase.Plan, Next: []phase.Phase{phase.Write}, Role: Planner, Between: true},
	{At: phase.Write, Next: []phase.Phase{phase.Test}, Untested: []phase.Phase{phase.Verify}, Role: Writer, Edits: true, Begins: true},
	{At: phase.Test, Next: []phase.Phase{phase.Fix, phase.Verify}},
	{At: phase.Fix, Next: []phase.Phase{phase.Test, phase.Write}, Role: Fixer, Edits: true},
	{At: phase.Verify, Next: []phase.Phase{phase.Complete, phase.Write}, Role: Reviewer},
	{At: phase.Complete},
}
