package client

import (
	"context"
	"errors"
	"fmt"
	"os"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"

	"pawl/internal/fault"
	"pawl/internal/govern"
	"pawl/internal/ledger"
	"pawl/internal/loop"
	"pawl/internal/store"
	"pawl/internal/workspace"
	"pawl/workflows"
)

// Snapshot is a loop as it was found.
type Snapshot struct {
	State  loop.State
	Ledger bool   // it is from the ledger, since nobody answered
	Why    string // nobody answered
}

// Snapshot returns a loop's state: from the loop itself, else from the ledger of this host. A worker
// that is down must not keep anybody from looking.
func (c *Client) Snapshot(ctx context.Context, id string) (Snapshot, error) {
	if c.SDK == nil {
		state, err := c.Recorded(ctx, id)
		return Snapshot{state, true, "no engine is running"}, err
	}
	d, err := c.SDK.DescribeWorkflowExecution(ctx, id, "")
	var gone *serviceerror.NotFound
	if err != nil && !errors.As(err, &gone) {
		return Snapshot{}, c.Unreachable(ctx, err)
	}
	info := d.GetWorkflowExecutionInfo()
	if err == nil {
		var state loop.State
		if state, err = c.State(ctx, id); err == nil {
			// What people say of the proposal after the end is in the ledger alone.
			if late, err := c.Recorded(ctx, id); err == nil && state.Status.Ended() && late.Loop == state.Loop &&
				late.StartedAt.Equal(state.StartedAt) && late.Seq > state.Seq {
				return Snapshot{State: late}, nil
			}
			return Snapshot{State: endedOutside(state, info)}, nil
		}
		if ctx.Err() != nil {
			return Snapshot{}, context.Cause(ctx)
		}
	}
	state, found := c.Recorded(ctx, id)
	switch {
	case found == nil && gone != nil:
		return Snapshot{state, true, "Temporal does not know this loop any more"}, nil
	case found == nil:
		return Snapshot{endedOutside(state, info), true, "no worker answers"}, nil
	case gone != nil:
		return Snapshot{}, NotFound(id)
	}
	return Snapshot{}, fault.New(fault.EngineUnreachable, "no worker answers for the loop %s, and this host has no ledger of it", id).
		Advise("Start a worker (" + c.AWorker() + ") on the loop's host.")
}

// endedOutside is the state of a loop that somebody ended without asking it. A workflow that was
// terminated has no last event, and goes on saying what it did.
func endedOutside(s loop.State, info *workflowpb.WorkflowExecutionInfo) loop.State {
	end, ended := outside[info.GetStatus()]
	if !ended || s.Status.Ended() {
		return s
	}
	e := end.Event(s.Usage)
	e.Seq, e.Time = s.Seq, info.GetCloseTime().AsTime()
	return s.Apply(e)
}

// outside are the ends that no loop comes to by itself.
var outside = map[enumspb.WorkflowExecutionStatus]govern.End{
	enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED: govern.Interrupted.Because("it was terminated from outside, without a report"),
	enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED:   govern.Interrupted.Because("it was cancelled before it began"),
	enumspb.WORKFLOW_EXECUTION_STATUS_TIMED_OUT:  govern.MachineFailed.Because("Temporal ended it"),
}

// Recorded returns a loop's state as the ledger on this host has it: ALO_LOOP_NOT_FOUND where
// there is none.
func (c *Client) Recorded(ctx context.Context, id string) (loop.State, error) {
	l, head, err := c.Ledger(ctx, id)
	if err != nil {
		return loop.State{}, err
	}
	return l.State(ctx, head)
}

// Ledger returns a loop's ledger on this host with its head. The ID may also name an earlier
// loop of a name that was used again, by its branch: name, name.2, name.3.
func (c *Client) Ledger(ctx context.Context, id string) (*ledger.Ledger, string, error) {
	r, ok := c.Record(id)
	if !ok {
		return nil, "", NotFound(id)
	}
	l, head, err := OpenRecord(ctx, r)
	if err == nil && head == "" {
		err = NotFound(id).(*fault.Error).Advise("It was begun on this host but has recorded nothing yet.")
	}
	return l, head, err
}

// OpenRecord returns the ledger of a workspace record with its head, "" where nothing is recorded yet.
func OpenRecord(ctx context.Context, r workspace.Record) (*ledger.Ledger, string, error) {
	if _, err := os.Stat(r.Store); err != nil {
		return nil, "", fmt.Errorf("opening the store of the loop %s: %w", r.Loop, err)
	}
	store, err := store.Open(ctx, r.Store)
	if err != nil {
		return nil, "", err
	}
	head, err := store.Ref(ctx, r.Ledger)
	return ledger.Open(store), head, err
}

// Record is the workspace record of a loop on this host.
func (c *Client) Record(id string) (workspace.Record, bool) {
	if r, ok := workspace.Latest(c.Home, id); ok {
		return r, true
	}
	records, err := workspace.List(c.Home)
	if err != nil {
		return workspace.Record{}, false
	}
	for _, r := range records {
		if r.Ref == id {
			return r, true
		}
	}
	return workspace.Record{}, false
}

// Contract asks a loop for its contract, with what a person wants to know before approving it.
func (c *Client) Contract(ctx context.Context, id string) (workflows.ContractView, error) {
	var v workflows.ContractView
	err := c.query(ctx, WorkerTimeout, id, &v, "contract")
	if err == nil && v.Contract == nil {
		err = errors.New("it is not drawn yet")
	}
	return v, err
}

// Events asks a loop for its events after a sequence number. It answers with the last ones only: to
// somebody who follows it and was left behind, this host's ledger tells those in between.
func (c *Client) Events(ctx context.Context, id string, after int64) (workflows.EventsView, error) {
	var v workflows.EventsView
	if err := c.query(ctx, QueryTimeout, id, &v, "events", after); err != nil {
		return v, err
	}
	if after == 0 || len(v.Events) == 0 || v.Events[0].Seq == after+1 {
		return v, nil
	}
	if recorded, err := c.History(ctx, id); err == nil {
		v.Events = append(between(recorded, after, v.Events[0].Seq), v.Events...)
	}
	return v, nil
}

// between returns the events after one and before another.
func between(events []loop.Event, after, before int64) []loop.Event {
	var out []loop.Event
	for _, e := range events {
		if e.Seq > after && e.Seq < before {
			out = append(out, e)
		}
	}
	return out
}

// History returns all events that this host's ledger has of a loop.
func (c *Client) History(ctx context.Context, id string) ([]loop.Event, error) {
	l, head, err := c.Ledger(ctx, id)
	if err != nil {
		return nil, err
	}
	return l.Events(ctx, head)
}
