package kind

import (
	_ "embed" // embeds the draft

	"pawl/internal/spec/phase"
)

//go:embed improve.yaml.tmpl
var improveDraft string

// Improve is the metric protocol (P): one change, commit, measure, keep or revert, again.
var Improve = Kind{
	Name: "improve", Workflow: "Improve", Machines: []phase.Machine{improve1},

	Loop: true, Reference: true,
	Needs: []Need{{"verify.command", Always, "a command that prints the metric"}},

	Tasks: map[phase.Phase]Task{
		phase.Ideate: {Text: `Propose exactly ONE focused change, in one sentence without the word "and". Do not edit anything now: ` +
			`edits made in this call are thrown away. {{where "idea"}}`},
		phase.Modify: {Text: `{{if .Idea}}Make exactly this one change: {{clip .Idea 1024}}{{else}}Make exactly ONE focused change that brings the metric closer to the goal.{{end}}
Keep it minimal: one logical unit. Describe it in one sentence without the word "and". {{where "description"}} ` +
			`Edit only files in this folder; you need not commit. The change is then measured: it is kept if it improves the metric, and undone if it does not.`},
	},
	Standing: `- Iteration {{.State.Iteration}}; the metric comes from ` + "`{{clip .Spec.Verify.Command 512}}`" + `; {{if eq .Spec.Verify.Direction "lower"}}lower{{else}}higher{{end}} is better.
{{- if and .State.Baseline .State.Best}}
- Baseline {{.State.Baseline}}, best so far {{.State.HeadBest}}{{if .State.Exploring}}, on the branch that you work on {{.State.Best}}{{end}}.{{end}}
{{- if .Noise}}
- {{.Noise}}{{end}}
{{- if .Spec.Verify.Target}}
- Target: {{.Spec.Verify.Target}}.{{end}}
- Changes kept: {{.State.KeptCount}}, discarded: {{.State.Discarded}}, discarded in a row: {{.State.DiscardsInARow}}.`,

	Figures:  []Figure{Keeps},
	Stops:    []string{"limits.discards"},
	Rejected: "ends the loop",
	Kept:     Words{"kept", "the metric improved"},
	NotKept:  Words{"discarded", "the metric did not improve by enough"},
	Draft:    improveDraft,
}

// improve1 is the machine in version 1 of the rules. Every phase may go to complete, because a loop can be halted
// anywhere. An attempt that can't continue goes to log, which records it.
var improve1 = phase.Machine{
	{At: phase.None, Next: []phase.Phase{phase.Precheck}},
	{At: phase.Precheck, Next: []phase.Phase{phase.Baseline, phase.Complete}},
	{At: phase.Baseline, Next: []phase.Phase{phase.Review, phase.Complete}},
	{At: phase.Review, Next: []phase.Phase{phase.Ideate, phase.Modify, phase.Log, phase.Complete}, Begins: true},
	{At: phase.Ideate, Next: []phase.Phase{phase.Modify, phase.Log, phase.Complete}, Role: Ideator},
	{At: phase.Modify, Next: []phase.Phase{phase.Commit, phase.Modify, phase.Log, phase.Complete}, Role: Writer, Edits: true, OnDesk: true},
	{At: phase.Commit, Next: []phase.Phase{phase.Verify, phase.Modify, phase.Log, phase.Complete}, OnDesk: true},
	{At: phase.Verify, Next: []phase.Phase{phase.Guard, phase.Decide, phase.Log, phase.Complete}},
	{At: phase.Guard, Next: []phase.Phase{phase.Decide, phase.Modify, phase.Log, phase.Complete}},
	{At: phase.Decide, Next: []phase.Phase{phase.Log, phase.Complete}},
	{At: phase.Log, Next: []phase.Phase{phase.Review, phase.Complete}, Records: true, Between: true},
	{At: phase.Complete, Role: Reviewer, EveryEnd: true},
}
