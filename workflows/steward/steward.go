// Package steward has the workflow Steward (S): it takes tasks, makes a planner plan them, runs their steps as child
// loops and asks people. internal/steward decides what happens next. This package does it, and records it before and
// after. Start reading at Steward, then run.work.
package steward

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"pawl/internal/client/launch"
	"pawl/internal/fault"
	"pawl/internal/fault/wire"
	"pawl/internal/loop"
	"pawl/internal/loop/rules"
	"pawl/internal/spec/kind"
	"pawl/internal/steward"
	stewardapi "pawl/internal/steward/api"
	"pawl/internal/steward/charter"
	"pawl/internal/steward/task"
	"pawl/workflows/display"
	"pawl/workflows/gates"
	"pawl/workflows/journal"
)

// Resume is the second, optional argument of a steward.
type Resume = launch.Resume[Carry]

// Carry is everything that the next run needs.
type Carry struct {
	journal.Saved[steward.State]
	Opened Opened `json:"opened"`
	// Told are the open gates of which people were notified as new.
	Told []string `json:"told,omitempty"`
}

// Opened says where the steward is.
type Opened = stewardapi.StewardOpened[steward.State]

// Result is what a steward returns when it was ended.
type Result struct {
	Steward    string             `json:"steward"`
	Status     loop.Status        `json:"status"`
	Reason     string             `json:"reason"`
	Tasks      int                `json:"tasks"`
	Indicators steward.Indicators `json:"indicators"`
	Usage      task.Usage         `json:"usage"`
	Ledger     string             `json:"ledger"`
}

// run is one run of a steward. Its state is in the journal. Everything else in it can be derived from that state.
type run struct {
	*journal.Journal[steward.State]
	keeper     *gates.Keeper[steward.State]
	charter    charter.Charter
	opened     Opened
	from       string             // the ledger commit to continue from, "" for none
	jobs       map[string]job     // under way, by their keys
	asleep     map[string]bool    // sleeping tasks, with the time at which they wake
	begun      map[string]bool    // loops that are being adopted or started
	unheard    []task.ChildEvent  // reports of those loops so far
	finished   int                // jobs that have ended
	watched    map[string]bool    // gates with a timer
	told       map[string]bool    // gates of which people were notified as new
	notifier   display.Notifier   // notifies people
	attributes display.Attributes // what Temporal lists about it
	due        bool               // it is time to compare the world with the record
	appended   bool               // this run has recorded something
	haltable   bool               // a halt ends what the whole steward waits for, too; false for runs begun before that was so
	saysEnd    bool               // the memo says how a steward ended that never opened
	closing    bool               // a halted steward ends: what it still records is tried only a few times
}

// Steward is the workflow of a steward: its input is a charter, its ID the charter's name. It runs until it is ended.
func Steward(ctx workflow.Context, input converter.RawValue, resume Resume) (*Result, error) {
	r, err := setup(ctx, input, resume)
	if err == nil {
		err = r.work(ctx)
	}
	return r.finish(ctx, err)
}

// setup restores what an earlier run carried over, registers the handlers and reads the charter.
func setup(ctx workflow.Context, input converter.RawValue, resume Resume) (*run, error) {
	id := workflow.GetInfo(ctx).WorkflowExecution.ID
	carry := Carry{Saved: journal.Saved[steward.State]{State: steward.New(id)}}
	if resume.Carry != nil {
		carry = *resume.Carry
	}
	r := &run{Journal: journal.New(ctx, carry.Saved), opened: carry.Opened, from: resume.Ledger, jobs: map[string]job{}, asleep: map[string]bool{}, begun: map[string]bool{}, watched: map[string]bool{}, told: map[string]bool{}}
	for _, gate := range carry.Told {
		r.told[gate] = true
	}
	haltVersion := workflow.GetVersion(ctx, "halt", workflow.DefaultVersion, 2)
	r.haltable, r.saysEnd = haltVersion >= 1, haltVersion >= 2
	r.keeper = gates.New(r.Journal, gates.Rules{
		Messages: steward.Messages, Others: []string{task.ChildSignal}, Answers: steward.Answers, Show: r.show, Notify: r.notify,
		Check: func(name string, payload []byte, _ time.Time) (rules.Reply, error) {
			m, err := steward.Decode(payload)
			if err != nil {
				return rules.Reply{}, err
			}
			return steward.Answer(r.State(), r.charter, name, m)
		},
		Record:   func(ctx workflow.Context, summary string, _ bool) error { return r.record(ctx, summary, false) },
		Patience: func(g loop.Gate) time.Duration { return patience(g, r.charter.Limits.Waiting.D(), workflow.Now(ctx)) },
	})
	var invalid error
	r.charter, invalid = parse(id, input) // before the handlers, because messages that this run was started with arrive with them
	if err := r.handleQueries(ctx); err != nil {
		return r, err
	}
	if err := r.keeper.Handle(ctx); err != nil {
		return r, err
	}
	if invalid != nil {
		return r, wire.Encode(fault.New(fault.InvalidSpec, "%v", invalid), nil)
	}
	r.hear(ctx)
	r.show(ctx)
	return r, nil
}

