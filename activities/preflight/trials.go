package preflight

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"pawl/activities/command"
	"pawl/activities/contract"
	"pawl/activities/workspace"
	"pawl/internal/fault"
	"pawl/internal/fault/wire"
	"pawl/internal/git"
	"pawl/internal/git/worktree"
	"pawl/internal/lib/list"
	"pawl/internal/lib/secretscan"
	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/internal/loop/rules"
	"pawl/internal/metric"
	"pawl/internal/metric/reason"
	"pawl/internal/metric/stats"
	"pawl/internal/spec"
	"pawl/internal/spec/kind"
)

// dryRun tries the commands of a spec in the judge, on the unchanged code. What fails there is a problem; in a kind of
// loop that mends code it is only a note, unless the command can't run at all.
type dryRun struct {
	ws      *workspace.Workspace
	spec    spec.Spec
	kind    kind.Kind
	improve rules.Improve
	drawn   contract.Drawn
	out     *Findings
	tell    func(check string)

	measured api.Measured // the result of verify
}

// errTold ends the dry runs: the reason is a problem of the findings already.
var errTold = errors.New("the reason is among the findings")

// dryRuns tries setup, verify, guard, test, check and canary, one after the other.
func dryRuns(ctx context.Context, ws *workspace.Workspace, input api.Open, d contract.Drawn, out *Findings, tell func(string)) error {
	k, err := kind.Of(input.Spec.Kind)
	if err != nil {
		return err
	}
	r := &dryRun{
		ws:      ws,
		spec:    input.Spec,
		kind:    k,
		improve: rules.ImproveOf(input.Spec, rules.NewestVersion),
		drawn:   d,
		out:     out,
		tell:    tell,
	}

	for _, stage := range []func(context.Context) error{r.setup, r.verify, r.guard, r.test, r.check, r.canary, r.noise} {
		err := stage(ctx)
		if errors.Is(err, errTold) {
			return nil
		}
		if err != nil {
			return plainly(err)
		}
	}
	return nil
}

func (d *dryRun) setup(ctx context.Context) error {
	if d.spec.Setup.Command == "" {
		return nil
	}
	if !d.runs("setup", d.spec.Setup.Command) {
		return errTold // the next commands may need what setup fetches
	}
	err := d.restore(ctx)
	if failed := wire.Decode(err); failed != nil && failed.Step == fault.Setup { // a network may be gone for a moment
		err = d.restore(ctx)
	}
	return d.came(ctx, "setup", api.Outcome{}, err)
}

func (d *dryRun) restore(ctx context.Context) error { return d.ws.Restore(ctx, d.ws.Judge, d.base()) }

func (d *dryRun) verify(ctx context.Context) error {
	command := d.spec.Verify.Command
	if !d.runs("verify", command) {
		return nil
	}
	w := d.intact("verify", 0, d.spec.Verify.Timeout.D())
	r, err := d.measure(ctx, w)
	if err := d.came(ctx, "verify", r.Outcome, err); err != nil {
		return err
	}

	d.measured = r
	d.out.Verify, d.out.Baseline = &r.Outcome, r.Metric
	printed, _ := workspace.ReadTail(filepath.Join(w.Dir, "stdout"), workspace.TailLength) // empty if the command could not be started
	d.out.Printed = secretscan.Redact(strings.ToValidUTF8(string(printed), "?"))
	if took := time.Duration(r.ElapsedMs) * time.Millisecond; d.kind.Reference && r.OK() && took > rules.LongVerify {
		d.note(rules.Slow(command, took))
	}

	switch {
	case len(r.Altered) > 0:
		d.out.altered("verify", command, r.Outcome)
	case d.kind.Mends && r.Missing():
		d.out.problem("verify", d.fails("verify", command, r.Outcome), rules.MissingAdvice)
	case d.kind.Mends && !r.OK():
		d.note(d.fails("verify", command, r.Outcome) + "\nThat is fine if the loop is meant to fix it.")
	case !r.OK():
		d.out.problem("verify", fmt.Sprintf("the verify command fails on the unchanged code (%s): `%s`%s", r.Ending(), command, tailed(r.Outcome)),
			inFreshClone+" and print a number."+inTime("verify.timeout", command, r.Outcome))
	case d.kind.Reference:
		d.number(r)
	}
	if d.kind.Reference { // a delivery verifies only changes
		d.out.ran(w, &r)
	}
	return nil
}

