package cli

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"

	"pawl/activities/preflight"
	"pawl/config"
	"pawl/internal/cli/render"
	"pawl/internal/git"
	"pawl/internal/home"
	"pawl/internal/integrations/forge"
	"pawl/internal/lib/list"
	"pawl/internal/loop/rules"
	"pawl/internal/metric"
	"pawl/internal/spec"
	"pawl/internal/spec/kind"
	"pawl/internal/steward/charter"
	"pawl/internal/steward/task"
)

// validateCharter is validate for the spec of a steward.
func (a *app) validateCharter(ctx context.Context, o runOptions, f config.File) error {
	c, err := f.Steward()
	if err != nil {
		return a.invalid(err)
	}
	if o.id != "" && o.id != c.Name {
		return usage(fmt.Sprintf("--id is %q, but the ID of a steward is its name (%s)", o.id, c.Name))
	}
	v, found, err := a.tryCharter(ctx, c, tried(c))
	if err != nil {
		return err
	}
	shown := ""
	if found.Contract != nil {
		charter := render.Charter{
			Charter: c, Repo: found.Repo, Base: found.Contract.Base, Lacking: lacking(c), Protections: rules.Protected(found.Protections), Environment: found.Environment,
			Claims: found.Claims, Lacks: found.Lacks,
		}
		shown = a.style().CharterSummary(charter, "--full: all of it")
		if o.full {
			shown = a.style().Charter(charter)
		}
	}
	return a.conclude(v, shown, keepsSteward, "pawl steward up "+runOptions{file: o.file, sets: o.sets}.words())
}

// keepsSteward says what problems prevent for a steward.
const keepsSteward = "keep this steward from its work"

// tryCharter tries the commands that a charter has for its loops, and checks the planner and the secrets.
func (a *app) tryCharter(ctx context.Context, c charter.Charter, sp spec.Spec) (v Validation, found preflight.Findings, err error) {
	h, err := home.Open()
	if err != nil {
		return v, found, err
	}
	if found, err = a.dryRun(ctx, c.Name, sp); err != nil {
		return v, found, err
	}
	if len(sp.Scope) == 0 { // the plans say what may change
		found.Problems = slices.DeleteFunc(found.Problems, func(p preflight.Problem) bool { return p.Check == "scope" })
	}
	v = validation(c.Name, found)
	v.Charter = &c
	v.Notes = append(v.Notes, plannerNote(c)...)
	v.Problems = append(v.Problems, secrets(h, c)...)
	return v, found, nil
}

// sayCharter reports for a steward that was just started what validate would report, except the canary, which may
// take minutes. The steward runs in any case: its first task may be to fix what keeps a loop from starting.
func (a *app) sayCharter(ctx context.Context, c charter.Charter) {
	sp := tried(c)
	sp.Validation.Canary = new(false)
	v, _, err := a.tryCharter(ctx, c, sp)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		a.say("note: the commands of the spec could not be tried: %s", oneLine(err))
	default:
		a.sayNotes(v)
		if len(v.Problems) > 0 {
			a.say("%s would %s:", metric.Counted(len(v.Problems), "problem"), keepsSteward)
			a.sayProblems(v)
		}
	}
}

// tried returns a spec with the commands that a charter has for its loops. Its kind is one whose commands may fail on
// the unchanged code, because a task may have to fix that.
func tried(c charter.Charter) spec.Spec {
	s := c.Fragment()
	s.Repo, s.Kind = c.Repo, kind.Deliver.Name
	if s.Test.Command == "" {
		s.Test.Required = new(bool)
	}
	return s
}

// lacking returns, by kind of loop, the keys that the charter's defaults leave to a plan.
func lacking(c charter.Charter) map[string][]string {
	keys := map[string][]string{}
	for _, k := range kind.Loops() {
		_, err := c.Loop(task.Step{ID: "step", Kind: k}, charter.Caps{Loop: c.Name, Goal: "the task"})
		problems, _ := errors.AsType[spec.Problems](err)
		keys[k] = list.Map(problems, func(p spec.Problem) string { return p.Key })
	}
	return keys
}

// plannerNote returns notes on the planner, before the steward starts.
func plannerNote(c charter.Charter) []string {
	a, asked := c.Planner()
	name := a.Use
	switch {
	case !asked:
		return []string{"there is no planner: each task has to bring its plan, or the spec of one loop"}
	case a.Use == spec.UseCommand && len(a.Command.List) == 0:
		return nil // a text for the shell
	case a.Use == spec.UseCommand:
		name = a.Command.List[0]
	}
	if _, err := exec.LookPath(name); err != nil && !strings.Contains(name, "/") {
		return []string{fmt.Sprintf("the planner's program %s is not on this PATH", git.Quote(name))}
	}
	return nil
}

// secrets returns a problem for each secret of the charter that can't be read on this host, and for an address that
// can't be where one belongs.
func secrets(h home.Home, c charter.Charter) (problems []preflight.Problem) {
	read := func(key, file string) {
		if file == "" {
			return
		}
		if _, err := h.Secret(file); err != nil {
			problems = append(problems, preflight.Problem{Check: "secret", Key: key, What: key + ": " + err.Error(), Do: "Put the secret there; a relative path starts at " + h.Dir + "."})
		}
	}
	for i, t := range c.Triggers {
		read(fmt.Sprintf("triggers[%d].secretFile", i), t.SecretFile)
	}
	read("remote.tokenFile", c.Remote.TokenFile)
	if c.Remote.API != "" {
		if err := forge.Check(c.Remote); err != nil {
			problems = append(problems, preflight.Problem{
				Check: "remote", Key: "remote.api", What: err.Error(), Do: "Write it as https://api.github.com/repos/OWNER/NAME.",
			})
		}
	}
	return problems
}
