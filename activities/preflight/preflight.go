// Package preflight finds, without Temporal, what a loop of a spec would meet before it starts. Start at DryRun.
package preflight

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"pawl/activities/calls"
	"pawl/activities/contracts"
	"pawl/activities/hosted"
	"pawl/activities/opening"
	"pawl/activities/steps"
	"pawl/internal/act"
	"pawl/internal/canary"
	"pawl/internal/evidence"
	"pawl/internal/evidence/sampling"
	"pawl/internal/fault"
	"pawl/internal/git"
	"pawl/internal/govern"
	"pawl/internal/home"
	"pawl/internal/kind"
	"pawl/internal/ledger"
	"pawl/internal/loop"
	"pawl/internal/seal"
	"pawl/internal/secret"
	"pawl/internal/shell"
	"pawl/internal/spec"
	"pawl/internal/trees"
	"pawl/internal/userrepo"
	"pawl/internal/wire"
)

// Findings is what a loop would find before it starts (P0), and the contract that it would ask a person to approve.
type Findings struct {
	Repo     string
	Branch   string           // the branch of the loop
	Contract *ledger.Contract // nil if there is no commit to start from
	InScope  int              // how many files may change
	Baseline *evidence.Decimal
	Noise    string       // how the loop judges a metric that varies, "" if it does not vary
	Verify   *act.Outcome // nil if it did not run
	Printed  string       // the end of what verify printed
	Guard    *act.Outcome
	Test     *act.Outcome // for a Deliver loop
	// Leftovers are files that the commands leave behind and git does not ignore.
	Leftovers []string
	// Problems keep the loop from starting. Notes are what the author of the spec should know.
	Problems []Problem
	Notes    []string
	// Protections are the sentences about this host's sandbox that hold.
	Protections []string
	// Environment says which part of this process's environment agent and commands get.
	Environment []string
}

// Problem is one precondition that is not met.
type Problem struct {
	Check string `json:"check"` // repository, scope, setup, agent, verify, guard, test or check
	What  string `json:"what"`
	Do    string `json:"do"`
}

