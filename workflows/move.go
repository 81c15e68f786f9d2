package workflows

import (
	"errors"
	"slices"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"pawl/internal/act"
	"pawl/internal/fault"
	"pawl/internal/loop"
)

// A loop with a repo.url goes on elsewhere when its host is gone. What a host does not take in time
// comes back, follow asks whether that host still lives, and either the same is scheduled there again
// or another host opens the loop at what the repository has of it. The run stays the same, and with
// it its gates, its messages and what is pending.

var (
	// errLost is why an iteration can't go on: what it worked on was on the host alone.
	errLost = errors.New("what was under way is lost with the host that had it")
	// errRecorded says of an append that its host had made it before it was gone.
	errRecorded = errors.New("it is in the ledger already")
)

// maxPatience is how many times longer than at first a host that lives, and is only busy, is left
// alone: each time costs the activity its place in the queue and the history some events.
const maxPatience = 16

// patience is how long what is to be done on the loop's host may stay untaken; 0 is for ever. A host
// that the spec names is never left.
func (r *run) patience(asked int) time.Duration {
	if r.spec.Repo.Host != "" {
		return 0
	}
	return time.Duration(r.opened.MoveAfterMs) * time.Millisecond * time.Duration(min(1<<min(asked, 10), maxPatience))
}

// untaken reports whether nobody took an activity in time. An attempt that came before may have told
// what it had spent.
func untaken(err error) (spent act.Live, is bool) {
	var late *temporal.TimeoutError
	if !errors.As(err, &late) || late.TimeoutType() != enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START {
		return spent, false
	}
	if late.HasLastHeartbeatDetails() {
		_ = late.LastHeartbeatDetails(&spent) // those of other activities tell nothing
	}
	return spent, true
}

// follow asks whether the host that left something untaken is gone, and has another one open the loop
// where it is. It reports whether the loop has moved: if not, the host lives, or is the only one that
// has what it recorded, and is waited for. errRecorded and errLost say that what was to be done is
// done, or can't be. Only a ledger that another run has gone on with ends the loop.
func (r *run) follow(ctx workflow.Context) (moved bool, err error) {
	var p act.Placed
	err = r.start(ctx, act.PlaceName, "is the host "+r.opened.Host+" gone?", act.Place{
		Loop: r.state.Loop, Host: r.opened.Host, URL: r.spec.Repo.URL, Branch: r.opened.Branch, Ledger: r.state.Ledger, Sent: slices.Concat(r.pending, r.sending),
	}, 0).Get(ctx, &p)
	if refusal(err, fault.LedgerAhead) != "" {
		return false, err
	}
	if err != nil || !p.Gone {
		return false, r.stay(ctx, err)
	}
	known := min(len(p.Since), len(r.pending))
	r.pending = r.pending[known:]
	for _, e := range p.Since[known:] {
		r.apply(e)
		err = errRecorded
	}
	r.state.Ledger = p.Ledger
	if r.state.Status.Ended() {
		return true, errRecorded
	}
	o := act.Opened{}
	opening := r.start(ctx, act.OpenName, "open "+r.spec.Repo.Place()+" on another host", act.Open{
		Loop: r.state.Loop, FirstRun: r.firstRun, Run: workflow.GetInfo(ctx).WorkflowExecution.RunID, Spec: r.spec, Ledger: p.Ledger, Moved: true,
	}, 0)
	if failed := opening.Get(ctx, &o); failed != nil {
		return false, errors.Join(err, r.stay(ctx, failed))
	}
	if lost := r.settleIn(ctx, o, p.Why); lost && err == nil {
		err = errLost
	}
	return true, err
}

// stay makes the loop wait for the host that it has where nobody can tell whether that is gone, or
// nobody else can go on.
func (r *run) stay(ctx workflow.Context, err error) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	workflow.GetLogger(ctx).Warn("the loop can't move, it waits for its host", "host", r.opened.Host, "error", err)
	return nil
}

// settleIn makes the host that has opened the loop its own. It reports whether the branch's head was
// lost. The contract stays what the loop knows: amendments may not be in the ledger yet.
func (r *run) settleIn(ctx workflow.Context, o act.Opened, why string) (lost bool) {
	head := r.state.Head
	if o.State != nil {
		lost = o.State.Head != head
		head, o.State = o.State.Head, nil
		o.Contract, o.Sealed, o.InScope, o.Onto = r.opened.Contract, r.opened.Sealed, r.opened.InScope, r.opened.Onto
		r.opened = o
	} else if o.Base == r.state.Base && o.Contract == r.opened.Contract {
		r.opened = o
	} else { // nothing was in a ledger yet, and the base has moved meanwhile: it is a new beginning
		r.opened = o
		r.begun(ctx)
		head = r.state.Head
	}
	if lost && r.unjudged != nil {
		r.unjudged.Commit = ""
	}
	r.uprooted = true
	r.moves++
	r.emit(ctx, loop.Event{Type: loop.LoopMoved, Head: head, Opened: &loop.Opened{Desk: o.Desk, Host: o.Host}, Reason: why})
	// By this the host that had the loop finds, should it come back, that the loop is no longer its own.
	_ = workflow.UpsertMemo(ctx, map[string]any{act.HostMemo: o.Host})
	return lost
}

// giveUp records an iteration that can't go on on another host as interrupted.
func (r *run) giveUp(ctx workflow.Context, v verdict) error {
	r.emit(ctx, loop.Event{
		Type: loop.LoopMoved, Phase: r.machine.Between(), Head: r.state.Head, Opened: &loop.Opened{Desk: r.state.Desk, Host: r.state.Host},
		FailureReason: interrupted, Reason: errLost.Error(),
	})
	return r.settle(ctx, verdict{Reason: interrupted, Description: orElse(v.Description, errLost.Error()), Attempts: v.Attempts})
}
