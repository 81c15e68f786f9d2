package activities

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"golang.org/x/sync/errgroup"

	"pawl/internal/act"
	"pawl/internal/crash"
	"pawl/internal/durable"
	"pawl/internal/evidence"
	"pawl/internal/fault"
	"pawl/internal/govern"
	"pawl/internal/loop"
	"pawl/internal/proc"
	"pawl/internal/spec"
	"pawl/internal/store"
	"pawl/internal/workspace"
)

// running is a step at work in this worker, whether or not an attempt of the activity waits.
type running struct {
	done   chan struct{}
	waits  int // attempts of the activity that wait for it, under steps.mu
	cancel context.CancelFunc
	out    any // the step's result, once it is done
	err    error

	live  atomic.Pointer[act.Live]  // what its agent has told
	since atomic.Pointer[time.Time] // when its command was started; back-dated by what it had spent before
}

// spent is what heartbeats tell of the step.
func (r *running) spent() act.Live {
	var live act.Live
	if told := r.live.Load(); told != nil {
		live = *told
	}
	if since := r.since.Load(); since != nil {
		live.Usage.ActiveMs = time.Since(*since).Milliseconds()
	}
	return live
}

// joinWithin is how long a step goes on that no attempt waits for: when the service has given
// an attempt up (an outage, a laptop asleep), the next one joins it; when the loop was
// terminated, none does.
const joinWithin = time.Minute

// result is what a kind of step returns: an outcome and more.
type result[O any] interface {
	*O
	Core() *act.Outcome
}

// step runs a step and returns what came of it. Its result is on disk before it is reported, so a
// retry returns it, or joins a step that still runs here.
func step[O any, P result[O]](ctx context.Context, a *Activities, in act.Step, do func(context.Context, *work) (O, error)) (O, error) {
	var none O
	ws, err := a.workspace(ctx, in.Ref)
	if err != nil {
		return none, err
	}
	id := in.Ref + "/" + stepName(in.Key)
	by := trace.SpanContextFromContext(ctx) // what the step tells the ledger is recorded by this activity
	r := a.steps.joinOrStart(id, func(ctx context.Context, r *running) (any, error) {
		return once[O, P](trace.ContextWithSpanContext(ctx, by), a.work(ws, in, r), do)
	})
	done := func() (O, error) {
		<-r.done
		a.steps.forget(id, r)
		out, _ := r.out.(O)
		return out, r.err
	}
	heartOf(ctx).tell(r.spent)
	select {
	case <-r.done:
		return done()
	case <-activity.GetWorkerStopChannel(ctx):
		r.cancel()
		if out, err := done(); err == nil && !P(&out).Core().Interrupted {
			return out, nil // it was just done
		}
		return none, stopping()
	case <-ctx.Done():
		var cancelled *temporal.CanceledError
		if !errors.As(context.Cause(ctx), &cancelled) {
			a.steps.leave(id, r)
			return none, ctx.Err()
		}
		r.cancel()
		return done()
	}
}

// Progress says what a running step has spent. A step that isn't here has spent what its record
// says.
func (a *Activities) Progress(ctx context.Context, in act.Progress) (act.Spent, error) {
	a.steps.mu.Lock()
	_, here := a.steps.running[in.Ref+"/"+stepName(in.Key)]
	a.steps.mu.Unlock()
	spent, err := proc.ReadProgress(filepath.Join(a.stepDir(in.Ref, in.Key), "progress"))
	if err != nil {
		return act.Spent{}, err
	}
	return act.Spent{Running: here, Ms: spent.Milliseconds()}, nil
}

// steps are the steps at work in this worker, by loop and folder.
type steps struct {
	mu       sync.Mutex
	running  map[string]*running
	orphaned chan struct{} // has room for one: there is something to be looked at
}