// DryRun opens a loop of the spec, without Temporal, in its own folder, which is removed afterwards. The code of a
// worker checks the repository, draws the contract, and runs verify and guard on the unchanged code. After a problem
// DryRun continues as far as possible, so that it reports all problems at once. It only reads the user's repository.
// It calls tell at the beginning of each step, because a step may take minutes.
func DryRun(ctx context.Context, h home.Home, id string, s spec.Spec, tell func(step string)) (out Findings, err error) {
	dir, discard, err := scratch(h)
	if err != nil {
		return Findings{}, err
	}
	defer discard()
	a := hosted.New(home.Home{Dir: dir}, "", "", "", false)
	users := hosted.New(h, "", "", "", false)
	a.Asks = users.AsksToken()
	if a.Closed = users.EnginePorts(); len(a.Closed) == 0 {
		a.Closed = []int{hosted.StockPort, hosted.StockUI} // the engine's ports, unless they are taken
	}
	a.Closed = append(a.Closed, h.TriggerPorts()...)
	defer a.Stop()
	in := act.Open{Loop: id, FirstRun: "validate-" + filepath.Base(dir), Spec: s}

	tell("repository")
	var source userrepo.Source
	repo, err := hosted.Find(ctx, s.Repo)
	if err == nil {
		defer repo.Close()
		source, err = opening.Inspect(ctx, a.Machine, repo, s.Repo, id)
	}
	failed := userrepo.Failed(err)
	if p := opening.Unfit(s.Mode); p != nil {
		out.problem("spec", p.What, p.Do)
	}
	for _, pre := range failed {
		out.problem("repository", pre.What, pre.Do)
	}
	if err != nil && len(failed) == 0 {
		return out, plainly(opening.Precondition(err))
	}
	if source.Head == "" {
		return out, nil
	}
	record, err := opening.Enroll(a.Machine, opening.RequestOf(a.Machine, in), repo, source)
	if err != nil {
		return out, err
	}
	ws, err := a.OpenWorkspace(ctx, record)
	if err != nil {
		return out, err
	}
	a.Keep(ws)
	defer func() { out.relative(ws.Judge.Dir+"/", ws.Desk.Dir+"/") }()
	out.Repo, out.Branch = ws.Repo, git.BranchName(record.Branch)
	base, err := opening.Base(ctx, ws, source)
	if err != nil {
		var f *fault.Error
		if err = plainly(err); errors.As(err, &f) && f.Code == fault.PreconditionFailed {
			out.problem("repository", f.What, f.Do)
			return out, nil
		}
		return out, err
	}
	d, err := contracts.Draw(ctx, ws, s, base)
	if err != nil {
		return out, err
	}
	out.Contract, out.InScope = &d.Contract, d.InScope
	if f := d.Closed(ws, s); f != nil {
		about := "scope"
		if f.Code == fault.InvalidSpec {
			about = "spec"
		}
		out.problem(about, f.What, f.Do)
	} else if clash := slices.DeleteFunc(d.Clash, func(name string) bool { return spec.MatchAny(s.Protect, name) }); len(clash) > 0 {
		out.Notes = append(out.Notes, "these files match the scope but are sealed, since they judge the work: "+contracts.Naming(clash)+". To let tests change, name them in the scope")
	}
	if out.Protections, _, err = ws.Protections(ctx); err != nil {
		return out, err
	}
	named, err := ws.Named(s)
	if err != nil {
		return out, err
	}
	out.Protections = append(out.Protections, named...)
	out.Environment = govern.Environment(s, os.Environ())
	if env, runs := hosted.WorkersEnvironment(h); runs {
		own, _ := govern.Inherited(os.Environ())
		if names := hosted.Differing(own, env); len(names) > 0 {
			out.Notes = append(out.Notes, "a worker runs on this host, so the loop gets the worker's environment, not this shell's. The commands here got it too. These variables differ: "+strings.Join(names[:min(len(names), 10)], ", "))
		}
		ws.Env = env
	}
	counting, err := calls.Counting(ws, s)
	if err != nil {
		return out, err
	}
	out.Environment = append(out.Environment, counting...)
	var f *fault.Error
	key, err := calls.Uncounted(ws, s)
	if err = plainly(err); errors.As(err, &f) && f.Code == fault.PreconditionFailed {
		out.problem(key, f.What, f.Do)
	} else if err != nil {
		return out, err
	}
	tell("programs")
	if err := out.ready(ctx, ws, s, d); err != nil {
		return out, err
	}
	if k, err := kind.Of(s.Kind); err == nil && k.Reference && s.Guard.Command == "" {
		out.Notes = append(out.Notes, "there is no guard: a change that improves the number is kept, even if it breaks something else")
	}
	out.notes(s, d)
	if err := dryRuns(ctx, ws, in, d, &out, tell); err != nil || len(out.Problems) > 0 {
		return out, err
	}
	return out, plainly(out.listed(ctx, ws, s, d, tell))
}

// listTime is how long a runner may take to list its tests.
const listTime = time.Minute

// listed lets the runners list the files of their tests, if they can. It adds a note about those that an agent may
// change and that are not sealed.
func (f *Findings) listed(ctx context.Context, ws *hosted.Workspace, s spec.Spec, d contracts.Drawn, tell func(string)) error {
	open, folders := map[string]bool{}, map[string]bool{}
	for _, name := range d.Names {
		for dir := path.Dir(name); dir != "." && !folders[dir]; dir = path.Dir(dir) {
			folders[dir] = true
		}
		if s.Match(name) && !d.Seals.Has(name) && !spec.MatchAny(d.Seals.Open, name) {
			open[name] = true
		}
	}
	var found []string
	for i, l := range d.Seals.Listings[:min(len(d.Seals.Listings), MaxListings)] {
		tell("list of tests")
		w := steps.NewWork(ws, act.Step{Ref: ws.Ref, Key: act.Key{Name: "list", Sample: i}, Head: d.Contract.Base, LimitMs: listTime.Milliseconds()}, &steps.Running{})
		r, err := w.Judged(ctx, "cd "+shell.Quote(cmp.Or(l.Dir, "."))+" && "+l.Command)
		switch {
		case err != nil:
			return err
		case r.Interrupted:
			return context.Cause(ctx)
		case !r.OK():
			continue // this runner can't list them
		}
		printed, err := hosted.ReadFile(filepath.Join(w.Dir, "stdout"), hosted.MaxOutput)
		if err != nil {
			return err
		}
		words := strings.FieldsFunc(string(printed), func(c rune) bool { return strings.ContainsRune(" \t\r\n\"',", c) })
		in := []string{"", l.Dir}
		for _, word := range words { // playwright prints the folder first, and names its files relative to it
			if dir, is := strings.CutPrefix(word, ws.Judge.Dir+"/"); is && folders[dir] && !slices.Contains(in, dir) {
				in = append(in, dir)
			}
		}
		for _, word := range words {
			name, _, _ := strings.Cut(word, ":") // pytest prints a.py::test_b, or a.py: 1 with -q twice
			name = strings.TrimPrefix(name, ws.Judge.Dir+"/")
			for _, dir := range in {
				if name := path.Join(dir, name); open[name] {
					found, open[name] = append(found, name), false
				}
			}
		}
	}
	if len(found) > 0 {
		f.Notes = append(f.Notes, "these files have tests that the runner finds, but they are not sealed and the agent may change them: "+contracts.Naming(found)+". Add those that hold only tests to protect")
	}
	return nil
}