// measure runs verify, while nothing else is measured. Its output has the form of an earlier one, if there is one.
func (d *dryRun) measure(ctx context.Context, w *command.Work) (api.Measured, error) {
	return d.out.measureAlone(d.ws, d.spec, func() (api.Measured, error) {
		return w.Verify(ctx, verifyOf(d.spec, d.measured.Form))
	})
}

// number judges what verify printed.
func (d *dryRun) number(r api.Measured) {
	command := d.spec.Verify.Command
	if r.Metric == nil {
		d.out.problem("verify", fmt.Sprintf("verify prints no number (`%s`): %s", command, r.NoNumber),
			"Make it print the number last, or a line METRIC name=number, or set verify.pattern.")
		return
	}
	if unfit := d.improve.WithoutMetric(r.Metrics); unfit.What != "" {
		d.out.problem("verify", unfit.What+fmt.Sprintf(": `%s`", command), unfit.Do)
		return
	}
	if r.Warning != "" {
		d.note("verify: " + r.Warning)
	}
}

func (d *dryRun) guard(ctx context.Context) error {
	command := d.spec.Guard.Command
	if !d.runs("guard", command) {
		return nil
	}
	r, err := d.guardOnce(ctx, "guard", 0)
	if err := d.came(ctx, "guard", r, err); err != nil {
		return err
	}
	r, flaky, err := rules.RunAgain(r, d.guardRunsAgain, func(n int, _ api.Outcome) (api.Outcome, error) {
		d.tell("guard")
		return d.guardOnce(ctx, guardAgain, n)
	})
	if err := d.came(ctx, "guard", r, err); err != nil {
		return err
	}

	if r.Tested != nil {
		r.Tested.Flaky = flaky
	}
	d.out.Guard = &r
	switch {
	case r.OK():
	case len(r.Altered) > 0:
		d.out.altered("guard", command, r)
	case d.kind.Mends && r.Missing():
		d.out.problem("guard", d.fails("guard", command, r), rules.MissingAdvice)
	case d.kind.Mends:
		d.note(d.fails("guard", command, r) + "\nNo change reaches the tests before it passes.")
	default:
		d.out.problem("guard", fmt.Sprintf("the guard command fails on the unchanged code (%s): `%s`%s", r.Ending(), command, tailed(r)),
			inFreshClone+" before there is anything to guard."+inTime("guard.timeout", command, r))
	}
	return nil
}

func (d *dryRun) guardOnce(ctx context.Context, name string, sample int) (api.Outcome, error) {
	w := d.intact(name, sample, d.spec.Guard.Timeout.D())
	r, err := w.Guard(ctx, api.Guard{Command: d.spec.Guard.Command, Reports: d.spec.GuardReports()})
	if err == nil && !r.Interrupted {
		d.out.ran(w, &r)
	}
	return r, unlessInterrupted(ctx, r, err)
}

// guardRunsAgain reports whether a guard that failed is run again: it may be flaky.
func (d *dryRun) guardRunsAgain(retried int, last api.Outcome) bool {
	final := last.TimedOut || len(last.Altered) > 0 || last.Missing()
	return d.improve.RetriesGuard(rules.GuardFailure{Retried: retried, Failing: last.Failing, Final: final, InTime: true})
}

func (d *dryRun) test(ctx context.Context) error {
	command := d.spec.Test.Command
	if !d.kind.Tests || !d.spec.TestRequired() || !d.runs("test", command) {
		return nil
	}
	w := d.work("test", 0, d.spec.Test.Timeout.D())
	r, err := w.Test(ctx, api.Test{Command: command, Reports: d.spec.TestReports()})
	if err := d.came(ctx, "test", r.Outcome, err); err != nil {
		return err
	}

	d.out.Test = &r.Outcome
	d.out.ran(w, &r)
	switch {
	case r.OK():
	case r.Missing():
		d.out.problem("test", d.fails("test", command, r.Outcome), rules.MissingAdvice)
	default:
		d.note(d.failingTests(r))
	}
	return nil
}

