package cli

import (
	"cmp"
	"context"
	"errors"

	"github.com/spf13/cobra"

	"pawl/activities/preflight"
	"pawl/config"
	"pawl/internal/cli/render"
	"pawl/internal/fault"
	"pawl/internal/git"
	"pawl/internal/git/userrepo"
	"pawl/internal/home"
	"pawl/internal/ledger"
	"pawl/internal/lib/list"
	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/internal/loop/rules"
	"pawl/internal/metric"
	"pawl/internal/spec"
	"pawl/internal/spec/kind"
	"pawl/internal/steward/charter"
	"pawl/schema"
)

// validateOptions say what is checked and shown.
type validateOptions struct {
	runOptions
	schema bool // print the JSON Schema instead
}

func (a *app) validateCommand() *cobra.Command {
	var o validateOptions
	cmd := &cobra.Command{
		Use: "validate [FILE]", Short: "Check a spec, try its commands and show the contract; start nothing", Args: arguments(0, 1),
		Long: `Check a spec file (default pawl.yaml) and everything that a loop needs before it
starts: the repository, the scope, and whether, on the unchanged code, verify prints a
number and the guard passes. Then pawl breaks the code in scope on purpose, and the guard
has to notice (validate.canary). For a deliver spec the tests run too; a failure there is
only a note, since the loop may be meant to fix it. The commands run in a temporary
clone; pawl only reads your repository. The contract is shown with its hash, as "pawl
run" would show it. All problems are listed at once, with exit code 2.

For a steward's spec, validate checks the repository, tries the commands in defaults,
looks for the planner and the secrets, and shows what the steward may do.`,
		RunE: a.brief(func(ctx context.Context, args []string) error {
			o.use(args)
			return a.runValidate(ctx, o)
		}),
	}
	o.chooses(cmd)
	cmd.Flags().BoolVar(&o.full, "full", false, "show the whole contract, with every sealed name and every protection")
	cmd.Flags().BoolVar(&o.schema, "schema", false, "print the JSON Schema of spec files instead")
	return cmd
}

// Validation is what `pawl validate --json` prints.
type Validation struct {
	OK       bool                `json:"ok"`
	Loop     string              `json:"loop,omitempty"`
	Repo     string              `json:"repo,omitempty"`
	Branch   string              `json:"branch,omitempty"`
	Problems []preflight.Problem `json:"problems"`
	Notes    []string            `json:"notes"`
	Hash     string              `json:"hash,omitempty"` // of the contract
	Contract *ledger.Contract    `json:"contract,omitempty"`
	Charter  *charter.Charter    `json:"charter,omitempty"` // of a steward, which has no contract
	InScope  int                 `json:"inScope"`
	Baseline *metric.Decimal     `json:"baseline,omitempty"`
	VerifyMs int64               `json:"verifyMs,omitempty"`
	GuardMs  int64               `json:"guardMs,omitempty"`
	TestMs   int64               `json:"testMs,omitempty"`
	Guarded  *loop.Tested        `json:"guardTested,omitempty"` // what the guard has tested on the unchanged code
	Tested   *loop.Tested        `json:"tested,omitempty"`      // what the test command has tested there
}

func (a *app) runValidate(ctx context.Context, o validateOptions) error {
	if o.schema {
		_, err := a.out.Write(schema.JSON)
		return err
	}

	f, err := config.Open(o.file, o.sets, o.flags...)
	if err != nil {
		return a.invalid(err)
	}
	if f.Kind.Name == kind.Steward.Name {
		return a.validateCharter(ctx, o.runOptions, f)
	}
	sp, err := f.Loop()
	if err != nil {
		return a.invalid(err)
	}
	named := o.id != "" || sp.Name != ""
	id, err := loopID(sp, o.id)
	if err != nil {
		return err
	}
	if !named { // `pawl run` makes up another suffix each time
		id = id[:len(id)-4] + "…"
	}
	uncommitted, specUncommitted := uncommittedSpec(ctx, o.file, sp)
	alsoOthers := len(uncommitted.Paths) > 0 && !uncommitted.Only(o.file)
	if alsoOthers && !a.json {
		a.say("the working tree is not clean: %s; the commands run on the commit", git.QuoteSome(uncommitted.Paths))
	}
	found, err := a.dryRun(ctx, id, sp)
	if err != nil {
		return err
	}
	if specUncommitted {
		for i, p := range found.Problems {
			if p.Code == userrepo.DirtyTree {
				found.Problems[i].Do = commitAdvice(o.file, uncommitted)
			}
		}
	}
	if f.Kind.Reference && !f.Sets("verify.direction") {
		found.Notes = append(found.Notes, "verify.direction is not set, so a higher number counts as better. If less is better, write `direction: lower`")
	}
	return a.validated(o.runOptions, id, sp, found)
}