// MaxListings is how many runners list their tests.
const MaxListings = 4

// dryRuns runs verify, guard, test and check in the judge. In a Deliver loop a failure on the unchanged code is only
// a note, because the loop may be there to fix it.
func dryRuns(ctx context.Context, ws *hosted.Workspace, in act.Open, d contracts.Drawn, out *Findings, tell func(string)) error {
	base := d.Contract.Base
	s := in.Spec
	k, err := kind.Of(s.Kind)
	if err != nil {
		return err
	}
	fails := func(name, command string, r act.Outcome) string {
		return fmt.Sprintf("%s fails on the unchanged code (%s): `%s`%s", name, r.Ending(), command, tailed(r))
	}
	work := func(name string, limit spec.Duration) *steps.Work {
		return steps.NewWork(ws, act.Step{Ref: ws.Ref, Key: act.Key{Name: name}, Head: base, LimitMs: limit.D().Milliseconds()}, &steps.Running{})
	}
	unlessInterrupted := func(r act.Outcome, err error) error {
		if err == nil && r.Interrupted {
			return context.Cause(ctx)
		}
		return err
	}
	// setupFailed reports whether setup failed, and adds that problem: it is a failure of the spec, and not of the
	// command that needed the tree.
	setupFailed := func(err error) bool {
		refused := wire.Decode(err)
		if refused == nil || refused.Code != fault.PreconditionFailed {
			return false
		}
		out.problem("setup", refused.What, "Run it in a fresh clone of the repository.") // the log is removed with the folder
		return true
	}
	// over reports whether the dry runs have to end: because of an error, or because setup failed, which is not
	// returned as an error.
	over := func(r act.Outcome, err error) (bool, error) {
		if err = unlessInterrupted(r, err); setupFailed(err) {
			return true, nil
		}
		return err != nil, plainly(err)
	}
	// lacks reports whether there is already a problem about a missing program of the command, so that the command
	// need not run.
	lacks := func(check string) bool {
		return slices.ContainsFunc(out.Problems, func(p Problem) bool { return p.Check == check })
	}
	if s.Setup.Command != "" {
		if lacks("setup") {
			return nil // the next commands may need what setup fetches
		}
		tell("setup")
		if done, err := over(act.Outcome{}, ws.Restore(ctx, ws.Judge, base)); done {
			return err
		}
	}
	again := "Run it in a fresh clone: it has to exit 0"
	var measured act.Measured
	if s.Verify.Command != "" && !lacks("verify") {
		tell("verify")
		w := work("verify", s.Verify.Timeout)
		r, err := w.Verify(ctx, act.Verify{Command: s.Verify.Command, Pattern: s.Verify.Pattern})
		if done, err := over(r.Outcome, err); done {
			return err
		}
		out.Verify, out.Baseline = &r.Outcome, r.Metric
		out.leaves(k, "verify", r.Outcome)
		out.slow(k, s.Verify.Command, r.Outcome)
		printed, _ := hosted.ReadTail(filepath.Join(w.Dir, "stdout"), hosted.TailLength) // empty if the command could not be started
		out.Printed = secret.Redact(strings.ToValidUTF8(string(printed), "?"))
		switch {
		case k.Mends && !r.OK():
			out.Notes = append(out.Notes, fails("verify", s.Verify.Command, r.Outcome)+"\nThat is fine if the loop is meant to fix it.")
		case !r.OK():
			out.problem("verify", fmt.Sprintf("the verify command fails on the unchanged code (%s): `%s`%s", r.Ending(), s.Verify.Command, tailed(r.Outcome)), again+" and print a number."+inTime("verify.timeout", r.Outcome))
		case k.Reference && r.Metric == nil:
			out.problem("verify", fmt.Sprintf("the verify command prints no number: %s: `%s`", r.NoNumber, s.Verify.Command), "Make it print the number last, or a line METRIC name=number, or set verify.pattern.")
		case k.Reference && r.Warning != "":
			out.Notes = append(out.Notes, "verify: "+r.Warning)
		}
		measured = r
	}
	if s.Guard.Command != "" && !lacks("guard") {
		tell("guard")
		r, err := work("guard", s.Guard.Timeout).Judged(ctx, s.Guard.Command, s.ReportsOf(s.Guard.Command)...)
		if done, err := over(r, err); done {
			return err
		}
		out.Guard = &r
		out.leaves(k, "guard", r)
		switch {
		case r.OK():
		case k.Mends:
			out.Notes = append(out.Notes, fails("guard", s.Guard.Command, r)+"\nNo change reaches the tests before it passes.")
		default:
			out.problem("guard", fmt.Sprintf("the guard command fails on the unchanged code (%s): `%s`%s", r.Ending(), s.Guard.Command, tailed(r)), again+" before there is anything to guard."+inTime("guard.timeout", r))
		}
	}
	if k.Tests && s.TestRequired() && !lacks("test") {
		tell("test")
		r, err := work("test", s.Test.Timeout).Test(ctx, act.Test{Command: s.Test.Command, Reports: s.ReportsOf(s.Test.Command)})
		if done, err := over(r.Outcome, err); done {
			return err
		}
		out.leaves(k, "test", r.Outcome)
		if out.Test = &r.Outcome; !r.OK() {
			what := fails("test", s.Test.Command, r.Outcome)
			if t := r.Tests; t != nil && t.Failed > 0 {
				what = fmt.Sprintf("tests fail on the unchanged code: %d failed, %d passed (%s)", t.Failed, t.Passed, contracts.Naming(t.Failing))
			}
			out.Notes = append(out.Notes, what+". That is fine if the loop is meant to fix it.")
		}
	}
	if s.Check.Command != "" && !lacks("check") {
		tell("check")
		r, err := work("check", s.Limits.PhaseTimeout).Judged(ctx, s.Check.Command)
		if done, err := over(r, err); done {
			return err
		}
		out.leaves(k, "check", r)
		if err := out.rewrites(ctx, ws, s, d); err != nil {
			return err
		}
		switch {
		case r.OK():
		case k.Mends:
			out.Notes = append(out.Notes, fmt.Sprintf("check fails on the unchanged code (%s), so it would undo every change that does not fix it: `%s`%s", r.Ending(), s.Check.Command, tailed(r)))
		default:
			out.problem("check", fmt.Sprintf("the check command fails on the unchanged code (%s), so it would undo every change: `%s`%s", r.Ending(), s.Check.Command, tailed(r)), again+". Or leave check.command out: a loop can do without one.")
		}
	}
	if s.Canary() {
		tell("canary")
		if err := tryCanary(ctx, ws, s, k, out, work, tell); err != nil {
			return plainly(err)
		}
	}
	if k.Reference && measured.OK() && measured.Metric != nil && len(out.Problems) == 0 { // the noise is only measured if the loop would start
		return plainly(out.vary(s, measured, func(sample int) (act.Measured, error) {
			tell(fmt.Sprintf("verify, run %d", sample+1))
			again := work("verify", s.Verify.Timeout)
			again.In.Key.Sample, again.In.Clean = sample, true
			again.Dir = steps.StepDir(ws.Machine, again.In.Ref, again.In.Key)
			r, err := again.Verify(ctx, act.Verify{Command: s.Verify.Command, Pattern: s.Verify.Pattern})
			return r, unlessInterrupted(r.Outcome, err)
		}))
	}
	return nil
}

