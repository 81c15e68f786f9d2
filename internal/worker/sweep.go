package worker

import (
	"context"
	"sync"
	"time"

	workflowpb "go.temporal.io/api/workflow/v1"

	"pawl/activities"
	"pawl/internal/client"
	"pawl/internal/home/hostrecord"
)

// sweepEvery is the time between two looks for loops that ended without this worker. A look costs the service one
// question for each loop that is not over.
const sweepEvery = time.Minute

// sweepAgain is the time until the next look after a step's report was refused. The service may refuse it before the
// loop is over, for example with a reset.
const sweepAgain = 2 * time.Second

// sweep removes what loops still have on this host although they ended without this worker (terminated, reset behind
// their ledgers, replaced by another loop with their ID) or moved to another host. It runs until ctx ends. It acts at
// once if the service reports the end or a step was running, else within a minute.
func sweep(ctx context.Context, o Options, a *activities.Activities) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	begun := time.NewTicker(sweepAgain)
	defer begun.Stop()
	if records, err := hostrecord.List(o.Home); err == nil { // else the first look reports it
		pushLate(ctx, o, a, records)
	}
	ends := &ends{options: o, ended: make(chan struct{}, 1), watched: map[string]bool{}}
	for {
		select {
		case <-ctx.Done():
			return
		case <-begun.C:
			tellEnds(ctx, o, a.Host)
			ends.watch(ctx)
			continue
		case <-ends.ended:
			tick.Reset(sweepAgain)
		case <-a.Orphaned():
			tick.Reset(sweepAgain)
		case <-tick.C:
			tick.Reset(sweepEvery)
		}
		if !sweepOnce(ctx, o, a) {
			tick.Reset(sweepAgain)
		}
	}
}

// sweepOnce looks once, and reports whether it did everything that had to be done.
func sweepOnce(ctx context.Context, o Options, a *activities.Activities) (done bool) {
	done = true
	if err := mend(ctx, o, a); err != nil {
		o.Logger.Warn("damaged records can't be made again", "error", err)
	}
	records, err := hostrecord.List(o.Home)
	if err != nil {
		o.Logger.Warn("this host's loops can't be listed", "error", err)
	}
	pushLate(ctx, o, a, records)
	for _, r := range records {
		if r.Closed || r.Namespace != o.Namespace {
			continue
		}
		d, known, err := described(ctx, o, r.Loop)
		info := d.GetWorkflowExecutionInfo()
		ended := over(info, r)
		switch {
		case err != nil: // the service does not answer now, and the next sweep asks again
		case known && ended:
			noteEnd(ctx, o, r, info)
			giveUp(ctx, o, r, a, false)
		case known && elsewhere(info, a.Host):
			giveUp(ctx, o, r, a, true)
		case known || !o.Embedded:
		case !a.Left(r): // it continues from its ledger when nothing writes to the ledger any more
			done = false
		default: // the engine has lost it since this worker started
			_ = lost(ctx, o, r, a) // a failure is logged, and the next sweep tries again
		}
	}
	return done
}

// pushLate pushes what loops that are over could not push, because their repositories were away.
func pushLate(ctx context.Context, o Options, a *activities.Activities, records []hostrecord.Record) {
	for _, r := range records {
		if r.Namespace == o.Namespace {
			a.PushLate(ctx, r)
		}
	}
}

// giveUp removes what a loop that is over, or has moved, still has on this host. One broken loop must not stop the
// others, so a failure is only logged, and the next sweep tries again.
func giveUp(ctx context.Context, o Options, r hostrecord.Record, a *activities.Activities, moved bool) {
	what := "the loop ended without this worker: its trees are removed"
	if moved {
		what = "the loop has moved to another host: its trees here are removed"
	}
	o.Logger.Info(what, "loop", r.Loop)
	if err := a.RemoveTrees(ctx, r, moved); err != nil {
		o.Logger.Warn("the trees of a loop that is over can't be removed", "loop", r.Loop, "error", err)
	}
}

// noteEnd notes how a loop ended that could not record it. After that people see it even while no engine runs.
func noteEnd(ctx context.Context, o Options, r hostrecord.Record, info *workflowpb.WorkflowExecutionInfo) {
	if !sameLoop(info, r) {
		return // another loop has its ID, and nobody knows how this one ended
	}
	run := o.Client.GetWorkflow(ctx, r.Loop, info.GetExecution().GetRunId())
	if err := client.NoteEnd(ctx, run, o.Home, r, info.GetCloseTime().AsTime()); err != nil {
		o.Logger.Warn("how a loop ended can't be noted", "loop", r.Loop, "error", err)
	}
}

// lastLookTime bounds the look of a worker that leaves.
const lastLookTime = 2 * time.Second

// lastLook closes the loops that ended just before their worker leaves: until the next worker starts, nobody else would.
func lastLook(ctx context.Context, o Options, a *activities.Activities) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastLookTime)
	defer cancel()
	records, err := hostrecord.List(o.Home)
	if err != nil {
		return // the next worker reports it
	}
	for _, r := range records {
		if r.Closed || r.Namespace != o.Namespace {
			continue
		}
		d, err := describe(ctx, o.Client, o.Namespace, r.Loop)
		if ctx.Err() != nil {
			return
		}
		info := d.GetWorkflowExecutionInfo()
		if err == nil && over(info, r) {
			noteEnd(ctx, o, r, info)
			giveUp(ctx, o, r, a, false)
		}
	}
}

// maxWatched is for how many loops the service is asked to report the end at once. The sweep finds the ends of the
// others.
const maxWatched = 100

// ends waits for the ends of this host's loops, so that a loop that was terminated or reset is noticed at once.
type ends struct {
	options Options
	ended   chan struct{} // of capacity one

	mu      sync.Mutex
	watched map[string]bool // by the first run of each loop
}

// watch begins to wait for the loops that are not watched yet.
func (e *ends) watch(ctx context.Context) {
	records, err := hostrecord.List(e.options.Home)
	if err != nil {
		return // the sweep reports that
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, r := range records {
		if r.Closed || r.Namespace != e.options.Namespace || r.FirstRun == "" || e.watched[r.FirstRun] || len(e.watched) >= maxWatched {
			continue
		}
		e.watched[r.FirstRun] = true
		go func() {
			for range 2 { // after a reset another run follows, which may end at once
				// The result does not matter: the sweep asks for the state of the loop.
				_ = e.options.Client.GetWorkflow(ctx, r.Loop, "").Get(ctx, nil)
				select {
				case e.ended <- struct{}{}:
				default:
				}
				select {
				case <-ctx.Done():
					return
				case <-time.After(sweepAgain):
				}
			}
			time.AfterFunc(sweepEvery, func() {
				e.mu.Lock()
				defer e.mu.Unlock()
				delete(e.watched, r.FirstRun)
			})
		}()
	}
}