// joinOrStart returns the step that runs under id, or starts it.
func (s *steps) joinOrStart(id string, run func(context.Context, *running) (any, error)) *running {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.running[id]; r != nil {
		r.waits++
		return r
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{done: make(chan struct{}), waits: 1, cancel: cancel}
	s.running[id] = r
	go func() {
		defer close(r.done)
		defer cancel()
		r.out, r.err = run(ctx, r)
	}()
	return r
}

func (s *steps) forget(id string, r *running) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running[id] == r {
		delete(s.running, id)
	}
}

// end ends a step and waits for that.
func (s *steps) end(id string, r *running) {
	r.cancel()
	<-r.done
	s.forget(id, r)
}

// leave stops waiting for a step. If nobody else comes to wait for it, it is ended.
func (s *steps) leave(id string, r *running) {
	s.mu.Lock()
	r.waits--
	s.mu.Unlock()
	select {
	case s.orphaned <- struct{}{}: // the loop may be over
	default:
	}
	time.AfterFunc(joinWithin, func() {
		s.mu.Lock()
		alone := s.running[id] == r && r.waits == 0
		s.mu.Unlock()
		if alone {
			s.end(id, r)
		}
	})
}

// endAll ends the steps of a loop.
func (s *steps) endAll(ref string) {
	s.mu.Lock()
	all := maps.Clone(s.running)
	s.mu.Unlock()
	for id, r := range all {
		if strings.HasPrefix(id, ref+"/") {
			s.end(id, r)
		}
	}
}

// Orphaned says when the service has refused to hear of a step any more.
func (a *Activities) Orphaned() <-chan struct{} { return a.steps.orphaned }

// work is a step being done.
type work struct {
	*running
	a   *Activities
	ws  *loopWorkspace
	in  act.Step
	dir string // where its output and its result are kept
}

func (a *Activities) work(ws *loopWorkspace, in act.Step, r *running) *work {
	return &work{running: r, a: a, ws: ws, in: in, dir: a.stepDir(in.Ref, in.Key)}
}

// once does a step, unless its result is on disk.
func once[O any, P result[O]](ctx context.Context, w *work, do func(context.Context, *work) (O, error)) (O, error) {
	path := filepath.Join(w.dir, "result.json")
	var out O
	switch err := durable.ReadJSON(path, &out); {
	case err == nil:
		return out, nil
	case !errors.Is(err, fs.ErrNotExist):
		w.ws.machine.Logger.Warn("the result of a step can't be read: the step runs again", "loop", w.ws.Loop, "error", err)
	}
	out, err := do(ctx, w)
	if err != nil || P(&out).Core().Interrupted { // it will run again, so this is not its result
		return out, err
	}
	if err := durable.WriteJSON(path, out); err != nil {
		return out, err
	}
	crash.At("step.recorded")
	return out, nil
}