// parse reads the charter strictly and checks it against the workflow.
func parse(id string, input converter.RawValue) (charter.Charter, error) {
	c, err := charter.Parse(input.Payload().GetData())
	if err != nil {
		return charter.Charter{}, err
	}
	if err := c.ValidateInput(); err != nil {
		return charter.Charter{}, err
	}
	if c.Kind != kind.Steward.Name {
		return charter.Charter{}, fmt.Errorf("kind: the spec is for a workflow of kind %s, this one is of kind %s", c.Kind, kind.Steward.Name)
	}
	if c.Name != id {
		return charter.Charter{}, fmt.Errorf("name: the workflow ID %q must be the steward's name %q", id, c.Name)
	}
	return c, nil
}

// patience returns how long a gate waits until people are notified again: after an eighth of the time, at the end of
// the time, and then each time that it has passed again (S8, S10).
func patience(g loop.Gate, waiting time.Duration, now time.Time) time.Duration {
	interval := waiting / 8
	if g.Escalated > 0 {
		interval = waiting * time.Duration(g.Escalated)
	}
	return max(g.OpenedAt.Add(interval).Sub(now), time.Second)
}

// work runs until the steward ends: it records what has happened and does what follows.
func (r *run) work(ctx workflow.Context) error {
	if r.opened.Ref == "" {
		if err := r.open(ctx); err != nil {
			return err
		}
	}
	r.everySoOften(ctx)
	r.due = r.due || !r.appended && r.from == "" && r.Ledger() != "" // a new run learns of a child's end only by signals
	for {
		for len(r.Pending()) > 0 {
			if r.leaves(ctx) { // messages may come so fast that events are always pending
				return r.continueAsNew(ctx)
			}
			if err := r.record(ctx, "", false); err != nil {
				return err
			}
		}
		r.watch(ctx)
		r.sleep(ctx)
		events, jobs := steward.Next(r.State(), r.charter, r.underWay())
		if len(events) > 0 {
			if err := r.emit(ctx, events...); err != nil {
				return err
			}
			continue
		}
		long := r.long(ctx)
		if long && r.State().HaltRequested == "" {
			jobs = nil // no new job starts
		} else if r.due {
			r.due = false
			r.background(ctx, "validate", steward.Job{}, r.validate)
		}
		ended := r.start(ctx, jobs)
		r.show(ctx)
		if ended && len(r.jobs) == 0 {
			return nil
		}
		if r.leaves(ctx) {
			return r.continueAsNew(ctx)
		}
		done := r.finished
		err := workflow.Await(ctx, func() bool {
			if len(r.Pending()) > 0 || r.finished != done {
				return true
			}
			if r.long(ctx) {
				return !long || r.idle(ctx)
			}
			return r.due
		})
		if err != nil {
			return err
		}
	}
}

// long reports whether the history is so long that a new run should continue.
func (r *run) long(ctx workflow.Context) bool {
	return workflow.GetInfo(ctx).GetContinueAsNewSuggested() && r.appended
}

// leaves reports whether the steward continues in a new run now. It first receives what has arrived. Events that the
// ledger lacks are carried over if they are not too large.
func (r *run) leaves(ctx workflow.Context) bool {
	if !r.long(ctx) || r.State().HaltRequested != "" || len(r.jobs) > 0 {
		return false
	}
	r.keeper.Drain(ctx)
	r.drain(ctx)
	return r.idle(ctx) && r.Light()
}

// idle reports whether nothing is under way that this run's end would lose.
func (r *run) idle(ctx workflow.Context) bool {
	return len(r.jobs) == 0 && r.notifier.Quiet() && r.Quiet() && workflow.AllHandlersFinished(ctx)
}

// emit records that something happened, between two entries of the ledger. It gives an ID to each gate.
func (r *run) emit(ctx workflow.Context, events ...loop.Event) error {
	return r.Turn(ctx, func() { r.keeper.Emit(ctx, events...) })
}

// follow emits what follows from the state at the steward's turn.
func (r *run) follow(ctx workflow.Context, decide func(steward.State) []loop.Event) error {
	return r.Turn(ctx, func() { r.keeper.Emit(ctx, decide(r.State())...) })
}