// varyTime is how long vary may measure the unchanged code.
const varyTime = 5 * time.Minute

// vary measures the unchanged code again, as a loop would, and notes how its metric would be judged.
func (f *Findings) vary(s spec.Spec, first act.Measured, again func(sample int) (act.Measured, error)) error {
	rules := govern.Improve3Of(s)
	values, spent := []evidence.Decimal{*first.Metric}, first.ElapsedMs
	for rules.Judging(values) == "" {
		if each := spent / int64(len(values)); spent+each > varyTime.Milliseconds() {
			f.Notes = append(f.Notes, govern.NotSampled(len(values), time.Duration(each)*time.Millisecond))
			return nil
		}
		r, err := again(len(values))
		if err != nil {
			return err
		}
		if !r.OK() || r.Metric == nil {
			f.problem("verify", fmt.Sprintf("the verify command fails when it runs again on the unchanged code (%s): `%s`%s", cmp.Or(r.NoNumber, r.Ending()), s.Verify.Command, tailed(r.Outcome)), "It has to exit 0 and print a number each time.")
			return nil
		}
		values, spent = append(values, *r.Metric), spent+r.ElapsedMs
	}
	if rules.Judging(values) == loop.JudgedBySamples {
		sampler := sampling.Start(rules.Samples, values)
		best := sampler.Best()
		noise := govern.Noise(sampler, s, time.Duration(spent/int64(len(values)))*time.Millisecond)
		f.Baseline, f.Noise, f.Notes = &best, noise.Says, append(f.Notes, noise.Warnings...)
	}
	return nil
}

