package steward

import (
	"cmp"
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"pawl/internal/fault/wire"
	"pawl/internal/lib/list"
	"pawl/internal/lib/text/markdown"
	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/internal/steward"
	stewardapi "pawl/internal/steward/api"
	"pawl/workflows/placement"
)

// retries is the retry policy of a steward's activities. A steward lives for years and waits as long as its host is
// away. A failure that is not the machine's fault is not retried.
var retries = &temporal.RetryPolicy{
	InitialInterval: 200 * time.Millisecond, BackoffCoefficient: 2, MaximumInterval: time.Minute,
	NonRetryableErrorTypes: placement.Retries.NonRetryableErrorTypes,
}

// planBound limits a planner's call by the server's clock. The supervisor measures the real limit.
const planBound = 30 * 24 * time.Hour

// options returns the options of an activity on the steward's host.
func (r *run) options(name, summary string) workflow.ActivityOptions {
	o := workflow.ActivityOptions{
		TaskQueue: r.queue(), StartToCloseTimeout: placement.Bookkeeping, HeartbeatTimeout: placement.Heartbeat,
		RetryPolicy: retries, Summary: markdown.Text(summary), WaitForCancellation: true,
	}
	switch name {
	case stewardapi.OpenStewardName:
		if host := r.charter.Repo.Host; host != "" {
			o.TaskQueue = api.HostQueue(host)
		}
	case stewardapi.PlanTaskName:
		o.StartToCloseTimeout = planBound
		o.TaskQueue = cmp.Or(r.opened.Agents, o.TaskQueue)
	case stewardapi.ReadChildName:
		if r.charter.Repo.Remote() { // any host may have its loops; otherwise this one has their ledgers
			o.TaskQueue = api.TaskQueue
		}
	}
	return o
}

// queue returns the queue of the steward's host; before there is one, the shared queue.
func (r *run) queue() string { return cmp.Or(r.opened.Queue, api.TaskQueue) }

func (r *run) execute(ctx workflow.Context, name, summary string, request, out any) error {
	return workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, r.options(name, summary)), name, request).Get(ctx, out)
}

// executeUntilHalt runs an activity that the whole steward waits for. A halt ends it too: what is tried again and again,
// or does not answer, must not hold a steward that a person wants to end.
func (r *run) executeUntilHalt(ctx workflow.Context, name, summary string, request, out any) error {
	if !r.haltable {
		return r.execute(ctx, name, summary, request, out)
	}
	options := r.options(name, summary)
	if r.closing {
		options.RetryPolicy = placement.FewRetries
		return workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, options), name, request).Get(ctx, out)
	}
	grace := placement.HaltGrace
	if name == stewardapi.OpenStewardName { // opening has recorded nothing that an end could miss
		grace = 0
	}
	halted := func() bool { return r.keeper.Halting() != "" }
	err := placement.UntilHalt(ctx, halted, grace, func(ctx workflow.Context) workflow.Future {
		return workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, options), name, request)
	}, out)
	if err != nil && halted() && wire.Decode(err) == nil { // the last attempt may have failed while it was being cancelled
		return temporal.NewCanceledError()
	}
	return err
}

// open makes store, desk and ledger ready, and starts the steward or resumes the one in the ledger.
func (r *run) open(ctx workflow.Context) error {
	info := workflow.GetInfo(ctx)
	input := stewardapi.OpenSteward{Steward: info.WorkflowExecution.ID, FirstRun: info.FirstRunID, Charter: r.charter, Ledger: r.from}
	if err := r.executeUntilHalt(ctx, stewardapi.OpenStewardName, "open "+r.charter.Repo.Address(), input, &r.opened); err != nil {
		return err
	}
	o := r.opened
	opened := loop.Event{Type: loop.StewardOpened, How: r.charter.Mode, Commit: o.Charter, Opened: &loop.Opened{
		Kind: r.charter.Kind, Repo: o.Repo, Base: o.Base, Desk: o.Desk, Host: o.Host, Known: o.Known,
	}}
	r.opened.Known = nil // the state has them
	if o.State != nil {
		r.Resume(*o.State, r.from)
		for _, g := range o.State.Gates { // the ledger has a gate before people are told of it: they know of these
			r.told[g.ID] = true
		}
		opened.Reason, r.opened.State = "the steward continues from its ledger", nil
	}
	events := []loop.Event{opened}
	for _, w := range o.Warnings {
		events = append(events, loop.Event{Type: loop.Warned, Reason: w})
	}
	if err := r.emit(ctx, events...); err != nil {
		return err
	}
	r.due = true // a steward that starts or resumes first compares the world with its record (S11)
	return nil
}

