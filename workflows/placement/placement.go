// Package placement runs a loop's activities on the right host: the one that has its store and trees, and another one
// if that host is gone. It decides nothing about the loop. Start at Host.Execute; Host.MoveIfGone moves a loop.
package placement

import (
	"cmp"
	"errors"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"pawl/internal/fault"
	"pawl/internal/fault/wire"
	"pawl/internal/lib/text/markdown"
	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/internal/spec"
	"pawl/workflows/journal"
)

var (
	// ErrLost means that an iteration can't continue: its work was only on the host that is gone.
	ErrLost = errors.New("what was under way is lost with the host that had it")
	// ErrRecorded means that the lost host had made this append before it was gone.
	ErrRecorded = errors.New("it is in the ledger already")
)

// Host is the host of one loop, as the workflow sees it: where its activities go.
type Host struct {
	// Opened is the result of opening the loop there, the zero value until then.
	Opened api.Opened
	// Uprooted reports that the loop has moved and no step has made its desk again yet.
	Uprooted bool
	// Halting returns why the loop is being ended, "" if it is not. nil: no halt ends an activity here.
	Halting func() string
	// Closing says that a halted loop records its end: nothing interrupts that, and it is tried only a few times.
	Closing bool

	journal *journal.Journal[loop.State]
	spec    func() spec.Spec
	begun   func(workflow.Context)
	show    func(workflow.Context)
}

// New returns the host of a loop that has none yet, or continues where opened says. begun records the beginning of a
// loop as its host has opened it; show updates what people see.
func New(j *journal.Journal[loop.State], opened api.Opened, s func() spec.Spec, begun, show func(workflow.Context)) *Host {
	return &Host{Opened: opened, journal: j, spec: s, begun: begun, show: show}
}

// IsOpen reports whether the loop has a host.
func (h *Host) IsOpen() bool { return h.Opened.Ref != "" }

// Open makes store, desk and judge ready, on the host that the spec names or on any. ledger is a commit of the ledger to
// continue from, "" for a new loop.
func (h *Host) Open(ctx workflow.Context, ledger string) error {
	return h.Execute(ctx, api.OpenName, "open "+h.spec().Repo.Address(), func() any { return h.opening(ctx, ledger, false) }, &h.Opened)
}

func (h *Host) opening(ctx workflow.Context, ledger string, moved bool) api.Open {
	info := workflow.GetInfo(ctx)
	return api.Open{
		Loop: info.WorkflowExecution.ID, FirstRun: info.FirstRunID, Spec: h.spec(), Ledger: ledger, Moved: moved,
	}
}

// Execute runs an activity to its end, on another host if the loop's own is gone. It makes the input again for each
// host.
func (h *Host) Execute(ctx workflow.Context, name, summary string, input func() any, output any) error {
	for asked := 0; ; asked++ {
		err := h.Complete(ctx, name, summary, input(), asked, output)
		if _, late := Untaken(err); !late {
			return err
		}
		moved, err := h.MoveIfGone(ctx)
		switch {
		case err != nil:
			return err
		case moved && api.Of(name).NeedsDesk:
			return ErrLost // with the desk
		case moved:
			asked = -1
		}
	}
}

// HaltGrace is how long an activity may go on once a halt has come, and then how long it may take to give way. A loop
// ends in less than the sum, whatever is being tried.
const HaltGrace = 4 * time.Second

// Complete runs one activity to its end. A halt ends it too: an activity that is tried again and again, or that does not
// answer, must not hold a loop that a person wants to end.
func (h *Host) Complete(ctx workflow.Context, name, summary string, input any, asked int, output any) error {
	if h.Halting == nil || h.IsHasty(ctx) {
		return h.Start(ctx, name, summary, input, asked).Get(ctx, output)
	}
	grace := HaltGrace
	if name == api.OpenName { // opening has recorded nothing that an end could miss
		grace = 0
	}
	return UntilHalt(ctx, h.halted, grace, func(ctx workflow.Context) workflow.Future {
		return h.Start(ctx, name, summary, input, asked)
	}, output)
}

type hasteKey struct{}

// Hastily returns a context in which an activity is tried as at the end of a halted loop: only a few times, and no halt
// cuts it short.
func Hastily(ctx workflow.Context) workflow.Context { return workflow.WithValue(ctx, hasteKey{}, true) }