// failingTests says which tests fail before the first change, and what that means for the loop.
func (d *dryRun) failingTests(r api.Tested) string {
	note := d.fails("test", d.spec.Test.Command, r.Outcome)
	if t := r.Tests; t != nil && t.Failed > 0 {
		note = fmt.Sprintf("tests fail on the unchanged code: %d failed, %d passed (%s)", t.Failed, t.Passed, git.QuoteSome(t.Failing))
	}
	note += ". That is fine if the loop is meant to fix it."
	if d.spec.Verify.Command == "" {
		note += " A change that leaves these tests as they are can be delivered too. If they have to pass, let verify.command run them"
	}
	return note
}

func (d *dryRun) check(ctx context.Context) error {
	command := d.spec.Check.Command
	if !d.runs("check", command) {
		return nil
	}
	r, err := d.work("check", 0, d.spec.Limits.PhaseTimeout.D()).Judged(ctx, command)
	if err := d.came(ctx, "check", r, err); err != nil {
		return err
	}
	if err := d.out.rewrites(ctx, d.ws, d.spec, d.drawn); err != nil {
		return err
	}

	undoes := fmt.Sprintf("(%s), so it would undo every change", r.Ending())
	shown := fmt.Sprintf(": `%s`%s", command, tailed(r))
	switch {
	case r.OK():
	case d.kind.Mends && r.Missing():
		d.out.problem("check", d.fails("check", command, r), rules.MissingAdvice)
	case d.kind.Mends:
		d.note("check fails on the unchanged code " + undoes + " that does not fix it" + shown)
	default:
		d.out.problem("check", "the check command fails on the unchanged code "+undoes+shown, inFreshClone+". Or leave check.command out: a loop can do without one.")
	}
	return nil
}

// noise measures the unchanged code again, but only if the loop would start.
func (d *dryRun) noise(ctx context.Context) error {
	if !d.kind.Reference || !d.measured.OK() || d.measured.Metric == nil || len(d.out.Problems) > 0 {
		return nil
	}
	return d.out.vary(d.spec, d.measured, func(sample int) (api.Measured, error) {
		d.tell(VerifyAgain)
		w := d.intact("verify", sample, d.spec.Verify.Timeout.D())
		w.In.Clean = true
		r, err := d.measure(ctx, w)
		d.out.ran(w, &r)
		d.measured.Form = cmp.Or(r.Form, d.measured.Form)
		return r, unlessInterrupted(ctx, r.Outcome, err)
	})
}

// inFreshClone is how a person sees a command fail as pawl does.
const inFreshClone = "Run it in a fresh clone: it has to exit 0"

func (d *dryRun) base() string { return d.drawn.Contract.Base }

// runs reports whether a command has to run, and tells it. It need not run if one of its programs is known to be missing.
func (d *dryRun) runs(check, command string) bool {
	missing := func(p Problem) bool { return p.Check == check }
	if command == "" || slices.ContainsFunc(d.out.Problems, missing) {
		return false
	}
	d.tell(check)
	return true
}

// came returns why the dry runs end after a command. A setup that failed is no failure of the command that needed the tree.
func (d *dryRun) came(ctx context.Context, name string, r api.Outcome, err error) error {
	err = unlessInterrupted(ctx, r, err)
	if refused := wire.Decode(err); refused != nil && refused.Code == fault.PreconditionFailed {
		d.out.problem("setup", refused.What, "Run it in a fresh clone of the repository.") // the log is removed with the folder
		return errTold
	}
	if err == nil {
		d.out.leaves(d.kind, &d.spec, name, r)
	}
	return err
}

func (d *dryRun) work(name string, sample int, limit time.Duration) *command.Work {
	step := api.Step{
		Ref:     d.ws.Ref,
		Key:     api.Key{Name: name, Sample: sample},
		Head:    d.base(),
		LimitMs: limit.Milliseconds(),
	}
	return command.NewWork(d.ws, step, &command.Running{})
}

// intact is work that must leave the files of the commit as they are.
func (d *dryRun) intact(name string, sample int, limit time.Duration) *command.Work {
	w := d.work(name, sample, limit)
	w.In.Intact = true
	return w
}

func (d *dryRun) note(text string) { d.out.Notes = append(d.out.Notes, text) }

func (d *dryRun) fails(name, command string, r api.Outcome) string {
	return fmt.Sprintf("%s fails on the unchanged code (%s): `%s`%s", name, r.Ending(), command, tailed(r))
}

// guardAgain is the name of the further runs of a guard that failed, in a loop too.
const guardAgain = "guard-again"

// VerifyAgain is the name of the step that finds out whether the metric varies. It is announced for each measurement.
const VerifyAgain = "verify again"