// continueAsNew limits the history: the steward continues in a new run with the same state. Child loops keep running
// (ParentClosePolicy ABANDON) and report their end by signals.
func (r *run) continueAsNew(ctx workflow.Context) error {
	input, err := converter.GetDefaultDataConverter().ToPayload(r.charter)
	if err != nil {
		return err
	}
	carry := Carry{Saved: r.Save(), Opened: r.opened}
	for _, g := range r.State().Gates {
		if r.told[g.ID] {
			carry.Told = append(carry.Told, g.ID)
		}
	}
	ctx = workflow.WithWorkflowTaskTimeout(ctx, launch.StewardTaskTimeout)
	return workflow.NewContinueAsNewError(ctx, workflow.GetInfo(ctx).WorkflowType.Name, converter.NewRawValue(input), Resume{Carry: &carry})
}

// finish records the end. A person's halt and Cancel are ordinary ends; anything else is a failure.
func (r *run) finish(ctx workflow.Context, err error) (*Result, error) {
	if workflow.IsContinueAsNewError(err) {
		return nil, err
	}
	cancelled := temporal.IsCanceledError(err) || (err != nil && ctx.Err() != nil)
	ctx, _ = workflow.NewDisconnectedContext(ctx) // the end is recorded after Cancel too
	if r.haltable {
		if waited := r.heed(ctx); waited != nil {
			return nil, waited
		}
	}
	if cancelled {
		err = r.cancel(ctx)
	}
	status, reason := loop.Halted, r.State().HaltRequested
	if err != nil {
		status, reason = loop.Failed, err.Error()
		if f := wire.Decode(err); f != nil {
			reason = f.What
		}
	}
	ended := loop.Event{Type: loop.StewardEnded, Status: status, Reason: loop.Clip(reason, 1000)}
	if r.opened.Ref != "" && !wire.Is(err, fault.LedgerAhead) {
		recordErr := r.record(ctx, "the steward is ended", true, ended)
		if r.closing && recordErr != nil && wire.Decode(recordErr) == nil { // it has ended all the same
			ended.Reason = loop.Clip(reason+"; its ledger doesn't have the end: "+inWords(recordErr), 1000)
			recordErr = r.emit(ctx, ended)
		}
		r.notify(ctx, loop.StewardEnded, "", ended.Reason)
		err = cmp.Or(err, recordErr)
	} else {
		_ = r.emit(ctx, ended)
	}
	if waited := workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) && r.notifier.Quiet() }); waited != nil {
		return nil, waited
	}
	if r.saysEnd && r.opened.Ref == "" {
		display.EndedUnopened(ctx, string(ended.Status))
	}
	r.show(ctx)
	if err != nil {
		return nil, plainly(err)
	}
	s := r.State()
	return &Result{Steward: s.Steward, Status: s.Status, Reason: s.Reason, Tasks: s.TasksCount, Indicators: s.Indicators, Usage: s.Usage, Ledger: s.Ledger}, nil
}

// heed lets a halt have its turn that has ended what the steward was waiting for.
func (r *run) heed(ctx workflow.Context) error {
	err := workflow.Await(ctx, func() bool { return r.State().HaltRequested != "" || r.keeper.Halting() == "" })
	r.closing = r.State().HaltRequested != ""
	return err
}

// cancel ends the steward as a halt does, because a person has used Temporal's Cancel.
func (r *run) cancel(ctx workflow.Context) error {
	if r.opened.Ref == "" {
		return nil
	}
	if r.State().HaltRequested == "" {
		if err := r.emit(ctx, loop.Event{Type: loop.MessageReceived, Message: loop.MessageHalt, Reason: "cancelled through Temporal"}); err != nil {
			return err
		}
		r.closing = r.haltable
	}
	unrecorded := func() bool { return len(r.Pending()) > 0 && !r.closing } // the end is recorded with what is pending
	for {
		for unrecorded() {
			if err := r.record(ctx, "", false); err != nil {
				return err
			}
		}
		_, jobs := steward.Next(r.State(), r.charter, r.underWay())
		if r.start(ctx, jobs) && len(r.jobs) == 0 {
			return nil
		}
		done := r.finished
		if err := workflow.Await(ctx, func() bool { return unrecorded() || r.finished != done }); err != nil {
			return err
		}
	}
}

// inWords returns what made an activity fail, without Temporal's own words about it.
func inWords(err error) string {
	if failure, ok := errors.AsType[*temporal.ApplicationError](err); ok {
		return failure.Message()
	}
	return err.Error()
}

// plainly turns the fault of a failed activity into the workflow's fault.
func plainly(err error) error {
	if f := wire.Decode(err); f != nil {
		return wire.Encode(f, nil)
	}
	if _, ok := errors.AsType[*temporal.ApplicationError](err); ok {
		return err
	}
	return wire.Encode(fault.New(fault.InfrastructureError, "%v", err), nil)
}