// IsHasty reports whether activities are tried only a few times: the loop is being ended, or Hastily says so.
func (h *Host) IsHasty(ctx workflow.Context) bool { return h.Closing || ctx.Value(hasteKey{}) != nil }

// UntilHalt runs an activity to its end. After a halt it may go on for the grace; then it is cancelled.
func UntilHalt(ctx workflow.Context, halted func() bool, grace time.Duration, start func(workflow.Context) workflow.Future, output any) error {
	activityCtx, cancel := workflow.WithCancel(ctx)
	future := start(activityCtx)
	if err := workflow.Await(ctx, func() bool { return future.IsReady() || halted() }); err != nil {
		return future.Get(ctx, output) // the workflow was cancelled, and with it the activity
	}
	if !future.IsReady() && grace > 0 {
		_, _ = workflow.AwaitWithTimeout(ctx, grace, future.IsReady)
	}
	if !future.IsReady() {
		cancel()
		_, _ = workflow.AwaitWithTimeout(ctx, HaltGrace, future.IsReady)
	}
	if !future.IsReady() {
		return temporal.NewCanceledError()
	}
	return future.Get(ctx, output)
}

func (h *Host) halted() bool { return h.Halting != nil && h.Halting() != "" }

// maxPatience limits the time to wait for a host that is alive and only busy, as a multiple of the first time. Each
// wait costs the activity its position in the queue, and adds some events to the history.
const maxPatience = 16

// patience returns how long an activity may wait for the loop's host to start it; 0 means for ever. The loop never
// leaves a host that the spec names.
func (h *Host) patience(asked int) time.Duration {
	if h.spec().Repo.Host != "" {
		return 0
	}
	return time.Duration(h.Opened.MoveAfterMs) * time.Millisecond * time.Duration(min(1<<min(asked, 10), maxPatience))
}

// Untaken reports whether no host started an activity in time. An earlier attempt may have reported its spending.
func Untaken(err error) (spent api.Live, ok bool) {
	var late *temporal.TimeoutError
	if !errors.As(err, &late) || late.TimeoutType() != enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START {
		return spent, false
	}
	_ = late.LastHeartbeatDetails(&spent) // most heartbeats have no spending
	return spent, true
}

// MoveIfGone asks whether the host that did not start an activity is gone. If so, another host opens the loop. It
// reports whether the loop has moved. If not, the host is alive, or only it has the latest record, and the loop waits
// for it. ErrRecorded and ErrLost mean that the activity is already done, or impossible. The loop ends only if
// another run has continued its ledger.
func (h *Host) MoveIfGone(ctx workflow.Context) (moved bool, err error) {
	s := h.journal.State()
	var p api.Placed
	err = h.Complete(ctx, api.PlaceName, "is the host "+h.Opened.Host+" gone?", api.Place{
		Loop: s.Loop, Host: h.Opened.Host, URL: h.spec().Repo.URL, Branch: h.Opened.Branch, Ledger: s.Ledger, Sent: h.journal.Unrecorded(),
	}, 0, &p)
	if wire.Is(err, fault.LedgerAhead) {
		return false, err
	}
	if err != nil || !p.Gone {
		return false, h.stay(ctx, err)
	}
	if h.journal.Adopt(p.Since, p.Ledger) {
		err = ErrRecorded
	}
	if h.journal.State().Status.Ended() {
		return true, ErrRecorded
	}
	var o api.Opened
	summary := "open " + h.spec().Repo.Address() + " on another host"
	if failed := h.Complete(ctx, api.OpenName, summary, h.opening(ctx, p.Ledger, true), 0, &o); failed != nil {
		return false, errors.Join(err, h.stay(ctx, failed))
	}
	if lost := h.moveTo(ctx, o, p.Why); lost && err == nil {
		err = ErrLost
	}
	return true, err
}

// stay makes the loop wait for its host if nobody can tell whether that host is gone, or if no other host can
// continue.
func (h *Host) stay(ctx workflow.Context, err error) error {
	if err == nil || ctx.Err() != nil || h.halted() && temporal.IsCanceledError(err) {
		return err
	}
	workflow.GetLogger(ctx).Warn("the loop can't move: it waits for its host", "host", h.Opened.Host, "error", err)
	return nil
}

