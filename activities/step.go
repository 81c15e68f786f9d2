package activities

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"pawl/internal/act"
	"pawl/internal/crash"
	"pawl/internal/durable"
	"pawl/internal/evidence"
	"pawl/internal/held"
	"pawl/internal/proc"
	"pawl/internal/secret"
	"pawl/internal/testreport"
)

// work is a step being done.
type work struct {
	*running
	ws  *loopWorkspace
	in  act.Step
	dir string // where its output and its result are kept

	full string // why its command was ended for want of room
	// agents are the programs of the table that an agent's command is or starts, none where the step runs no agent.
	agents []string
}

func newWork(ws *loopWorkspace, in act.Step, r *running) *work {
	return &work{running: r, ws: ws, in: in, dir: ws.machine.stepDir(in.Ref, in.Key)}
}

// ready gets everything ready for the step's command. A supervisor takes as long to start as a large
// program does: meanwhile the rest is done.
func (w *work) ready(ctx context.Context, rest ...func(context.Context) error) error {
	crash.At("step.before")
	if err := os.MkdirAll(held.At(w.dir), 0o700); err != nil {
		return fmt.Errorf("making the step's folder: %w", err)
	}
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { _, err := w.ws.supervise(); return err })
	for _, do := range rest {
		g.Go(func() error { return do(gctx) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	crash.At("step.prepared")
	return nil
}

// surroundings are those of the attempt: its agents have one home and one /tmp, and so has each judgement.
func (w *work) surroundings() surroundings {
	k := w.in.Key
	// What broken code leaves in caches is thrown away, and what code leaves that stays on the branch is not.
	if k.Iteration == 0 && k.Name != canaryStep || w.in.At != "" && !w.in.Trial {
		return unchanged
	}
	at := fmt.Sprintf("%d.%d.%d %s", k.Iteration, k.Attempt, k.Repeat, w.in.Head)
	if w.in.Trial {
		at = ofTrial + at
	}
	return surroundings(at)
}

// onDesk brings the desk to where the step starts from. From then on it is the step's.
func (w *work) onDesk(ctx context.Context) error {
	defer w.ws.leave(w.ws.desk)
	return w.ws.restore(ctx, w.ws.desk, w.in.Head)
}

// inJudge brings the judge there.
func (w *work) inJudge(ctx context.Context) error {
	defer w.ws.leave(w.ws.judge)
	if w.in.Clean && len(w.ws.Keep) > 0 {
		return w.ws.restoreClean(ctx, w.ws.judge, w.in.Head)
	}
	return w.ws.restore(ctx, w.ws.judge, w.in.Head)
}

// command is a command of the step in a tree, under the step's limit.
func (w *work) command(dir string, argv ...string) (proc.Command, error) {
	inherited, err := w.ws.environment()
	return proc.Command{
		Argv: argv, Dir: dir, Env: slices.Clone(inherited),
		Stdout: filepath.Join(w.dir, "stdout"), Stderr: filepath.Join(w.dir, "stderr"),
		Limit: time.Duration(w.in.LimitMs) * time.Millisecond, Progress: filepath.Join(w.dir, "progress"),
	}, err
}

// shell runs a command of the spec in a tree.
func (w *work) shell(ctx context.Context, dir, command string) (act.Outcome, error) {
	if err := w.ws.unaltered(ctx); err != nil {
		return act.Outcome{}, err
	}
	c, err := w.command(dir, "sh", "-c", command)
	if err != nil {
		return act.Outcome{}, err
	}
	return w.run(ctx, c, func(ctx context.Context, s *proc.Supervisor, c proc.Command) (proc.Result, error) {
		return s.Run(ctx, c)
	})
}

// run has the loop's supervisor run the command.
func (w *work) run(ctx context.Context, c proc.Command, by func(context.Context, *proc.Supervisor, proc.Command) (proc.Result, error)) (act.Outcome, error) {
	inherited, err := w.ws.environment()
	if err != nil {
		return act.Outcome{}, err
	}
	if err := w.ws.confine(ctx, &c, inherited, w.surroundings(), w.agents); err != nil {
		return act.Outcome{}, err
	}
	if c.Spent, err = proc.ReadProgress(c.Progress); err != nil {
		return act.Outcome{}, fmt.Errorf("reading what the step has spent: %w", err)
	}
	s, err := w.ws.supervise()
	if err != nil {
		return act.Outcome{}, err
	}
	crash.At("step.starting")
	w.since.Store(new(time.Now().Add(-c.Spent)))
	watched, end := context.WithCancel(ctx)
	space := w.ws.roomOf(c.Dir, s)
	go space.watch(watched, end)
	result, err := by(watched, s, c)
	end()
	if err != nil {
		w.ws.endProcesses()
		if _, reapErr := proc.Reap(w.ws.Token()); reapErr != nil {
			err = errors.Join(err, reapErr)
		}
		return act.Outcome{}, fmt.Errorf("running %s: %w", w.in.Key.Name, err)
	}
	crash.At("step.ended")
	out := act.Outcome{
		ExitCode: result.ExitCode, Signal: result.Signal, TimedOut: result.TimedOut, Interrupted: result.Interrupted,
		StartError: result.StartError, ElapsedMs: (c.Spent + result.Elapsed).Milliseconds(), Log: w.dir, Stop: w.ws.loopStop(),
	}
	out.Warn(unconnected(result.Refused))
	out.Warn(w.ws.repeatedSince())
	if why := w.ws.bounded(result.Reached); out.OK() || out.TimedOut || out.Interrupted {
		out.Warn(why)
	} else {
		out.Failure = why
	}
	if why := space.exceeded(); why != "" && ctx.Err() == nil {
		out.Interrupted, out.Failure, w.full = false, why, why
		if c.Dir == w.ws.desk.Dir { // and its room is free again
			w.putBack(ctx)
		}
	}
	if out.Digest, err = digest(c.Stdout); err != nil {
		return out, fmt.Errorf("reading the output: %w", err)
	}
	if !out.OK() {
		out.Tail = tailOf(w.dir)
	}
	return out, nil
}

// Check runs check.command on the desk.
func (a *Runner) Check(ctx context.Context, in act.Check) (act.Checked, error) {
	return step(ctx, a, in.Step, func(ctx context.Context, w *work) (act.Checked, error) { return w.check(ctx, in) })
}

func (w *work) check(ctx context.Context, in act.Check) (out act.Checked, err error) {
	var before []string
	if in.AsIs {
		before, out.Violates, err = w.checkable(ctx, in)
	} else {
		err = w.ready(ctx, w.onDesk)
	}
	if err != nil {
		return out, err
	}
	if out.Violates {
		out.Failure = "not run, the change violates a policy"
		return out, nil
	}
	if out.Outcome, err = w.shell(ctx, w.ws.desk.Dir, in.Command); err != nil {
		return out, err
	}
	out.Leftovers, err = leftovers(ctx, w.ws.desk, in.Head, before)
	return out, err
}

// checkable has the policies judge the desk as it is, and gets everything ready where that violates none. before are the
// agent's own new files.
func (w *work) checkable(ctx context.Context, in act.Check) (before []string, violates bool, err error) {
	before, own, err := w.leftBefore(ctx)
	if err != nil {
		return nil, false, err
	}
	judged, _, _, err := w.ws.judgeChange(ctx, in.Ledger, in.Head, append(own, in.Leftovers...))
	if err != nil || len(judged.Violations) > 0 {
		return nil, err == nil, err
	}
	return before, false, w.ready(ctx)
}

// Guard runs guard.command in the judge.
func (a *Runner) Guard(ctx context.Context, in act.Guard) (act.Outcome, error) {
	return step(ctx, a, in.Step, func(ctx context.Context, w *work) (act.Outcome, error) { return w.guard(ctx, in) })
}

// guard counts the tests that pass, as far as the output tells: one that guards by fewer than on the unchanged
// code has failed.
func (w *work) guard(ctx context.Context, in act.Guard) (act.Outcome, error) {
	out, err := w.judged(ctx, in.Command, in.Reports...)
	if err != nil || !out.OK() {
		return out, err
	}
	printed, err := outputsOf(w.dir)
	if err != nil {
		return out, err
	}
	if r := testreport.Read(printed...); !r.Partial {
		out.Tests = r.Passed
		out.Failure = fewer(r.Passed, in.Tests)
	}
	return out, nil
}

// fewer says that fewer tests pass than did, "" where as many do.
func fewer(pass, did int) string {
	if pass >= did {
		return ""
	}
	return fmt.Sprintf("it exits 0, but only %d of the %s pass that passed on the unchanged code", pass, evidence.Counted(did, "test"))
}

// judged runs a command in the judge, and keeps the reports that it writes there.
func (w *work) judged(ctx context.Context, command string, reports ...string) (act.Outcome, error) {
	if err := w.ready(ctx, w.inJudge); err != nil {
		return act.Outcome{}, err
	}
	if err := forgetReports(w.ws.judge.Dir, reports); err != nil {
		return act.Outcome{}, err
	}
	out, err := w.shell(ctx, w.ws.judge.Dir, command)
	if err == nil {
		err = keepReports(w.ws.judge.Dir, reports, filepath.Join(w.dir, reportsFile))
	}
	if err == nil && !out.OK() && !out.Interrupted {
		err = w.digested(&out)
	}
	if err == nil {
		out.Leftovers, err = w.leftUnchanged(ctx)
	}
	return out, err
}

// digested puts what failing tests say in the place of the last lines, which may be events or XML, or about other tests.
func (w *work) digested(out *act.Outcome) error {
	printed, err := outputsOf(w.dir)
	if err != nil {
		return err
	}
	r := testreport.Read(printed...)
	if r.Failed == 0 {
		return nil
	}
	out.Tail = secret.Redact(testreport.Digest(r, 2*tailLength, printed...))
	if err := durable.WriteFile(filepath.Join(w.dir, digestFile), []byte(testreport.Digest(r, maxDigest, printed...)), 0o600); err != nil {
		return fmt.Errorf("writing the digest: %w", err)
	}
	return nil
}

// Verify runs verify.command in the judge and reads the metric.
func (a *Runner) Verify(ctx context.Context, in act.Verify) (act.Measured, error) {
	return step(ctx, a, in.Step, func(ctx context.Context, w *work) (act.Measured, error) { return w.verify(ctx, in) })
}

// measure runs the command that measures, and nothing of the kind beside it where it is to be alone.
func (w *work) measure(ctx context.Context, in act.Verify) (act.Outcome, error) {
	if in.Alone {
		slot, err := w.alone(ctx)
		switch {
		case err == nil:
			defer slot.Close()
		case ctx.Err() != nil:
			return act.Outcome{Interrupted: true}, nil
		default:
			return act.Outcome{}, err
		}
	}
	return w.shell(ctx, w.ws.judge.Dir, in.Command)
}

func (w *work) verify(ctx context.Context, in act.Verify) (out act.Measured, err error) {
	if err := w.ready(ctx, w.inJudge); err != nil {
		return out, err
	}
	if out.Outcome, err = w.measure(ctx, in); err != nil || !out.OK() {
		return out, err
	}
	if out.Leftovers, err = w.leftUnchanged(ctx); err != nil {
		return out, err
	}
	var pattern *regexp.Regexp
	if in.Pattern != "" {
		if pattern, err = regexp.Compile(in.Pattern); err != nil {
			return out, fmt.Errorf("verify.pattern: %w", err)
		}
	}
	printed, err := readFile(filepath.Join(w.dir, "stdout"), maxOutput)
	if err != nil {
		return out, fmt.Errorf("reading the output: %w", err)
	}
	if len(in.Names) > 0 {
		out.Metrics = evidence.Named(printed)
		maps.DeleteFunc(out.Metrics, func(name string, _ evidence.Decimal) bool { return !slices.Contains(in.Names, name) })
	}
	reading, err := evidence.Extract(printed, pattern)
	if none, ok := errors.AsType[*evidence.NoNumber](err); ok {
		out.NoNumber = none.Error()
		return out, nil
	}
	if err == nil {
		out.Metric = &reading.Value
		out.Warn(reading.Warning())
	}
	return out, err
}

// putBack brings the desk back to where an interrupted agent started, so that people see that state during a pause. The
// step restores it again when it is repeated, also if this fails.
func (w *work) putBack(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), putBackWithin)
	defer cancel()
	_ = w.onDesk(ctx)
}

// putBackWithin bounds how long a person who interrupts an agent waits for the desk.
const putBackWithin = 10 * time.Second
