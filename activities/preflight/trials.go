package preflight

import (
	"cmp"
	"context"
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

// dryRuns runs verify, guard, test and check in the judge. In a Deliver loop a failure on the unchanged code is only
// a note, because the loop may be there to fix it.
func dryRuns(ctx context.Context, ws *workspace.Workspace, in api.Open, d contract.Drawn, out *Findings, tell func(string)) error {
	base := d.Contract.Base
	s := in.Spec
	k, err := kind.Of(s.Kind)
	if err != nil {
		return err
	}
	fails := func(name, command string, r api.Outcome) string {
		return fmt.Sprintf("%s fails on the unchanged code (%s): `%s`%s", name, r.Ending(), command, tailed(r))
	}
	work := func(name string, sample int, limit time.Duration) *command.Work {
		in := api.Step{Ref: ws.Ref, Key: api.Key{Name: name, Sample: sample}, Head: base, LimitMs: limit.Milliseconds()}
		return command.NewWork(ws, in, &command.Running{})
	}
	// over reports whether the dry runs have to end: because of the error, or because setup failed, without one. That is
	// not a failure of the command that needed the tree.
	over := func(name string, r api.Outcome, err error) (bool, error) {
		err = unlessInterrupted(ctx, r, err)
		if refused := wire.Decode(err); refused != nil && refused.Code == fault.PreconditionFailed {
			out.problem("setup", refused.What, "Run it in a fresh clone of the repository.") // the log is removed with the folder
			return true, nil
		}
		if err == nil {
			out.leaves(k, &s, name, r)
		}
		return err != nil, plainly(err)
	}
	// runs reports whether a command has to run: it need not if one of its programs is known to be missing.
	runs := func(check, command string) bool {
		if command == "" || slices.ContainsFunc(out.Problems, func(p Problem) bool { return p.Check == check }) {
			return false
		}
		tell(check)
		return true
	}
	if runs("setup", s.Setup.Command) {
		err := ws.Restore(ctx, ws.Judge, base)
		if failed := wire.Decode(err); failed != nil && failed.Step == fault.Setup { // a network may be gone for a moment
			err = ws.Restore(ctx, ws.Judge, base)
		}
		if done, err := over("setup", api.Outcome{}, err); done {
			return err
		}
	} else if s.Setup.Command != "" {
		return nil // the next commands may need what setup fetches
	}
	again := "Run it in a fresh clone: it has to exit 0"
	var measured api.Measured
	improve := rules.ImproveOf(s, rules.NewestVersion)
	if runs("verify", s.Verify.Command) {
		w := work("verify", 0, s.Verify.Timeout.D())
		w.In.Intact = true
		r, err := out.measureAlone(ws, s, func() (api.Measured, error) { return w.Verify(ctx, verifyOf(s, nil)) })
		if done, err := over("verify", r.Outcome, err); done {
			return err
		}
		out.Verify, out.Baseline = &r.Outcome, r.Metric
		if took := time.Duration(r.ElapsedMs) * time.Millisecond; k.Reference && r.OK() && took > rules.LongVerify {
			out.Notes = append(out.Notes, rules.Slow(s.Verify.Command, took))
		}
		printed, _ := workspace.ReadTail(filepath.Join(w.Dir, "stdout"), workspace.TailLength) // empty if the command could not be started
		out.Printed = secretscan.Redact(strings.ToValidUTF8(string(printed), "?"))
		switch {
		case len(r.Altered) > 0:
			out.altered("verify", s.Verify.Command, r.Outcome)
		case k.Mends && r.Missing():
			out.problem("verify", fails("verify", s.Verify.Command, r.Outcome), rules.MissingAdvice)
		case k.Mends && !r.OK():
			out.Notes = append(out.Notes, fails("verify", s.Verify.Command, r.Outcome)+"\nThat is fine if the loop is meant to fix it.")
		case !r.OK():
			out.problem("verify", fmt.Sprintf("the verify command fails on the unchanged code (%s): `%s`%s", r.Ending(), s.Verify.Command, tailed(r.Outcome)), again+" and print a number."+inTime("verify.timeout", s.Verify.Command, r.Outcome))
		case k.Reference && r.Metric == nil:
			out.problem("verify", fmt.Sprintf("verify prints no number (`%s`): %s", s.Verify.Command, r.NoNumber), "Make it print the number last, or a line METRIC name=number, or set verify.pattern.")
		case k.Reference && improve.WithoutMetric(r.Metrics).What != "":
			unfit := improve.WithoutMetric(r.Metrics)
			out.problem("verify", unfit.What+fmt.Sprintf(": `%s`", s.Verify.Command), unfit.Do)
		case k.Reference && r.Warning != "":
			out.Notes = append(out.Notes, "verify: "+r.Warning)
		}
		measured = r
		if k.Reference { // a delivery verifies only changes
			out.ran(w, &r)
		}
	}
	if runs("guard", s.Guard.Command) {
		run := func(name string, sample int) (api.Outcome, error) {
			w := work(name, sample, s.Guard.Timeout.D())
			w.In.Intact = true
			r, err := w.Guard(ctx, api.Guard{Command: s.Guard.Command, Reports: s.GuardReports()})
			if err == nil && !r.Interrupted {
				out.ran(w, &r)
			}
			return r, unlessInterrupted(ctx, r, err)
		}
		r, err := run("guard", 0)
		if done, err := over("guard", r, err); done {
			return err
		}
		r, flaky, err := rules.RunAgain(r, func(retried int, last api.Outcome) bool {
			final := last.TimedOut || len(last.Altered) > 0 || last.Missing()
			return improve.RetriesGuard(rules.GuardFailure{Retried: retried, Failing: last.Failing, Final: final, InTime: true})
		}, func(n int, _ api.Outcome) (api.Outcome, error) {
			tell("guard")
			return run(guardAgain, n)
		})
		if done, err := over("guard", r, err); done {
			return err
		}
		if r.Tested != nil {
			r.Tested.Flaky = flaky
		}
		out.Guard = &r
		switch {
		case r.OK():
		case len(r.Altered) > 0:
			out.altered("guard", s.Guard.Command, r)
		case k.Mends && r.Missing():
			out.problem("guard", fails("guard", s.Guard.Command, r), rules.MissingAdvice)
		case k.Mends:
			out.Notes = append(out.Notes, fails("guard", s.Guard.Command, r)+"\nNo change reaches the tests before it passes.")
		default:
			out.problem("guard", fmt.Sprintf("the guard command fails on the unchanged code (%s): `%s`%s", r.Ending(), s.Guard.Command, tailed(r)), again+" before there is anything to guard."+inTime("guard.timeout", s.Guard.Command, r))
		}
	}
	if k.Tests && s.TestRequired() && runs("test", s.Test.Command) {
		w := work("test", 0, s.Test.Timeout.D())
		r, err := w.Test(ctx, api.Test{Command: s.Test.Command, Reports: s.TestReports()})
		if done, err := over("test", r.Outcome, err); done {
			return err
		}
		out.Test = &r.Outcome
		out.ran(w, &r)
		switch {
		case r.OK():
		case r.Missing():
			out.problem("test", fails("test", s.Test.Command, r.Outcome), rules.MissingAdvice)
		default:
			what := fails("test", s.Test.Command, r.Outcome)
			if t := r.Tests; t != nil && t.Failed > 0 {
				what = fmt.Sprintf("tests fail on the unchanged code: %d failed, %d passed (%s)", t.Failed, t.Passed, git.QuoteSome(t.Failing))
			}
			advice := ". That is fine if the loop is meant to fix it."
			if s.Verify.Command == "" {
				advice += " A change that leaves these tests as they are can be delivered too. If they have to pass, let verify.command run them"
			}
			out.Notes = append(out.Notes, what+advice)
		}
	}
	if runs("check", s.Check.Command) {
		r, err := work("check", 0, s.Limits.PhaseTimeout.D()).Judged(ctx, s.Check.Command)
		if done, err := over("check", r, err); done {
			return err
		}
		if err := out.rewrites(ctx, ws, s, d); err != nil {
			return err
		}
		switch {
		case r.OK():
		case k.Mends && r.Missing():
			out.problem("check", fails("check", s.Check.Command, r), rules.MissingAdvice)
		case k.Mends:
			out.Notes = append(out.Notes, fmt.Sprintf("check fails on the unchanged code (%s), so it would undo every change that does not fix it: `%s`%s", r.Ending(), s.Check.Command, tailed(r)))
		default:
			out.problem("check", fmt.Sprintf("the check command fails on the unchanged code (%s), so it would undo every change: `%s`%s", r.Ending(), s.Check.Command, tailed(r)), again+". Or leave check.command out: a loop can do without one.")
		}
	}
	if s.Canary() {
		tell("canary")
		if err := tryCanary(ctx, ws, s, k, measured, out, work, tell); err != nil {
			return plainly(err)
		}
	}
	if k.Reference && measured.OK() && measured.Metric != nil && len(out.Problems) == 0 { // the noise is only measured if the loop would start
		return plainly(out.vary(s, measured, func(sample int) (api.Measured, error) {
			tell(VerifyAgain)
			again := work("verify", sample, s.Verify.Timeout.D())
			again.In.Clean, again.In.Intact = true, true
			r, err := out.measureAlone(ws, s, func() (api.Measured, error) { return again.Verify(ctx, verifyOf(s, measured.Form)) })
			out.ran(again, &r)
			measured.Form = cmp.Or(r.Form, measured.Form)
			return r, unlessInterrupted(ctx, r.Outcome, err)
		}))
	}
	return nil
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
func (f *Findings) vary(s spec.Spec, first api.Measured, again func(sample int) (api.Measured, error)) error {
	improve := rules.ImproveOf(s, rules.NewestVersion)
	values, spent := []metric.Decimal{*first.Metric}, first.ElapsedMs
	took := []time.Duration{time.Duration(first.ElapsedMs) * time.Millisecond}
	for improve.Judging(values) == "" {
		if each := spent / int64(len(values)); spent+each > varyTime.Milliseconds() {
			f.Notes = append(f.Notes, rules.NotSampled(len(values), time.Duration(each)*time.Millisecond))
			f.unsure = true
			return nil
		}
		r, err := again(len(values))
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