// tryCanary breaks the code for the commands that pass on it. A command that already fails shows nothing. In a
// Deliver loop, which may be there to write the first tests, a guard that notices nothing is only a note.
func tryCanary(ctx context.Context, ws *hosted.Workspace, s spec.Spec, k kind.Kind, out *Findings, work func(string, spec.Duration) *steps.Work, tell func(string)) error {
	in := govern.CanaryOf(s, out.Guard, out.Test)
	if in.LimitMs == 0 {
		return nil
	}
	w := work(steps.CanaryStep, spec.Duration(2*time.Duration(in.LimitMs)*time.Millisecond))
	in.Step, in.Hollow = w.In, true
	r, err := w.Canary(ctx, in)
	if err == nil && r.Interrupted {
		err = context.Cause(ctx)
	}
	switch {
	case err != nil:
		return err
	case r.Blind():
		what, do := govern.Blind(r, in.Guard, in.Test)
		if k.Mends { // the loop may be there to write the first tests
			out.Notes = append(out.Notes, what+". "+do)
			break
		}
		out.problem("guard", what, do)
	case r.Hollow:
		out.Notes = append(out.Notes, govern.Hollow(in.Guard, in.Test))
	}
	if !r.Seen {
		return nil
	}
	return out.tryParts(ctx, ws, in, work, tell)
}

// tryParts breaks the parts of the code one by one. If all parts are broken at once, one that a command notices hides
// that it ignores the others.
func (f *Findings) tryParts(ctx context.Context, ws *hosted.Workspace, in act.Canary, work func(string, spec.Duration) *steps.Work, tell func(string)) error {
	files, names, err := steps.Code(ctx, ws, in.Spec, in.Head)
	if err != nil {
		return err
	}
	parts := canary.Parts(files, names)
	if len(parts) < 2 {
		return nil
	}
	var unseen []string
	var took time.Duration
	for _, ran := range []*act.Outcome{f.Guard, f.Test} {
		if ran != nil {
			took += time.Duration(ran.ElapsedMs) * time.Millisecond
		}
	}
	spent := time.Duration(0)
	for i, part := range parts {
		if !govern.TriesPart(i, spent, took) {
			f.Notes = append(f.Notes, govern.PartsLeft(parts[i:], in.Guard, in.Test))
			break
		}
		tell("canary: " + part.Name)
		w := work(steps.CanaryStep, spec.Duration(time.Duration(in.LimitMs)*time.Millisecond))
		w.In.Key.Sample = i + 1
		w.Dir = steps.StepDir(ws.Machine, w.In.Ref, w.In.Key)
		in.Step = w.In
		seen, r, err := w.Sees(ctx, in, part.Files)
		if err == nil && r.Interrupted {
			err = context.Cause(ctx)
		}
		if err != nil {
			return err
		}
		last := time.Duration(r.ElapsedMs) * time.Millisecond
		spent, took = spent+last, max(took, last)
		if !seen {
			unseen = append(unseen, govern.Part(part))
		}
	}
	if len(unseen) > 0 {
		f.Notes = append(f.Notes, govern.Unseen(unseen, in.Guard, in.Test))
	}
	return nil
}