// invalid prints the problems of a spec as JSON if --json is set.
func (a *app) invalid(err error) error {
	problems, are := errors.AsType[spec.Problems](err)
	if !a.json || !are {
		return err
	}
	v := Validation{Notes: []string{}, Problems: list.Map(problems, func(p spec.Problem) preflight.Problem {
		return preflight.Problem{Check: "spec", Key: p.Key, What: p.What, Do: p.Want, File: p.File, Line: p.Line}
	})}
	return errors.Join(a.printJSON(v), &leaving{code: exitUsage})
}

// dryRun tries the commands of a spec in a clone. At a terminal each step leaves a line with its duration, elsewhere
// only the steps that took long.
func (a *app) dryRun(ctx context.Context, id string, sp spec.Spec) (f preflight.Findings, err error) {
	h, err := home.Open()
	if err != nil {
		return f, err
	}
	shown := a.progress("trying the spec in a clone of the repository", sp, true)
	f, err = preflight.DryRun(ctx, h, id, sp, shown.begin)
	shown.stop()
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return f, err
}

// validation returns the result of a dry run for --json.
func validation(id string, f preflight.Findings) Validation {
	return Validation{
		Loop: id, Repo: f.Repo, Problems: append([]preflight.Problem{}, f.Problems...), Notes: append([]string{}, f.Notes...),
		InScope: f.InScope, Baseline: f.Baseline, VerifyMs: took(f.Verify), GuardMs: took(f.Guard), TestMs: took(f.Test),
		Guarded: outcomeOf(f.Guard).Tested, Tested: outcomeOf(f.Test).Tested,
	}
}

// validated shows the result of a dry run of a loop's spec.
func (a *app) validated(o runOptions, id string, sp spec.Spec, f preflight.Findings) error {
	k, _ := kind.Of(sp.Kind) // the spec is valid
	v := validation(id, f)
	v.Branch, v.Contract = f.Branch, f.Contract
	shown := ""
	if f.Contract != nil {
		v.Hash = f.Contract.Hash()
		c := render.Contract{
			Loop: id, Kind: k, Repo: f.Repo, Branch: f.Branch, Spec: sp, Baseline: f.Baseline, Noise: f.Noise, Spread: f.Spread, InScope: f.InScope, Protections: rules.Protected(f.Protections),
			Environment: f.Environment,
			Contract:    loop.Contract{Hash: v.Hash, Base: f.Contract.Base, Sealed: f.Contract.Sealed, Tools: f.Contract.Tools},
			Claims:      f.Claims, Lacks: f.Lacks, Tested: tested(f.Guard), TestsRun: tested(f.Test),
		}
		shown = a.style().ContractSummary(c, "--full: all of it")
		if o.full {
			shown = a.style().Contract(c)
		}
	}
	return a.conclude(v, shown, "keep this loop from starting", "pawl run "+o.words())
}

// conclude prints a validation: the text for people, the notes and the problems. start is the command that starts
// what was validated. keeps says what its problems would prevent.
func (a *app) conclude(v Validation, shown, keeps, start string) (err error) {
	v.OK = len(v.Problems) == 0
	switch {
	case a.json:
		err = a.printJSON(v)
	case shown != "":
		err = a.print(shown)
	}
	if err != nil {
		return err
	}
	a.sayNotes(v)
	switch {
	case a.json && v.OK:
		return nil
	case a.json:
		return &leaving{code: exitUsage}
	case v.OK:
		a.say("ready; start it with `%s`", start)
		return nil
	}
	a.say("%s would %s (%s)", metric.Counted(len(v.Problems), "problem"), keeps, fault.PreconditionFailed)
	a.sayProblems(v)
	return &leaving{code: exitUsage}
}

func (a *app) sayNotes(v Validation) {
	for _, note := range v.Notes {
		a.say("note: %s", render.Clean(note))
	}
}

func (a *app) sayProblems(v Validation) {
	for _, p := range v.Problems {
		a.indent(p.Check + ": " + p.What)
		a.indent("→ " + p.Do)
	}
}

func took(r *api.Outcome) int64 { return outcomeOf(r).ElapsedMs }

// tested returns what a command has tested on the unchanged code, "" if it did not run or failed.
func tested(r *api.Outcome) string { return outcomeOf(r).Tested.String() }

// outcomeOf returns the outcome of a command, an empty one if it did not run.
func outcomeOf(r *api.Outcome) *api.Outcome { return cmp.Or(r, &api.Outcome{}) }
