package activities

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
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
	waits  int // attempts of the activity that wait for it, under Activities.mu
	cancel context.CancelFunc
	out    act.Stepped
	err    error

	live  atomic.Pointer[act.Live]  // what its agent has told
	since atomic.Pointer[time.Time] // when its command was started; back-dated by what it had spent before
}

// beat is what a heartbeat tells of the step.
func (r *running) beat() act.Live {
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

// Step runs one thing in one tree under one limit and returns what came of it. Its result is on
// disk before it is reported, so a retry returns it, or joins a step that still runs here.
func (a *Activities) Step(ctx context.Context, in act.Step) (act.Stepped, error) {
	p, err := a.place(ctx, in.Ref)
	if err != nil {
		return act.Stepped{}, err
	}
	id := in.Ref + "/" + stepName(in.Key)
	by := trace.SpanContextFromContext(ctx) // what the step tells the ledger is recorded by this activity
	r := a.joinOrStart(id, func(ctx context.Context, r *running) (act.Stepped, error) {
		return a.run(trace.ContextWithSpanContext(ctx, by), p, in, r)
	})
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-r.done:
			a.forget(id, r)
			return r.out, r.err
		case <-tick.C:
			activity.RecordHeartbeat(ctx, r.beat())
		case <-activity.GetWorkerStopChannel(ctx):
			r.cancel()
			<-r.done
			a.forget(id, r)
			if r.err == nil && !r.out.Interrupted {
				return r.out, nil // it was just done
			}
			return act.Stepped{}, stopping()
		case <-ctx.Done():
			var cancelled *temporal.CanceledError
			if !errors.As(context.Cause(ctx), &cancelled) {
				a.leave(id, r)
				select {
				case a.orphaned <- struct{}{}: // the loop may be over
				default:
				}
				return act.Stepped{}, ctx.Err()
			}
			r.cancel()
			<-r.done
			a.forget(id, r)
			return r.out, r.err
		}
	}
}

// Check says what a running step has spent. A step that isn't here has spent what its record
// says.
func (a *Activities) Check(ctx context.Context, in act.Check) (act.Checked, error) {
	a.mu.Lock()
	_, here := a.steps[in.Ref+"/"+stepName(in.Key)]
	a.mu.Unlock()
	spent, err := proc.ReadProgress(filepath.Join(a.stepDir(in.Ref, in.Key), "progress"))
	if err != nil {
		return act.Checked{}, err
	}
	return act.Checked{Running: here, SpentMs: spent.Milliseconds()}, nil
}

func (a *Activities) joinOrStart(id string, run func(context.Context, *running) (act.Stepped, error)) *running {
	a.mu.Lock()
	defer a.mu.Unlock()
	if r := a.steps[id]; r != nil {
		r.waits++
		return r
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{done: make(chan struct{}), waits: 1, cancel: cancel}
	a.steps[id] = r
	go func() {
		defer close(r.done)
		defer cancel()
		r.out, r.err = run(ctx, r)
	}()
	return r
}

func (a *Activities) forget(id string, r *running) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.steps[id] == r {
		delete(a.steps, id)
	}
}

// leave stops waiting for a step. If nobody else comes to wait for it, it is ended.
func (a *Activities) leave(id string, r *running) {
	a.mu.Lock()
	r.waits--
	a.mu.Unlock()
	time.AfterFunc(joinWithin, func() {
		a.mu.Lock()
		alone := a.steps[id] == r && r.waits == 0
		a.mu.Unlock()
		if alone {
			r.cancel()
			<-r.done
			a.forget(id, r)
		}
	})
}

// endSteps ends the steps of a loop and waits for that.
func (a *Activities) endSteps(ref string) {
	a.mu.Lock()
	steps := map[string]*running{}
	for id, r := range a.steps {
		if strings.HasPrefix(id, ref+"/") {
			steps[id] = r
		}
	}
	a.mu.Unlock()
	for id, r := range steps {
		r.cancel()
		<-r.done
		a.forget(id, r)
	}
}

// Orphaned says when the service has refused to hear of a step any more.
func (a *Activities) Orphaned() <-chan struct{} { return a.orphaned }