// inTime returns further advice for a command that took too long.
func inTime(key string, r act.Outcome) string {
	if !r.TimedOut {
		return ""
	}
	return " Have it do less, or raise " + key + "."
}

// slow adds a note about a metric that takes long.
func (f *Findings) slow(k kind.Kind, command string, r act.Outcome) {
	if took := time.Duration(r.ElapsedMs) * time.Millisecond; k.Reference && r.OK() && took > govern.LongVerify {
		f.Notes = append(f.Notes, govern.Slow(command, took))
	}
}

// rewrites adds a note if the check, which has just run in the judge, changes files: those of the unchanged code, or
// by what its command is known to do.
func (f *Findings) rewrites(ctx context.Context, ws *hosted.Workspace, s spec.Spec, d contracts.Drawn) error {
	changed, err := ws.Judge.StageRead(ctx, d.Contract.Base, trees.StageOptions{Largest: hosted.MaxOutput, Leftovers: f.Leftovers})
	if err != nil {
		return fmt.Errorf("looking for what check has changed: %w", err)
	}
	var tracked []string
	for _, file := range changed.Files {
		if slices.Contains(d.Names, file.Path) {
			tracked = append(tracked, file.Path)
		}
	}
	const becomes = " What it rewrites becomes part of each change, and pawl refuses a change with a file outside of the scope. A command that only checks is better"
	switch by := seal.Rewrites(s.Check.Command, d.Read); {
	case len(tracked) > 0:
		f.Notes = append(f.Notes, "the check command rewrites files of the unchanged code ("+contracts.Naming(tracked)+")."+becomes)
	case by != "":
		f.Notes = append(f.Notes, "the check command rewrites files: `"+by+"`."+becomes)
	}
	return nil
}

// leaves adds a note about files that a command has left in the tree. A loop finds these itself for the commands that
// it runs on the unchanged code, and for its check.
func (f *Findings) leaves(k kind.Kind, name string, r act.Outcome) {
	known := func(left string) bool { return slices.Contains(f.Leftovers, left) }
	left := slices.DeleteFunc(slices.Clone(r.Leftovers), known)
	if len(left) == 0 {
		return
	}
	f.Leftovers = append(f.Leftovers, left...)
	says := "pawl leaves these files out of every change. Add them to .gitignore to keep them out of your own commits too"
	if k.Mends && name == "verify" {
		says = "If an agent runs the command, these files become part of its change: add them to .gitignore"
	}
	f.Notes = append(f.Notes, fmt.Sprintf("the %s command leaves files behind that git does not ignore (%s). %s", name, contracts.Naming(left), says))
}

func (f *Findings) problem(check, what, do string) {
	f.Problems = append(f.Problems, Problem{check, what, do})
}

// notes adds the notes about the contract, including those about which the loop would warn too.
func (f *Findings) notes(s spec.Spec, d contracts.Drawn) {
	f.Notes = append(f.Notes, d.Warnings...)
	var open []string
	for _, dir := range d.Unsealed {
		for _, name := range d.Names {
			if strings.HasPrefix(name, dir+"/") && s.Match(name) {
				open = append(open, dir)
				break
			}
		}
	}
	if len(open) > 0 {
		f.Notes = append(f.Notes, "your commands name folders in which the agent may change files: "+contracts.Naming(open)+". Add the files that must not change to protect")
	}
}

// relative changes paths in the trees to paths in the repository, because the trees are gone when somebody reads
// them.
func (f *Findings) relative(trees ...string) {
	for _, tree := range trees {
		f.Printed = strings.ReplaceAll(f.Printed, tree, "")
		for i := range f.Problems {
			f.Problems[i].What = strings.ReplaceAll(f.Problems[i].What, tree, "")
		}
		for i := range f.Notes {
			f.Notes[i] = strings.ReplaceAll(f.Notes[i], tree, "")
		}
	}
}

func tailed(r act.Outcome) string {
	if r.Tail == "" {
		return ""
	}
	return "\n" + r.Tail
}

// plainly returns the fault that a worker would report to the service, without its encoding.
func plainly(err error) error {
	if f := wire.Decode(err); f != nil {
		return f
	}
	return err
}