// ready gets everything ready for the step's command. A supervisor takes as long to start as a large
// program does: meanwhile the rest is done.
func (w *work) ready(ctx context.Context, rest ...func(context.Context) error) error {
	crash.At("step.before")
	if err := os.MkdirAll(w.dir, 0o700); err != nil {
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

// onDesk brings the desk to where the step starts from. From then on it is the step's.
func (w *work) onDesk(ctx context.Context) error {
	defer w.ws.leave(w.ws.desk)
	return w.ws.restore(ctx, w.ws.desk, w.in.Head)
}

// inJudge brings the judge there.
func (w *work) inJudge(ctx context.Context) error {
	defer w.ws.leave(w.ws.judge)
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
	c.Sandbox = w.ws.confine(c, inherited)
	if c.Spent, err = proc.ReadProgress(c.Progress); err != nil {
		return act.Outcome{}, fmt.Errorf("reading what the step has spent: %w", err)
	}
	s, err := w.ws.supervise()
	if err != nil {
		return act.Outcome{}, err
	}
	crash.At("step.starting")
	since := time.Now().Add(-c.Spent)
	w.since.Store(&since)
	result, err := by(ctx, s, c)
	if err != nil {
		w.ws.rest()
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
	if out.Digest, err = digest(c.Stdout); err != nil {
		return out, fmt.Errorf("reading the output: %w", err)
	}
	if !out.OK() {
		out.Tail = tailOf(w.dir)
	}
	return out, nil
}

// Check runs check.command on the desk.
func (a *Activities) Check(ctx context.Context, in act.Check) (act.Checked, error) {
	return step(ctx, a, in.Step, func(ctx context.Context, w *work) (act.Checked, error) { return w.check(ctx, in) })
}

func (w *work) check(ctx context.Context, in act.Check) (out act.Checked, err error) {
	if in.AsIs {
		judged, _, err := w.ws.judgeChange(ctx, in.Ledger, in.Head)
		if err != nil {
			return out, err
		}
		if len(judged.Violations) > 0 {
			out.Violates, out.Failure = true, "not run, the change violates a policy"
			return out, os.MkdirAll(w.dir, 0o700)
		}
		err = w.ready(ctx)
	} else {
		err = w.ready(ctx, w.onDesk)
	}
	if err == nil {
		out.Outcome, err = w.shell(ctx, w.ws.desk.Dir, in.Command)
	}
	return out, err
}

// Guard runs guard.command in the judge.
func (a *Activities) Guard(ctx context.Context, in act.Guard) (act.Outcome, error) {
	return step(ctx, a, in.Step, func(ctx context.Context, w *work) (act.Outcome, error) { return w.judged(ctx, in.Command) })
}

// judged runs a command in the judge.
func (w *work) judged(ctx context.Context, command string) (act.Outcome, error) {
	if err := w.ready(ctx, w.inJudge); err != nil {
		return act.Outcome{}, err
	}
	return w.shell(ctx, w.ws.judge.Dir, command)
}

// Verify runs verify.command in the judge and reads the metric.
func (a *Activities) Verify(ctx context.Context, in act.Verify) (act.Measured, error) {
	return step(ctx, a, in.Step, func(ctx context.Context, w *work) (act.Measured, error) { return w.verify(ctx, in) })
}

func (w *work) verify(ctx context.Context, in act.Verify) (out act.Measured, err error) {
	if out.Outcome, err = w.judged(ctx, in.Command); err != nil || !out.OK() {
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
	reading, err := evidence.Extract(printed, pattern)
	var none *evidence.NoNumber
	if errors.As(err, &none) {
		out.NoNumber = none.Error()
		return out, nil
	}
	if err == nil {
		out.Metric, out.Warning = &reading.Value, reading.Warning()
	}
	return out, err
}

// Test runs test.command in the judge and reads which tests failed.
func (a *Activities) Test(ctx context.Context, in act.Test) (act.Tested, error) {
	return step(ctx, a, in.Step, func(ctx context.Context, w *work) (act.Tested, error) { return w.test(ctx, in) })
}

func (w *work) test(ctx context.Context, in act.Test) (out act.Tested, err error) {
	if out.Outcome, err = w.judged(ctx, in.Command); err == nil && !out.Interrupted {
		out.Tests, err = readTests(out.OK(), in.Before, w.dir)
	}
	return out, err
}

// CallAgent asks an agent, on the desk.
func (a *Activities) CallAgent(ctx context.Context, in act.Call) (act.Called, error) {
	return step(ctx, a, in.Step, func(ctx context.Context, w *work) (act.Called, error) { return w.call(ctx, in) })
}

func (w *work) call(ctx context.Context, in act.Call) (out act.Called, err error) {
	if err := w.ws.permit(ctx, in); err != nil {
		return out, err
	}
	if err := w.ready(ctx, w.onDesk, func(ctx context.Context) (err error) {
		out.Ledger, err = w.tell(ctx, in)
		return err
	}); err != nil {
		return out, err
	}
	command, err := w.command(w.ws.desk.Dir)
	if err != nil {
		return out, err
	}
	tell := func(u loop.Usage, tool string) { w.live.Store(&act.Live{Usage: u, Tool: loop.Clip(tool, 80)}) }
	talk, err := w.ws.brief(ctx, in, out.Ledger, &command, tell)
	if err != nil {
		return out, err
	}
	if out.Outcome, err = w.run(ctx, command, talk.run); err != nil {
		return out, err
	}
	printed := talk.take(&out, command.Stdout, in)
	if in.Role == spec.RolePlanner && out.OK() {
		if out.Plan, err = w.ws.planOf(printed, w.dir); err != nil {
			return out, err
		}
	}
	if err := w.ws.throwAway(ctx, in, &out); err != nil {
		return out, err
	}
	if out.Interrupted {
		w.putBack(ctx)
	}
	return out, nil
}

// tell appends what happened before the call, and returns the ledger's head, "" where there was nothing.
func (w *work) tell(ctx context.Context, in act.Call) (string, error) {
	if len(in.Events) == 0 {
		return "", nil
	}
	out, err := w.ws.append(ctx, act.Entry{Ref: in.Ref, Ledger: in.Ledger, Events: in.Events}, false, store.Tx{}, "")
	crash.At("step.told")
	return out.Ledger, err
}

// permit is the one gateway that every call of an agent passes (E1). What is not permitted is not
// run, nor is anything prepared for it.
func (ws *loopWorkspace) permit(ctx context.Context, in act.Call) error {
	if in.Ledger == "" { // the plan is made before the first entry
		if err := ws.rebind(); err != nil {
			return err
		}
	}
	contract, err := ws.ledger.Contract(ctx, in.Ledger)
	if err != nil {
		return err
	}
	var denied *fault.Error
	if err := govern.PermitPhase(contract.Spec, in.Role, in.Phase); errors.As(err, &denied) {
		return refuse(denied)
	}
	return nil
}

// putBackWithin bounds how long whoever interrupts an agent waits for the desk.
const putBackWithin = 10 * time.Second

// putBack brings the desk back to where an interrupted agent started from, so that whoever looks at
// it during a pause finds that. The step restores it again when it is repeated, also where this
// fails.
func (w *work) putBack(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), putBackWithin)
	defer cancel()
	_ = w.onDesk(ctx)
}

// maxOutput bounds what is read of an output; the supervisor keeps no more than that anyway.
const maxOutput = 2 * proc.DefaultOutputLimit

// stepName is a step's folder: sorted by name, the steps are in the order in which they ran
// within an iteration's attempts.
func stepName(k act.Key) string {
	name := fmt.Sprintf("%04d.%d-%s", k.Iteration, k.Attempt, k.Name)
	if k.Repeat > 0 {
		name += fmt.Sprintf(".r%d", k.Repeat)
	}
	return name
}

func (m *machine) stepDir(ref string, k act.Key) string {
	return filepath.Join(workspace.Steps(m.Home, ref), stepName(k))
}

// tailLength is how much of an output enters history, for people.
const tailLength = 600

// tailOf returns the end of what a command said: of its errors, else of its output.
func tailOf(dir string) string {
	for _, name := range []string{"stderr", "stdout"} {
		b, err := readTail(filepath.Join(dir, name), tailLength)
		text := strings.TrimSpace(strings.ToValidUTF8(string(b), "?"))
		if err == nil && text != "" {
			return text
		}
	}
	return ""
}

// digest returns the SHA-256 of a file; a command that could not be started has said nothing.
func digest(path string) (string, error) {
	sum := sha256.New()
	f, err := os.Open(path)
	if err == nil {
		defer f.Close()
		_, err = io.Copy(sum, f)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

func readFile(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil // a command that could not be started has said nothing
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, limit))
}

func readTail(path string, n int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if st.Size() > n {
		if _, err := f.Seek(-n, io.SeekEnd); err != nil {
			return nil, err
		}
	}
	return io.ReadAll(io.LimitReader(f, n))
}