// run does the step, unless its result is on disk.
func (a *Activities) run(ctx context.Context, p *place, in act.Step, r *running) (act.Stepped, error) {
	dir := a.stepDir(in.Ref, in.Key)
	var out act.Stepped
	switch err := durable.ReadJSON(filepath.Join(dir, "result.json"), &out); {
	case err == nil:
		return out, nil
	case !errors.Is(err, fs.ErrNotExist):
		a.Logger.Warn("the result of a step can't be read: the step runs again", "loop", p.Loop, "error", err)
		out = act.Stepped{}
	}
	if in.Agent != nil {
		if err := a.permit(ctx, p, in); err != nil {
			return out, err
		}
	}
	if in.Judge != nil {
		judged, _, err := a.judge(ctx, p, *in.Judge)
		if out.Violates = len(judged.Violations) > 0; out.Violates || err != nil {
			return out, err
		}
	}
	crash.At("step.before")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return out, fmt.Errorf("making the step's folder: %w", err)
	}
	// A supervisor takes as long to start as a large program does: meanwhile the tree is made ready,
	// and the ledger told what happened up to now.
	var told string
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { _, err := p.supervise(); return err })
	g.Go(func() error { return a.prepare(gctx, p, in) })
	g.Go(func() (err error) { told, err = a.tell(gctx, p, in.Entry); return err })
	if err := g.Wait(); err != nil {
		return out, err
	}
	crash.At("step.prepared")
	inherited, err := a.environment(p)
	if err != nil {
		return out, err
	}
	command := proc.Command{
		Argv: in.Command, Dir: p.desk.Dir, Env: slices.Clone(inherited),
		Stdout: filepath.Join(dir, "stdout"), Stderr: filepath.Join(dir, "stderr"),
		Limit: time.Duration(in.LimitMs) * time.Millisecond, Progress: filepath.Join(dir, "progress"),
	}
	if in.Tree == act.Judge {
		command.Dir = p.judge.Dir
	}
	var talk *exchange
	if in.Agent != nil {
		tell := func(u loop.Usage, tool string) { r.live.Store(&act.Live{Usage: u, Tool: loop.Clip(tool, 80)}) }
		if talk, err = a.brief(ctx, p, in, told, &command, tell); err != nil {
			return out, err
		}
	}
	command.Sandbox = a.confine(p, command, inherited)
	spent, err := proc.ReadProgress(command.Progress)
	if err != nil {
		return out, fmt.Errorf("reading what the step has spent: %w", err)
	}
	command.Spent = spent
	s, err := p.supervise()
	if err != nil {
		return out, err
	}
	crash.At("step.starting")
	since := time.Now().Add(-spent)
	r.since.Store(&since)
	var result proc.Result
	if talk != nil && talk.call != nil {
		result, err = talk.call.run(ctx, s, command)
	} else {
		result, err = s.Run(ctx, command)
	}
	if err != nil {
		p.rest()
		if _, reapErr := proc.Reap(p.Token()); reapErr != nil {
			err = errors.Join(err, reapErr)
		}
		return out, fmt.Errorf("running %s: %w", in.Key.Name, err)
	}
	crash.At("step.ended")
	out = act.Stepped{
		ExitCode: result.ExitCode, Signal: result.Signal, TimedOut: result.TimedOut, Interrupted: result.Interrupted,
		StartError: result.StartError, ElapsedMs: (spent + result.Elapsed).Milliseconds(), Leftover: result.Leftover, Log: dir,
		Ledger: told,
	}
	if err := read(&out, in, command.Stdout, dir); err != nil {
		return out, err
	}
	if in.Tests != nil && !out.Interrupted {
		if err := readTests(&out, in.Tests.Before, dir); err != nil {
			return out, err
		}
	}
	if talk != nil {
		printed := talk.take(&out, command.Stdout, in.Agent)
		if in.Agent.Role == spec.RolePlanner && out.OK() {
			if out.Plan, err = a.planOf(p, printed, dir); err != nil {
				return out, err
			}
		}
		if err := a.throwAway(ctx, p, in, &out); err != nil {
			return out, err
		}
	}
	out.Stop = p.loopStop()
	if out.Interrupted { // it will run again, so this is not its result
		a.putBack(ctx, p, in)
		return out, nil
	}
	if err := durable.WriteJSON(filepath.Join(dir, "result.json"), out); err != nil {
		return out, err
	}
	crash.At("step.recorded")
	return out, nil
}

