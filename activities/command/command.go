// Package command runs a loop's commands in its trees, each as a step: its result is on disk before it is reported, and a
// retry returns it or joins the step. Start at Do and Work.
package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"pawl/activities/workspace"
	"pawl/internal/exec/supervisor"
	"pawl/internal/fault"
	"pawl/internal/fault/wire"
	"pawl/internal/home/hostrecord"
	"pawl/internal/lib/crashpoint"
	"pawl/internal/lib/fsutil/durable"
	"pawl/internal/lib/safego"
	"pawl/internal/loop/api"
)

// Runner runs the steps of loops.
type Runner struct {
	*workspace.Workspaces
	steps steps
}

// New returns a runner that runs nothing yet.
func New(workspaces *workspace.Workspaces) *Runner {
	return &Runner{Workspaces: workspaces, steps: steps{running: map[string]*Running{}, underway: map[string]int{}, orphaned: make(chan struct{}, 1)}}
}

// joinWithin is how long a step continues while no attempt waits for it. If the service gave up an attempt (because
// of an outage, or a laptop asleep), the next attempt joins the step. If the loop was terminated, none does.
const joinWithin = time.Minute

// Running is a step that runs in this worker, whether or not an attempt of the activity waits for it.
type Running struct {
	done   chan struct{}
	waits  int // attempts of the activity that wait for it, under steps.mu
	cancel context.CancelFunc
	out    any // the step's result, once it is done
	err    error

	Live  atomic.Pointer[api.Live]  // what its agent reported
	since atomic.Pointer[time.Time] // when its command was started, earlier by the time that it had already spent
}

// spent returns what heartbeats report of the step.
func (r *Running) spent() api.Live {
	live := *cmp.Or(r.Live.Load(), new(api.Live))
	if start := r.since.Load(); start != nil {
		live.Usage.ActiveMs = time.Since(*start).Milliseconds()
	}
	return live
}

// result is the type of a step's result: it contains an outcome.
type result[O any] interface {
	*O
	Core() *api.Outcome
}

// Do runs a step and returns its result. The result is on disk before it is reported, so a retry returns it, or joins
// a step that still runs in this worker.
func Do[O any, P result[O]](ctx context.Context, a *Runner, input api.Step, do func(context.Context, *Work) (O, error)) (O, error) {
	var zero O
	ws, err := a.Workspace(ctx, input.Ref)
	if err != nil {
		return zero, err
	}
	id := input.Ref + "/" + StepName(input.Key)
	parent := trace.SpanContextFromContext(ctx) // the traces of the step's appends belong to this activity
	r := a.steps.joinOrStart(id, func(ctx context.Context, r *Running) (any, error) {
		return once[O, P](trace.ContextWithSpanContext(ctx, parent), NewWork(ws.At(input.Desk), input, r), do)
	})
	done := func() (O, error) {
		<-r.done
		a.steps.forget(id, r)
		out, _ := r.out.(O)
		return out, r.err
	}
	h, _ := ctx.Value(heartKey{}).(*heart) // nil in a dry run
	h.say(r.spent)
	select {
	case <-r.done:
		return done()
	case <-activity.GetWorkerStopChannel(ctx):
		r.cancel()
		if out, err := done(); err == nil && !P(&out).Core().Interrupted {
			return out, nil // the step has just ended
		}
		return zero, temporal.NewApplicationErrorWithOptions("the worker is stopping", "WorkerStopping", temporal.ApplicationErrorOptions{
			NextRetryDelay: time.Millisecond, Category: temporal.ApplicationErrorCategoryBenign, // the next worker does the activity again
		})
	case <-ctx.Done():
		var cancelled *temporal.CanceledError
		if !errors.As(context.Cause(ctx), &cancelled) {
			a.steps.leave(id, r)
			return zero, ctx.Err()
		}
		r.cancel()
		return done()
	}
}

// ResultFile is the file with the result of a step, in the step's folder.
const ResultFile = "result.json"

// ProgressFile is the file with what a step's command has spent, in the same folder.
const ProgressFile = "progress"

// once does a step, unless its result is already on disk.
func once[O any, P result[O]](ctx context.Context, w *Work, do func(context.Context, *Work) (O, error)) (O, error) {
	path, head := filepath.Join(w.Dir, ResultFile), w.In.Head // a planner's step finds out its head later
	var out O
	switch err := durable.ReadJSON(path, &out); {
	case err == nil && P(&out).Core().Of == head:
		P(&out).Core().Of = ""
		return out, nil
	case err == nil: // the result is from a run whose ledger has lost entries since then
		out = *new(O)
	case !errors.Is(err, fs.ErrNotExist):
		w.Workspace.IsMended("the result of the step "+filepath.Base(w.Dir)+" could not be read: the step runs again", err)
	}
	out, err := do(ctx, w)
	if err != nil || P(&out).Core().Interrupted { // the step will run again, so this is not its result
		return out, err
	}
	// The file is only needed until the result is reported. A power cut within that moment costs a repetition.
	// Waiting for the disk would cost every step some milliseconds.
	P(&out).Core().Of = head
	err = durable.CacheJSON(path, out)
	P(&out).Core().Of = ""
	if err != nil {
		return out, err
	}
	crashpoint.At("step.recorded")
	return out, nil
}

