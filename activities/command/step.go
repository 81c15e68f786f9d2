package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"pawl/activities/commit"
	"pawl/activities/workspace"
	"pawl/internal/exec/supervisor"
	"pawl/internal/git"
	"pawl/internal/judge/testreport"
	"pawl/internal/lib/crashpoint"
	"pawl/internal/lib/fsutil/dirfd"
	"pawl/internal/lib/fsutil/durable"
	"pawl/internal/lib/fsutil/remove"
	"pawl/internal/lib/lazyregexp"
	"pawl/internal/lib/safego"
	"pawl/internal/lib/secretscan"
	"pawl/internal/loop/api"
	"pawl/internal/metric"
)

// Work is a step that is being done.
type Work struct {
	*Running
	Workspace *workspace.Workspace
	In        api.Step
	Dir       string // the folder of its output and its result

	Full string // why its command was ended for using too much room
	// Agents are the known programs that an agent's command is or starts, none if the step runs no agent.
	Agents []string
}

// NewWork returns the work of a step that is about to start.
func NewWork(ws *workspace.Workspace, input api.Step, r *Running) *Work {
	return &Work{Running: r, Workspace: ws, In: input, Dir: StepDir(ws.Machine, input.Ref, input.Key)}
}

// Ready prepares everything for the step's command, and meanwhile starts the supervisor, which takes as long.
func (w *Work) Ready(ctx context.Context, rest ...func(context.Context) error) error {
	crashpoint.At("step.before")
	if err := os.MkdirAll(dirfd.At(w.Dir), 0o700); err != nil {
		return fmt.Errorf("making the step's folder: %w", err)
	}
	g, gctx := safego.WithContext(ctx)
	g.Go(func() error { _, err := w.Workspace.Supervise(); return err })
	for _, do := range rest {
		g.Go(func() error { return do(gctx) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	crashpoint.At("step.prepared")
	return nil
}

// surroundings returns the surroundings of the attempt. All its agents share one home and one /tmp, and so do the
// commands of each judgement.
func (w *Work) surroundings() workspace.Surroundings {
	k := w.In.Key
	if w.In.Scratch {
		return workspace.FromScratch(w.In.Head)
	}
	// Broken code's caches are thrown away. The caches of code that stays on the branch are kept.
	if k.Iteration == 0 && k.Name != CanaryStep || w.In.At != "" && !w.In.Trial {
		return workspace.Unchanged
	}
	position := fmt.Sprintf("%d.%d.%d %s", k.Iteration, k.Attempt, k.Repeat, w.In.Head)
	if w.In.Trial {
		position = workspace.OfTrial + position
	}
	return workspace.Surroundings(position)
}

// OnDesk brings the desk to the commit from which the step starts. From then on the desk belongs to the step.
func (w *Work) OnDesk(ctx context.Context) error {
	defer w.Workspace.Leave(w.Workspace.Desk)
	return w.Workspace.Restore(ctx, w.Workspace.Desk, w.In.Head)
}

// inJudge brings the judge to that commit.
func (w *Work) inJudge(ctx context.Context) error {
	defer w.Workspace.Leave(w.Workspace.Judge)
	if w.In.Scratch || w.In.Clean && len(w.Workspace.Keep) > 0 {
		return w.Workspace.RestoreClean(ctx, w.Workspace.Judge, w.In.Head, w.In.Scratch)
	}
	return w.Workspace.Restore(ctx, w.Workspace.Judge, w.In.Head)
}

// Command returns a command of the step in a tree, with the step's limit.
func (w *Work) Command(dir string, argv ...string) (supervisor.Command, error) {
	inherited, err := w.Workspace.Environment()
	return supervisor.Command{
		Argv: argv, Dir: dir, Env: w.Workspace.ToolEnvironment(inherited, dir),
		Stdout: filepath.Join(w.Dir, "stdout"), Stderr: filepath.Join(w.Dir, "stderr"),
		Limit: time.Duration(w.In.LimitMs) * time.Millisecond, Progress: filepath.Join(w.Dir, ProgressFile),
	}, err
}

// shell runs a command of the spec in a tree. Lines of stdout that match a pattern of find are kept in any case.
func (w *Work) shell(ctx context.Context, dir, command string, find ...string) (api.Outcome, error) {
	if err := w.Workspace.Unaltered(ctx); err != nil {
		return api.Outcome{}, err
	}
	c, err := w.Command(dir, "sh", "-c", command)
	if err != nil {
		return api.Outcome{}, err
	}
	inherited, err := w.Workspace.Environment()
	if err != nil {
		return api.Outcome{}, err
	}
	c.Env = w.Workspace.CommandEnvironment(inherited, dir)
	c.Find = slices.DeleteFunc(find, func(pattern string) bool { return pattern == "" })
	out, err := w.Run(ctx, c, Plainly)
	if err != nil || out.OK() {
		return out, err
	}
	out.Tail = workspace.Excerpt(w.Dir, ofCommand)
	if w.In.Key.Iteration == 0 { // later, the same folders were empty when the unchanged code passed
		out.Empty, err = w.emptySubmodules(dir)
	}
	return out, err
}

// emptySubmodules names the submodules that a tree has only as empty folders.
func (w *Work) emptySubmodules(dir string) ([]string, error) {
	for _, t := range []*workspace.Tree{w.Workspace.Desk, w.Workspace.Judge} {
		if t == nil || t.Dir != dir {
			continue
		}
		empty, err := t.EmptySubmodules()
		if err != nil {
			return nil, fmt.Errorf("looking for empty submodules: %w", err)
		}
		return commit.Quoted(empty[:min(len(empty), git.MaxNamed)]), nil
	}
	return nil, nil
}

// ofCommand is how many bytes of the output of a failed command enter history.
const ofCommand = 2 * workspace.TailLength

// Plainly runs a command without following what it prints.
func Plainly(ctx context.Context, s *supervisor.Supervisor, c supervisor.Command) (supervisor.Result, error) {
	return s.Run(ctx, c)
}

// Run lets the loop's supervisor run the command.
func (w *Work) Run(ctx context.Context, c supervisor.Command, run func(context.Context, *supervisor.Supervisor, supervisor.Command) (supervisor.Result, error)) (api.Outcome, error) {
	inherited, err := w.Workspace.Environment()
	if err != nil {
		return api.Outcome{}, err
	}
	if err := w.Workspace.Confine(ctx, &c, inherited, w.surroundings(), w.Agents); err != nil {
		return api.Outcome{}, err
	}
	if c.Spent, err = supervisor.ReadProgress(c.Progress); err != nil {
		return api.Outcome{}, fmt.Errorf("reading what the step has spent: %w", err)
	}
	s, err := w.Workspace.Supervise()
	if err != nil {
		return api.Outcome{}, err
	}
	crashpoint.At("step.starting")
	w.since.Store(new(time.Now().Add(-c.Spent)))
	watched, end := context.WithCancel(ctx)
	space := w.Workspace.RoomOf(c.Dir, s)
	w.Workspace.Machine.InBackground(func() { space.Watch(watched, end) })
	result, err := run(watched, s, c)
	end()
	full := space.Ended(ctx)
	if err != nil {
		w.Workspace.EndProcesses()
		if _, reapErr := supervisor.Reap(w.Workspace.Token()); reapErr != nil {
			err = errors.Join(err, reapErr)
		}
		if full == "" || ctx.Err() != nil {
			return api.Outcome{}, fmt.Errorf("running %s: %w", w.In.Key.Name, err)
		}
	}
	if full != "" && ctx.Err() == nil { // first frees the disk, before anything else is written
		w.makeRoom(ctx, c.Dir)
	}
	crashpoint.At("step.ended")
	out := api.Outcome{
		ExitCode: result.ExitCode, Signal: result.Signal, TimedOut: result.TimedOut, Interrupted: result.Interrupted,
		StartError: result.StartError, ElapsedMs: (c.Spent + result.Elapsed).Milliseconds(), Log: w.Dir, Stop: w.Workspace.LoopStop(),
	}
	out.Warn(workspace.Unconnected(result.Refused))
	out.Warn(w.Workspace.RepeatedSince())
	if reason := w.Workspace.Bounded(result.Reached); out.OK() || out.TimedOut || out.Interrupted {
		out.Warn(reason)
	} else {
		out.Failure = reason
	}
	if full != "" && ctx.Err() == nil {
		out.Interrupted, out.Failure, w.Full = false, full, full
	}
	if out.Digest, err = workspace.Digest(c.Stdout); err != nil {
		return out, fmt.Errorf("reading the output: %w", err)
	}
	if !out.OK() {
		out.Tail = workspace.TailOf(w.Dir)
	}
	return out, nil
}

// Check runs check.command on the desk.
func (a *Runner) Check(ctx context.Context, input api.Check) (api.Checked, error) {
	return Do(ctx, a, input.Step, func(ctx context.Context, w *Work) (api.Checked, error) { return w.check(ctx, input) })
}

func (w *Work) check(ctx context.Context, input api.Check) (out api.Checked, err error) {
	var earlier []string
	if input.AsIs {
		earlier, out.Violates, err = w.checkable(ctx, input)
	} else {
		err = w.Ready(ctx, w.OnDesk)
	}
	if err != nil {
		return out, err
	}
	if out.Violates {
		out.Failure = "it did not run, because the change violates a policy"
		return out, nil
	}
	if out.Outcome, err = w.shell(ctx, w.Workspace.Desk.Dir, input.Command); err != nil {
		return out, err
	}
	out.Leftovers, err = leftovers(ctx, w.Workspace.Desk, input.Head, earlier)
	return out, err
}

// checkable prepares the check, unless the desk violates a policy as it is. earlier are the agent's own new files.
func (w *Work) checkable(ctx context.Context, input api.Check) (earlier []string, violates bool, err error) {
	earlier, ours, err := w.leftBefore(ctx)
	if err != nil {
		return nil, false, err
	}
	judged, _, _, err := commit.JudgeChange(ctx, w.Workspace, input.Ledger, input.Head, append(ours, input.Leftovers...))
	if err != nil || len(judged.Violations) > 0 {
		return nil, err == nil, err
	}
	return earlier, false, w.Ready(ctx)
}

// Guard runs guard.command in the judge.
func (a *Runner) Guard(ctx context.Context, input api.Guard) (api.Outcome, error) {
	return Do(ctx, a, input.Step, func(ctx context.Context, w *Work) (api.Outcome, error) { return w.Guard(ctx, input) })
}

// Guard runs the guard, as the activity of the same name does. It fails if fewer tests pass, or more fail, than on the
// unchanged code, as far as its output shows that.
func (w *Work) Guard(ctx context.Context, input api.Guard) (api.Outcome, error) {
	out, err := w.Judged(ctx, input.Command, input.Reports...)
	if err != nil || out.Interrupted {
		return out, err
	}
	printed, err := outputsOf(w.Dir)
	if err != nil {
		return out, err
	}
	report := testreport.Read(printed...)
	if !out.OK() {
		out.Failing = w.failing(report)
		return out, nil
	}
	out.Tested = report.Tested()
	if !report.Partial {
		out.Tests = report.Passed
		out.Failure = fewer(report.Passed, input.Tests)
	}
	if input.Known != nil {
		err = w.gone(&out, input.Known.Log, report)
	}
	if earlier := input.Known; earlier != nil && report.Failed > earlier.Failed {
		out.Failure, out.Failing = namesFailures(report), w.failing(report)
		err = errors.Join(err, w.digested(&out))
	}
	return out, err
}

// gone says which tests passed on the unchanged code, whose log is given, and are no longer there. It
// decides nothing: a test may be renamed. If another host has the log, nothing is known.
func (w *Work) gone(out *api.Outcome, log string, report testreport.Report) error {
	if log == "" || !out.OK() {
		return nil
	}
	printed, err := outputsOf(log)
	if err != nil {
		return fmt.Errorf("reading what the guard printed on the unchanged code: %w", err)
	}
	previous := testreport.Read(printed...)
	if previous.Format != "" && report.Format != previous.Format {
		out.Vanished = fmt.Sprintf("the tests are reported by %s, on the unchanged code by %s; whether the same ones ran is not known", cmp.Or(report.Format, "nothing that pawl reads"), previous.Format)
		return nil
	}
	if names := testreport.Gone(previous, report); len(names) > 0 {
		out.Vanished = "tests that passed on the unchanged code are no longer among those that pass: " + git.QuoteSome(names)
	}
	return nil
}

// namesFailures says that a command exits 0, although tests failed.
func namesFailures(r testreport.Report) string {
	text := "it exits 0, but its output names more failures than on the unchanged code"
	if len(r.Failing) > 0 {
		text += ": " + git.QuoteSome(r.IDs())
	}
	return text
}

// failing returns the tests that failed in a guard, nil if its output shows none.
func (w *Work) failing(r testreport.Report) *api.Failing {
	f := failing(r)
	if f != nil && slices.Contains(f.Units, goModule(w.Workspace.Judge.Dir)) {
		f.Units = append(f.Units, api.RootUnit)
	}
	return f
}

var moduleLine = lazyregexp.New(`(?m)^module\s+"?([^\s"]+)`)

// goModule returns the path of the Go module in a folder, "" if there is none.
func goModule(dir string) string {
	root, err := os.OpenRoot(dirfd.At(dir))
	if err != nil {
		return ""
	}
	defer root.Close()
	const file = "go.mod"
	st, err := root.Lstat(file)
	if err != nil || !st.Mode().IsRegular() || st.Size() > workspace.MaxOutput {
		return ""
	}
	text, err := root.ReadFile(file)
	if err != nil {
		return ""
	}
	found := moduleLine().FindSubmatch(text)
	if found == nil {
		return ""
	}
	return string(found[1])
}

func failing(r testreport.Report) *api.Failing {
	if r.Failed == 0 && !r.Broken {
		return nil
	}
	f := api.Failing{Broken: r.Broken, Signature: testreport.Signature(r)}
	f.Names = testreport.Compare(testreport.Report{}, r).Short(maxTests).Failing
	for _, t := range r.Failing {
		for _, unit := range []string{t.File, t.Package} {
			if unit != "" && !slices.Contains(f.Units, unit) {
				f.Units = append(f.Units, unit)
			}
		}
	}
	return &f
}

// fewer returns a text if fewer tests pass than before, else "".
func fewer(pass, expected int) string {
	if pass >= expected {
		return ""
	}
	return fmt.Sprintf("it exits 0, but fewer tests pass than on the unchanged code: %d instead of %d", pass, expected)
}

// intact makes a command that passed fail if it left tracked files of the commit changed. What it passed is not what is
// kept then.
func (w *Work) intact(ctx context.Context, out *api.Outcome) error {
	if !w.In.Intact || !out.OK() {
		return nil
	}
	altered, err := w.Workspace.Judge.Altered(ctx, w.In.Head)
	if err != nil || len(altered) == 0 {
		return err
	}
	named := slices.DeleteFunc(altered, func(name string) bool { return secretscan.Redact(name) != name })
	out.Altered = commit.Quoted(named[:min(len(named), git.MaxNamed)])
	out.Failure = "it exits 0, but changes files of the commit, so it judged other code: " + git.QuoteSome(named)
	digest := out.Failure + ".\nMake the change so that the command leaves these files as they are: with what it writes into them.\n"
	if err := durable.WriteFile(filepath.Join(w.Dir, digestFile), []byte(digest), 0o600); err != nil {
		return fmt.Errorf("writing the digest: %w", err)
	}
	return nil
}

// Judged runs a command in the judge, and keeps the reports that it writes there.
func (w *Work) Judged(ctx context.Context, command string, reports ...string) (api.Outcome, error) {
	if w.In.Scratch && !w.Workspace.Layered() {
		return api.Outcome{Unlayered: true}, nil
	}
	if err := w.Ready(ctx, w.inJudge); err != nil {
		return api.Outcome{}, err
	}
	previous, err := forgetReports(w.Workspace.Judge.Dir, reports, func() (map[string]bool, error) { return w.tracked(ctx) })
	if err != nil {
		return api.Outcome{}, err
	}
	out, err := w.shell(ctx, w.Workspace.Judge.Dir, command)
	if err == nil {
		err = keepReports(w.Workspace.Judge.Dir, reports, previous, filepath.Join(w.Dir, reportsFile))
	}
	if err == nil {
		err = w.intact(ctx, &out)
	}
	if err == nil && !out.OK() && !out.Interrupted && len(out.Altered) == 0 {
		err = w.digested(&out)
	}
	if err == nil {
		out.Leftovers, err = w.leftUnchanged(ctx)
	}
	return out, err
}

// digested replaces the last lines of the output, which may be about other tests, by the messages of failing ones.
func (w *Work) digested(out *api.Outcome) error {
	printed, err := outputsOf(w.Dir)
	if err != nil {
		return err
	}
	r := testreport.Read(printed...)
	if r.Failed == 0 {
		return nil
	}
	out.Tail = secretscan.Redact(testreport.Digest(r, ofCommand, printed...))
	if err := durable.WriteFile(filepath.Join(w.Dir, digestFile), []byte(testreport.Digest(r, maxDigest, printed...)), 0o600); err != nil {
		return fmt.Errorf("writing the digest: %w", err)
	}
	return nil
}

// Verify runs verify.command in the judge and reads the metric.
func (a *Runner) Verify(ctx context.Context, input api.Verify) (api.Measured, error) {
	return Do(ctx, a, input.Step, func(ctx context.Context, w *Work) (api.Measured, error) { return w.Verify(ctx, input) })
}

// measure runs the command that measures. If it has to be alone, it waits until no other loop of this host measures, and
// none does before it is done, or this process dies. An interruption ends the wait. Waiting costs no active time, because
// a step's time counts from the start of its command.
func (w *Work) measure(ctx context.Context, input api.Verify) (api.Outcome, error) {
	if input.Alone {
		w.Live.Store(&api.Live{WaitsFor: "another loop's measurement on this host"})
		slot, err := durable.Lock(ctx, w.Workspace.Machine.Home.JudgeSlot())
		w.Live.Store(&api.Live{})
		switch {
		case err == nil:
			defer slot.Close()
		case ctx.Err() != nil:
			return api.Outcome{Interrupted: true}, nil
		default:
			return api.Outcome{}, fmt.Errorf("waiting for this host's slot for measurements: %w", err)
		}
	}
	return w.shell(ctx, w.Workspace.Judge.Dir, input.Command, metric.MetricWord, input.Pattern)
}

// Verify runs verify.command in the judge and reads the metric, as the activity of the same name does.
func (w *Work) Verify(ctx context.Context, input api.Verify) (out api.Measured, err error) {
	if input.Scratch && !w.Workspace.Layered() {
		return api.Measured{Outcome: api.Outcome{Unlayered: true}}, nil
	}
	if err := w.Ready(ctx, w.inJudge); err != nil {
		return out, err
	}
	if out.Outcome, err = w.measure(ctx, input); err != nil {
		return out, err
	}
	if err := w.intact(ctx, &out.Outcome); err != nil || !out.OK() {
		return out, err
	}
	if out.Leftovers, err = w.leftUnchanged(ctx); err != nil {
		return out, err
	}
	err = w.readMetric(input, &out)
	return out, err
}

// readMetric reads the metric, and the further ones, from what the step's command has printed.
func (w *Work) readMetric(input api.Verify, out *api.Measured) (err error) {
	var pattern *regexp.Regexp
	if input.Pattern != "" {
		if pattern, err = regexp.Compile(input.Pattern); err != nil {
			return fmt.Errorf("verify.pattern: %w", err)
		}
	}
	printed, err := w.output()
	if err != nil {
		return err
	}
	reading, err := metric.Read(printed, metric.Search{Pattern: pattern, Further: input.Names, Form: input.Form, Unchanged: input.Unchanged})
	if err == nil {
		var value metric.Decimal
		value, err = input.Form.In("", reading)
		out.Metric, out.Form = &value, input.Form.With("", reading)
	}
	if noNumber, ok := errors.AsType[*metric.NoNumber](err); ok {
		out.Metric, out.NoNumber = nil, secretscan.Redact(noNumber.Error())
		return nil
	}
	if err != nil {
		return err
	}
	if input.Form == nil || !input.Form.Guessed { // once is enough
		out.Warn(reading.Warning())
	}
	named := metric.Named(printed, input.Form)
	for _, name := range input.Names {
		further, ok := named[name]
		if !ok {
			continue
		}
		if input.Form == nil && further.Varied > 0 {
			out.Warn(further.Warning())
		}
		if value, err := input.Form.In(name, further); err == nil {
			if out.Metrics == nil {
				out.Metrics = map[string]metric.Decimal{}
			}
			out.Metrics[name], out.Form = value, out.Form.With(name, further)
		}
	}
	return nil
}

// output returns what the step's command has printed.
func (w *Work) output() (metric.Output, error) {
	name := filepath.Join(w.Dir, "stdout")
	stdout, err := workspace.ReadFile(name, workspace.MaxOutput)
	if err != nil {
		return metric.Output{}, fmt.Errorf("reading the output: %w", err)
	}
	stderr, err := workspace.ReadFile(filepath.Join(w.Dir, "stderr"), workspace.MaxOutput)
	if err != nil {
		return metric.Output{}, fmt.Errorf("reading the errors: %w", err)
	}
	head, tail, lost := supervisor.Kept(stdout)
	if lost == 0 {
		return metric.Output{Stdout: stdout, Stderr: stderr}, nil
	}
	found, err := workspace.ReadFile(name+supervisor.FoundSuffix, workspace.MaxOutput)
	if err != nil {
		return metric.Output{}, fmt.Errorf("reading what was found in the output: %w", err)
	}
	return metric.Output{Stdout: head, Tail: tail, Found: found, Lost: lost, Stderr: stderr}, nil
}

// PutBack brings the desk back to where an interrupted agent started, so that people see that state during a pause. The
// step restores it again when it is repeated, also if this fails.
func (w *Work) PutBack(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), putBackWithin)
	defer cancel()
	_ = w.OnDesk(ctx)
}

// makeRoom removes what a command filled the disk with.
func (w *Work) makeRoom(ctx context.Context, dir string) {
	if dir == w.Workspace.Desk.Dir {
		_ = remove.All(w.Workspace.Exchange()) // the agent can write there too, and it would stay until the loop ends
		w.PutBack(ctx)
		return
	}
	if dir == w.Workspace.Judge.Dir {
		ctx, cancel := context.WithTimeout(ctx, putBackWithin)
		defer cancel()
		_ = w.inJudge(ctx)
	}
}

// putBackWithin is how long a person who interrupts an agent may wait for the desk.
const putBackWithin = 10 * time.Second