// tell appends what happened before the step, and returns the ledger's head.
func (a *Activities) tell(ctx context.Context, p *place, e *act.Entry) (string, error) {
	if e == nil || len(e.Events) == 0 {
		return "", nil
	}
	out, err := a.append(ctx, p, *e, store.Tx{}, "")
	crash.At("step.told")
	return out.Ledger, err
}

// permit is the one gateway that every call of an agent passes (E1). What is not permitted is not
// run, nor is anything prepared for it.
func (a *Activities) permit(ctx context.Context, p *place, in act.Step) error {
	if in.Entry.Ledger == "" { // the plan is made before the first entry
		if err := a.rebind(p); err != nil {
			return err
		}
	}
	contract, err := p.ledger.Contract(ctx, in.Entry.Ledger)
	if err != nil {
		return err
	}
	var denied *fault.Error
	if err := govern.PermitPhase(contract.Spec, in.Agent.Role, in.Agent.Phase); errors.As(err, &denied) {
		return refuse(denied)
	}
	return nil
}

// prepare brings the step's tree to where the step starts from. From then on it is the step's.
func (a *Activities) prepare(ctx context.Context, p *place, in act.Step) error {
	switch {
	case in.AsIs:
		return nil
	case in.Tree == act.Judge:
		defer p.leaveJudge()
		return a.restoreJudge(ctx, p, in.Head)
	}
	defer p.leaveDesk()
	return a.restoreDesk(ctx, p, in.Head)
}

// putBackWithin bounds how long whoever interrupts an agent waits for the desk.
const putBackWithin = 10 * time.Second

// putBack brings the desk back to where an interrupted agent started from, so that whoever looks at
// it during a pause finds that. The step restores it again when it is repeated, also where this
// fails.
func (a *Activities) putBack(ctx context.Context, p *place, in act.Step) {
	if in.Agent == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), putBackWithin)
	defer cancel()
	_ = a.restoreDesk(ctx, p, in.Head)
	p.leaveDesk()
}

// maxOutput bounds what is read of an output; the supervisor keeps no more than that anyway.
const maxOutput = 2 * proc.DefaultOutputLimit

// read takes metric, digest and tail from a step's output.
func read(out *act.Stepped, in act.Step, stdout, dir string) error {
	var err error
	if out.Digest, err = digest(stdout); err != nil {
		return fmt.Errorf("reading the output: %w", err)
	}
	if !out.OK() {
		out.Tail = tailOf(dir)
	}
	if in.Measure == nil || !out.OK() {
		return nil
	}
	b, err := readFile(stdout, maxOutput)
	if err != nil {
		return fmt.Errorf("reading the output: %w", err)
	}
	var pattern *regexp.Regexp
	if in.Measure.Pattern != "" {
		if pattern, err = regexp.Compile(in.Measure.Pattern); err != nil {
			return fmt.Errorf("verify.pattern: %w", err)
		}
	}
	reading, err := evidence.Extract(b, pattern)
	var none *evidence.NoNumber
	if errors.As(err, &none) {
		out.NoNumber = none.Error()
		return nil
	}
	if err != nil {
		return err
	}
	out.Metric = &reading.Value
	out.Warning = reading.Warning()
	return nil
}

// stepName is a step's folder: sorted by name, the steps are in the order in which they ran
// within an iteration's attempts.
func stepName(k act.Key) string {
	name := fmt.Sprintf("%04d.%d-%s", k.Iteration, k.Attempt, k.Name)
	if k.Repeat > 0 {
		name += fmt.Sprintf(".r%d", k.Repeat)
	}
	return name
}

func (a *Activities) stepDir(ref string, k act.Key) string {
	return filepath.Join(workspace.Steps(a.Home, ref), stepName(k))
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