// record appends pending events to the ledger and writes the artifacts.
func (r *run) record(ctx workflow.Context, summary string, closing bool, further ...loop.Event) error {
	if len(r.Pending()) == 0 && len(further) == 0 && !closing {
		return nil
	}
	milestone := closing || slices.ContainsFunc(append(r.Pending(), further...), func(e loop.Event) bool {
		return e.Type == loop.MilestoneReached || e.Type == loop.TaskStateChanged || e.Type == loop.LoopDetected
	})
	var out stewardapi.TasksRecorded
	_, err := r.Append(ctx, further, func(entry func() api.Entry) (api.Appended, bool, error) {
		e := entry()
		e.Ref, e.Hasty = r.opened.Ref, r.closing
		if len(e.Events) == 0 && !closing { // somebody else recorded them
			out = stewardapi.TasksRecorded{Appended: api.Appended{Ledger: e.Ledger}}
			return out.Appended, true, nil
		}
		if summary == "" {
			summary = "record " + string(e.Events[len(e.Events)-1].Type)
		}
		err := r.executeUntilHalt(ctx, stewardapi.RecordTasksName, summary, stewardapi.RecordTasks{Entry: e, Milestone: milestone, Close: closing}, &out)
		return out.Appended, false, err
	})
	if err != nil {
		return err
	}
	r.appended = true
	r.show(ctx)
	var late []loop.Event
	if out.PushRefused != "" {
		late = append(late, loop.Event{Type: loop.PushRefused, Reason: out.PushRefused})
	}
	for _, text := range out.Mended {
		late = append(late, loop.Event{Type: loop.Warned, Reason: text})
	}
	if out.Stop != "" && r.State().HaltRequested == "" && !r.State().Paused && !closing { // STOP waits for a person (S6)
		late = append(late, loop.Event{Type: loop.MessageReceived, Message: loop.MessagePause, Reason: out.Stop, By: "loop-stop"})
	}
	late = append(late, steward.AfterRecord(r.State(), out)...)
	if len(late) == 0 || closing {
		return nil
	}
	return r.emit(ctx, late...)
}

// everySoOften makes a validation due at regular times (S12).
func (r *run) everySoOften(ctx workflow.Context) {
	interval := r.charter.ValidateEvery.D()
	if interval <= 0 {
		return
	}
	workflow.Go(ctx, func(ctx workflow.Context) {
		for workflow.NewTimerWithOptions(ctx, interval, workflow.TimerOptions{Summary: "until the next validation"}).Get(ctx, nil) == nil {
			r.due = true
		}
	})
}

// validate compares the world with the record, and applies the state of all loops: some may have ended unreported.
func (r *run) validate(ctx workflow.Context) error {
	s := r.State()
	input := stewardapi.Validate{Ref: r.opened.Ref, Ledger: s.Ledger, Charter: r.charter, Missed: s.Missed, Slots: s.Slots}
	var loops []string
	for _, t := range s.Tasks {
		for _, st := range t.Steps {
			if st.Loop != "" && st.Status != steward.Over && st.Status != steward.Pending {
				input.Children = append(input.Children, stewardapi.Child{Loop: st.Loop, Status: st.Status, Head: st.Head})
				loops = append(loops, st.Loop)
			}
		}
		loops = append(loops, list.Map(t.Ending, func(st steward.Step) string { return st.Loop })...)
	}
	var out stewardapi.Validated
	if err := r.execute(ctx, stewardapi.ValidateName, "is everything as recorded?", input, &out); err != nil {
		return err
	}
	err := r.follow(ctx, func(now steward.State) []loop.Event {
		unanswered := out
		unanswered.Drift = now.Unanswered(s, out.Drift)
		r.due = r.due || len(unanswered.Drift) < len(out.Drift)
		return steward.AfterValidation(now, r.charter, unanswered)
	})
	if err != nil {
		return err
	}
	for _, id := range loops {
		if err := r.read(ctx, id); err != nil {
			return err
		}
	}
	return nil
}