// moveTo sets the host that has opened the loop. It reports whether the branch's head was lost. The contract stays as
// the loop knows it, because amendments may be missing from the ledger.
func (h *Host) moveTo(ctx workflow.Context, o api.Opened, reason string) (lost bool) {
	s := h.journal.State()
	head := s.Head
	if o.State != nil {
		lost = o.State.Head != head
		head, o.State, o.Since = o.State.Head, nil, nil
		o.Terms, o.InScope, o.Onto = h.Opened.Terms, h.Opened.InScope, h.Opened.Onto
		h.Opened = o
	} else if o.Base == s.Base && o.Contract == h.Opened.Contract {
		h.Opened = o
	} else { // the ledger had nothing yet, and the base has moved: the loop begins again
		h.Opened = o
		h.begun(ctx)
		head = h.journal.State().Head
	}
	h.Uprooted = true
	h.journal.Emit(ctx, loop.Event{Type: loop.LoopMoved, Head: head, Opened: &loop.Opened{Desk: o.Desk, Host: o.Host}, Reason: reason})
	// If the former host comes back, it learns from this that the loop is no longer its own.
	_ = workflow.UpsertMemo(ctx, map[string]any{api.HostMemo: o.Host})
	return lost
}

// Queue returns the queue for activities that need no store: that of the loop's own host, if it has one.
func (h *Host) Queue() string {
	return cmp.Or(h.Opened.Queue, h.anyHost())
}

// anyHost returns the queue for work that any host can do, unless the spec names one.
func (h *Host) anyHost() string {
	if host := h.spec().Repo.Host; host != "" {
		return api.HostQueue(host)
	}
	return api.TaskQueue
}

// Retries apply to every activity that touches a store or a tree. A verdict is a result; an error is the machine's
// fault. So there are many retries, and they have nothing to do with attempts of the loop. An error that is not the
// machine's fault is not retried.
var Retries = &temporal.RetryPolicy{
	InitialInterval:    200 * time.Millisecond,
	BackoffCoefficient: 2,
	MaximumInterval:    30 * time.Second,
	MaximumAttempts:    100,
	NonRetryableErrorTypes: []string{
		string(fault.PreconditionFailed), string(fault.InvalidSpec), string(fault.LedgerAhead), string(fault.LedgerDamaged),
	},
}

// FewRetries apply to the end of a halted loop: a second and a half of trying again.
var FewRetries = func() *temporal.RetryPolicy {
	retries := *Retries
	retries.MaximumAttempts = 4
	return &retries
}()

const (
	// Bookkeeping limits one attempt at an activity that runs no command of the spec, such as cloning a large
	// repository.
	Bookkeeping = 30 * time.Minute
	// Heartbeat is how long an activity may be silent. Shorter limits cancelled healthy agents when an engine
	// restarted.
	Heartbeat = 30 * time.Second
	// The supervisor measures a step's own limit. The server's clock also runs while the machine sleeps, so it must
	// not end a step.
	stepBound = 30 * 24 * time.Hour
	// A host that doesn't answer a check in this time is down or asleep.
	checkBound = 10 * time.Second
)

// Start schedules an activity on the queue where it belongs (api.Attributes): the shared queue, the queue of the host
// that the spec names, or that of the loop's host. Agents have their own queue if they have their own slots. asked
// counts how often the host has left this activity untaken.
func (h *Host) Start(ctx workflow.Context, name, summary string, input any, asked int) workflow.Future {
	h.show(ctx) // people look while something runs or waits, not in between
	attributes := api.Of(name)
	o := workflow.ActivityOptions{
		TaskQueue: h.Opened.Queue, ScheduleToStartTimeout: h.patience(asked), StartToCloseTimeout: Bookkeeping, HeartbeatTimeout: Heartbeat,
		RetryPolicy: Retries, WaitForCancellation: true, Summary: markdown.Text(summary), Priority: temporal.Priority{PriorityKey: attributes.Urgency},
	}
	if attributes.Step {
		o.StartToCloseTimeout = stepBound
	}
	if h.IsHasty(ctx) {
		o.RetryPolicy = FewRetries
	}
	switch {
	case attributes.AnyHost:
		o.TaskQueue, o.ScheduleToStartTimeout = h.anyHost(), 0
	case attributes.Agent && h.Opened.Agents != "":
		o.TaskQueue = h.Opened.Agents
	case attributes.Brief:
		o.ScheduleToCloseTimeout, o.StartToCloseTimeout, o.ScheduleToStartTimeout = checkBound, checkBound, 0
	}
	return workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, o), name, input)
}
