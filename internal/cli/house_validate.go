package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"pawl/activities"
	"pawl/config"
	"pawl/internal/act"
	"pawl/internal/evidence"
	"pawl/internal/fault"
	"pawl/internal/home"
	"pawl/internal/kind"
	"pawl/internal/ledger"
	"pawl/internal/loop"
	"pawl/internal/shell"
	"pawl/internal/spec"
	"pawl/internal/ui"
	"pawl/schema"
	"pawl/workflows"
)

func (a *app) validateCommand() *cobra.Command {
	var id string
	var sets []string
	var printSchema bool
	cmd := &cobra.Command{
		Use: "validate [FILE]", Short: "Check a spec, try its commands and show the contract; start nothing", Args: cobra.MaximumNArgs(1),
		Long: `Check a spec file (default pawl.yaml) and everything that a loop needs before it
starts: the repository, the scope, and that verify prints a number and the guard
passes on the unchanged code. For a deliver spec the tests run too; a failure there is
only a note, since the loop may be meant to fix it. The commands run in a temporary
clone; your repository is only read. The contract is shown with its hash, as "pawl run"
would show it. All problems are listed at once, with exit code 2.`,
		RunE: a.brief(func(ctx context.Context, args []string) error {
			if printSchema {
				_, err := a.out.Write(schema.JSON)
				return err
			}
			file := "pawl.yaml"
			if len(args) == 1 {
				file = args[0]
			}
			return a.validate(ctx, file, id, sets)
		}),
	}
	cmd.Flags().StringVar(&id, "id", "", "the loop's ID, as for run")
	cmd.Flags().StringArrayVar(&sets, "set", nil, "override a key of the spec: --set limits.iterations=5 (may be repeated)")
	cmd.Flags().BoolVar(&printSchema, "schema", false, "print the JSON Schema of spec files instead")
	return cmd
}

// Validation is what `pawl validate --json` prints.
type Validation struct {
	OK       bool                `json:"ok"`
	Loop     string              `json:"loop,omitempty"`
	Repo     string              `json:"repo,omitempty"`
	Branch   string              `json:"branch,omitempty"`
	Problems []ValidationProblem `json:"problems"`
	Notes    []string            `json:"notes"`
	Hash     string              `json:"hash,omitempty"` // of the contract
	Contract *ledger.Contract    `json:"contract,omitempty"`
	InScope  int                 `json:"inScope"`
	Baseline *evidence.Decimal   `json:"baseline,omitempty"`
	VerifyMs int64               `json:"verifyMs,omitempty"`
	GuardMs  int64               `json:"guardMs,omitempty"`
	TestMs   int64               `json:"testMs,omitempty"`
}

// ValidationProblem is one thing that keeps the loop from starting.
type ValidationProblem struct {
	Check string `json:"check"` // spec, repository, scope, setup, verify or guard
	Key   string `json:"key,omitempty"`
	What  string `json:"what"`
	Do    string `json:"do,omitempty"`
	File  string `json:"file,omitempty"`
	Line  int    `json:"line,omitempty"`
}

func (a *app) validate(ctx context.Context, file, id string, sets []string) error {
	sp, err := config.LoadSpec(file, sets)
	var problems spec.Problems
	if a.json && errors.As(err, &problems) {
		v := Validation{Notes: []string{}}
		for _, p := range problems {
			v.Problems = append(v.Problems, ValidationProblem{"spec", p.Key, p.What, p.Want, p.File, p.Line})
		}
		return errors.Join(a.printJSON(v), &leaving{code: exitUsage})
	}
	if err != nil {
		return err
	}
	named := id != "" || sp.Name != ""
	if id, err = loopID(sp, id); err != nil {
		return err
	}
	if !named { // `pawl run` makes up another ending each time
		id = id[:len(id)-4] + "…"
	}
	h, err := home.Open()
	if err != nil {
		return err
	}
	a.screen.Live("trying the spec's commands in a clone of the repository …")
	f, err := activities.DryRun(ctx, h, id, sp)
	a.screen.Still()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return err
	}
	return a.validated(file, id, sp, f)
}

// validated shows what came of a dry run.
func (a *app) validated(file, id string, sp spec.Spec, f activities.Preflight) error {
	k, err := kind.Of(sp.Kind)
	if err != nil {
		return err
	}
	v := Validation{
		OK: len(f.Problems) == 0, Loop: id, Repo: f.Repo, Branch: f.Branch, Problems: []ValidationProblem{}, Notes: append([]string{}, f.Notes...),
		Contract: f.Contract, InScope: f.InScope, Baseline: f.Baseline, VerifyMs: took(f.Verify), GuardMs: took(f.Guard), TestMs: took(f.Test),
	}
	for _, p := range f.Problems {
		v.Problems = append(v.Problems, ValidationProblem{Check: p.Check, What: p.What, Do: p.Do})
	}
	if f.Contract != nil {
		v.Hash = f.Contract.Hash()
	}
	switch {
	case a.json:
		if err := a.printJSON(v); err != nil {
			return err
		}
	case f.Contract != nil:
		if err := a.print(a.style().Contract(ui.Contract{
			Loop: id, Kind: k, Repo: f.Repo, Branch: f.Branch, Spec: sp, Baseline: f.Baseline, InScope: f.InScope, Protections: workflows.Protected(f.Protections),
			Contract: loop.Contract{Hash: v.Hash, Base: f.Contract.Base, Sealed: f.Contract.Sealed, Tools: f.Contract.Tools},
		})); err != nil {
			return err
		}
	}
	for _, note := range f.Notes {
		a.say("note: %s", ui.Clean(note))
	}
	if v.OK {
		if !a.json {
			a.say("ready; start it with `pawl run %s`", shell.Quote(filepath.Clean(file)))
		}
		return nil
	}
	if a.json {
		return &leaving{code: exitUsage}
	}
	a.say("%s would keep this loop from starting (%s)", counted(len(v.Problems), "problem"), fault.PreconditionFailed)
	for _, p := range v.Problems {
		a.indent(p.Check + ": " + p.What)
		a.indent("→ " + p.Do)
	}
	return &leaving{code: exitUsage}
}

func took(r *act.Outcome) int64 {
	if r == nil {
		return 0
	}
	return r.ElapsedMs
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