// verifyOf returns a measurement, whose output has the form of an earlier one.
func verifyOf(s spec.Spec, form *metric.Form) api.Verify {
	return api.Verify{Command: s.Verify.Command, Pattern: s.Verify.Pattern, Form: form, Unchanged: true, Names: list.Map(s.Metrics, func(m metric.Bound) string { return m.Name })}
}

// unlessInterrupted returns the error of a command, or why the command was interrupted.
func unlessInterrupted(ctx context.Context, r api.Outcome, err error) error {
	if err == nil && r.Interrupted {
		return context.Cause(ctx)
	}
	return err
}

// varyTime is how long vary may measure the unchanged code.
const varyTime = 5 * time.Minute

// vary measures the unchanged code again, as a loop would, and notes how its metric would be judged.
func (f *Findings) vary(s spec.Spec, first api.Measured, measure func(sample int) (api.Measured, error)) error {
	improve := rules.ImproveOf(s, rules.NewestVersion)
	values, spent := []metric.Decimal{*first.Metric}, first.ElapsedMs
	took := []time.Duration{time.Duration(first.ElapsedMs) * time.Millisecond}
	for improve.Judging(values) == "" {
		if mean := spent / int64(len(values)); spent+mean > varyTime.Milliseconds() {
			f.Notes = append(f.Notes, rules.NotSampled(len(values), time.Duration(mean)*time.Millisecond))
			f.unsure = true
			return nil
		}
		r, err := measure(len(values))
		if err != nil {
			return err
		}
		unfit := improve.WithoutMetric(r.Metrics)
		if r.OK() && r.Metric == nil {
			unfit = rules.Disagreeing(len(values)+1, reason.NoNumber, r.NoNumber)
		}
		if r.OK() && unfit.What != "" {
			f.problem("verify", fmt.Sprintf("%s: `%s`", unfit.What, s.Verify.Command), unfit.Do)
			return nil
		}
		if !r.OK() || r.Metric == nil {
			f.problem("verify", fmt.Sprintf("the verify command fails when it runs again on the unchanged code (%s): `%s`%s", cmp.Or(r.NoNumber, r.Ending()), s.Verify.Command, tailed(r.Outcome)), "It has to exit 0 and print a number each time.")
			return nil
		}
		values, spent = append(values, *r.Metric), spent+r.ElapsedMs
		took = append(took, time.Duration(r.ElapsedMs)*time.Millisecond)
	}
	if note := rules.Cached(first.Form, values, took); note != "" {
		f.Notes = append(f.Notes, note)
		f.unsure = true
	}
	if improve.Judging(values) == loop.JudgedBySamples {
		sampler := stats.Start(improve.Samples, values)
		best := sampler.Best()
		noise := rules.Noise(sampler, s, time.Duration(spent/int64(len(values)))*time.Millisecond)
		f.Baseline, f.Noise, f.Spread = &best, noise.Says, rules.Spread(sampler, s)
		f.Notes = append(f.Notes, noise.Warnings...)
		f.unsure = f.unsure || len(noise.Warnings) > 0
	}
	if target := s.Verify.Target; target != nil && metric.TargetMet(s.Verify.Direction, *f.Baseline, *target) {
		f.Notes = append(f.Notes, fmt.Sprintf("the unchanged code, with %s, meets verify.target (%s) already, so the loop would end at once", f.Baseline, target))
	}
	return nil
}

// rewrites adds a note if the check, which has just run in the judge, has changed files.
func (f *Findings) rewrites(ctx context.Context, ws *workspace.Workspace, s spec.Spec, d contract.Drawn) error {
	changed, err := ws.Judge.StageRead(ctx, d.Contract.Base, worktree.StageOptions{Largest: workspace.MaxOutput, Leftovers: f.Leftovers})
	if err != nil {
		return fmt.Errorf("looking for what check has changed: %w", err)
	}
	paths := list.Map(changed.Files, func(file git.FileChange) string { return file.Path })
	tracked := list.Filter(paths, func(path string) bool { return slices.Contains(d.Names, path) })
	if len(tracked) > 0 {
		f.Notes = append(f.Notes, "the check command rewrites files of the unchanged code ("+git.QuoteSome(tracked)+"). What it rewrites becomes part of each change, and pawl refuses a change with a file outside of the scope. A command that only checks is better")
	}
	return nil
}