// Progress returns what a step has spent: if it does not run in this worker, what its record says.
func (a *Runner) Progress(ctx context.Context, input api.Progress) (api.Spent, error) {
	a.steps.mu.Lock()
	_, ok := a.steps.running[input.Ref+"/"+StepName(input.Key)]
	a.steps.mu.Unlock()
	spent, err := supervisor.ReadProgress(filepath.Join(StepDir(a.Machine, input.Ref, input.Key), ProgressFile))
	if err != nil {
		return api.Spent{}, err
	}
	return api.Spent{Running: ok, Ms: spent.Milliseconds()}, nil
}

// steps are the steps that run in this worker, by loop and folder.
type steps struct {
	mu       sync.Mutex
	running  map[string]*Running
	underway map[string]int // the activities that this worker runs, by workflow
	orphaned chan struct{}  // of capacity one: signals that a loop may be over
}

// joinOrStart returns the step that runs under id, or starts it.
func (s *steps) joinOrStart(id string, run func(context.Context, *Running) (any, error)) *Running {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.running[id]; r != nil {
		r.waits++
		return r
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &Running{done: make(chan struct{}), waits: 1, cancel: cancel}
	s.running[id] = r
	go func() {
		defer close(r.done)
		defer cancel()
		r.err = safego.Caught(func() (err error) {
			r.out, err = run(ctx, r)
			return err
		})
	}()
	return r
}

func (s *steps) forget(id string, r *Running) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running[id] == r {
		delete(s.running, id)
	}
}

func (s *steps) end(id string, r *Running) {
	r.cancel()
	<-r.done
	s.forget(id, r)
}

// leave stops waiting for a step. If no other attempt waits for it in time, the step is ended.
func (s *steps) leave(id string, r *Running) {
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

func (s *steps) endAll(ref string) {
	s.mu.Lock()
	running := maps.Clone(s.running)
	s.mu.Unlock()
	for id, r := range running {
		if strings.HasPrefix(id, ref+"/") {
			s.end(id, r)
		}
	}
}

// Orphaned returns a channel that signals when the service has refused the report of a step.
func (a *Runner) Orphaned() <-chan struct{} { return a.steps.orphaned }

// StepName returns the name of a step's folder. By name, the folders are in the order in which the steps ran.
func StepName(k api.Key) string {
	name := fmt.Sprintf("%04d.%d-%s", k.Iteration, k.Attempt, k.Name)
	if k.Sample > 0 {
		name += fmt.Sprintf(".s%d", k.Sample+1)
	}
	if k.Repeat > 0 {
		name += fmt.Sprintf(".r%d", k.Repeat)
	}
	return name
}

// StepDir returns the folder of a step.
func StepDir(m *workspace.Machine, ref string, k api.Key) string {
	return filepath.Join(hostrecord.Steps(m.Home, ref), StepName(k))
}

// Release ends what runs here for a loop that is over, or that another run continues.
func (a *Runner) Release(ref string) {
	a.steps.endAll(ref)
	if ws := a.Here(ref); ws != nil {
		ws.EndProcesses()
	}
}

// RemoveTrees removes the processes and trees of a loop that ended without this worker (by Terminate, or a reset
// behind its ledger), unless another run has continued the loop. It pushes what was not pushed yet, unless the loop
// continues on another host from what the repository has.
func (a *Runner) RemoveTrees(ctx context.Context, r hostrecord.Record, elsewhere bool) error {
	a.Registering.Lock()
	defer a.Registering.Unlock()
	now, err := hostrecord.Read(a.Home, r.Ref)
	if err != nil || now.FirstRun != r.FirstRun || now.Closed {
		return err
	}
	a.Release(r.Ref)
	a.Telemetry.Forget(r.Loop)
	ws, err := a.Workspace(ctx, r.Ref)
	if err != nil {
		return err
	}
	// Its last kept change may not be pushed yet. Nobody reports a refusal here. Another host may have the loop.
	if !elsewhere {
		if _, err := ws.Push(ctx); err != nil && !wire.Is(err, fault.LedgerAhead) {
			return err
		}
	}
	return a.CloseTrees(ctx, ws)
}
