package client

import (
	"cmp"
	"context"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"

	"pawl/internal/exec/supervisor"
	"pawl/internal/home/hostrecord"
	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/internal/loop/rules"
)

// haltGrace is how long a halt waits for a worker that was there a minute ago and has not answered.
const haltGrace = 4 * time.Second

// haltPoll is the time between two looks for whether the loop has ended.
const haltPoll = 250 * time.Millisecond

// haltAlone halts a loop or a steward for which no worker answers, and the loops of a steward. On the host of a loop this
// ends it: the signal waits for a worker, which records the end and makes the proposal, but nothing of it runs any more
// and people see that it has ended. On another host it is only the signal.
func haltAlone[M any](ctx context.Context, c *Client, id string, m message[M], open []loop.Gate) (Sent, error) {
	served := c.Served(ctx)
	if !served {
		begun, err := c.hasBegun(ctx, id)
		if err != nil {
			return Sent{}, err
		}
		if !begun {
			return endedUnbegun(id), c.endUnopened(ctx, id, m.halts)
		}
	}
	out := Sent{Loop: id, Message: loop.MessageHalt, Via: "signal"}
	if err := c.SDK.SignalWorkflow(ctx, id, "", loop.MessageHalt, m.bound(open)); err != nil {
		return out, err
	}
	if served && c.endsWithin(ctx, id, haltGrace) {
		out.Via, out.Reply = "workflow", "halted"
		return out, nil
	}
	ended, err := c.endHere(ctx, id, m.halts)
	if !ended || err != nil {
		return out, err
	}
	for _, child := range m.children() {
		if err := c.haltChild(ctx, child, m.halts); err != nil {
			return out, fmt.Errorf("halting the loop %s: %w", child, err)
		}
	}
	out.Via, out.Reply = "record", "halted. No worker answers: its end is recorded when one does"
	if !served {
		out.Reply = "halted. No worker runs: its end is recorded when one does (" + c.AWorker() + ")"
	}
	return out, nil
}

// haltChild halts a loop of a steward that is being halted, and for which no worker answers either.
func (c *Client) haltChild(ctx context.Context, id, why string) error {
	m := loop.Message{Note: "its steward was ended: " + why}
	err := c.SDK.SignalWorkflow(ctx, id, "", loop.MessageHalt, m)
	if gone(err) { // it has ended
		return nil
	}
	if err == nil {
		_, err = c.endHere(ctx, id, m.Note)
	}
	return err
}

// endsWithin waits for the end of a loop or a steward, and reports whether it has ended in time.
func (c *Client) endsWithin(ctx context.Context, id string, limit time.Duration) bool {
	for began := time.Now(); time.Since(began) < limit; {
		if c.Over(ctx, id) {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(haltPoll):
		}
	}
	return false
}

// endHere ends a loop or a steward on this host that was told to halt and has no worker: it ends what runs of it and
// notes the end. What has recorded nothing yet is over with that. It returns ended=false if this host does not have it.
func (c *Client) endHere(ctx context.Context, id, why string) (ended bool, err error) {
	d, err := c.asked(ctx, id)
	if err != nil {
		return false, c.Unreachable(ctx, err)
	}
	info := d.GetWorkflowExecutionInfo()
	if endStatus(info.GetStatus()).Ended() {
		return true, nil
	}
	r, here := c.recordHere(info)
	if !here {
		if r, noted := c.lastNote(id); !noted || r.FirstRun != info.GetFirstRunId() {
			return false, nil
		}
		return true, c.endUnopened(ctx, id, why)
	}
	if _, err := supervisor.Reap(r.Token(), r.Desk(c.Home), r.Judge(c.Home)); err != nil {
		return false, fmt.Errorf("ending what runs of %s: %w", id, err)
	}
	for _, side := range r.Sides(c.Home) {
		if _, err := supervisor.Reap(side.Token(), side.Desk(c.Home)); err != nil {
			return false, fmt.Errorf("ending what runs of %s: %w", id, err)
		}
	}
	if c.begins(ctx, r) {
		return true, c.endUnopened(ctx, id, why)
	}
	return true, c.noteHalt(r, info.GetExecution().GetRunId(), why)
}

// recordHere returns this host's record of a running loop or steward, unless it has moved to another host.
func (c *Client) recordHere(info *workflowpb.WorkflowExecutionInfo) (r hostrecord.Record, here bool) {
	r, ok := c.Record(info.GetExecution().GetWorkflowId())
	if !ok || r.FirstRun != info.GetFirstRunId() {
		return hostrecord.Record{}, false
	}
	moved := ""
	decode(info.GetMemo().GetFields()[api.HostMemo], &moved)
	host, err := c.Home.HostID()
	return r, err == nil && (moved == "" || moved == host)
}

// noteHalt notes on this host that a run was halted. run is "" if it is over with that, else a worker records the end.
func (c *Client) noteHalt(r hostrecord.Record, run, why string) error {
	end := rules.Interrupted.Because(why)
	return hostrecord.NoteEnd(c.Home, r, hostrecord.End{
		Run: run, Status: string(end.Status), Code: end.Code, Reason: end.Reason, Time: c.Now(),
	})
}

// haltLost ends a loop or a steward of this host that its engine has lost: no worker starts it again from its ledger.
func (c *Client) haltLost(id, why string) (Sent, error) {
	r, here := c.Record(id)
	if !here {
		return Sent{}, NoEngine()
	}
	return Sent{Loop: id, Message: loop.MessageHalt, Via: "record", Reply: "halted"}, c.noteHalt(r, "", why)
}

// opens reports whether this host has begun to open a loop or a steward and recorded nothing of it yet.
func (c *Client) opens(ctx context.Context, id string) bool {
	r, here := c.Record(id)
	return here && !hostrecord.Over(c.Home, r) && c.begins(ctx, r)
}

// hasBegun reports whether a worker has ever taken a loop or a steward.
func (c *Client) hasBegun(ctx context.Context, id string) (bool, error) {
	events := c.SDK.GetWorkflowHistory(ctx, id, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		if err != nil {
			return false, fmt.Errorf("reading whether %s has begun: %w", id, err)
		}
		if e.GetEventType() == enumspb.EVENT_TYPE_WORKFLOW_TASK_STARTED {
			return true, nil
		}
	}
	return false, nil
}

// endUnopened ends a loop or a steward that has recorded nothing, so no worker has to record its end.
func (c *Client) endUnopened(ctx context.Context, id, why string) error {
	if err := c.SDK.TerminateWorkflow(ctx, id, "", cmp.Or(why, "halted")); err != nil {
		return fmt.Errorf("ending %s: %w", id, err)
	}
	if r, ok := c.lastNote(id); ok {
		r.Closed, r.ClosedAt = true, c.Now()
		return hostrecord.Announce(c.Home, r)
	}
	if r, ok := c.Record(id); ok && !r.Closed && c.begins(ctx, r) {
		return c.noteHalt(r, "", why)
	}
	return nil
}

// awaitsRecording returns the end of a loop or a steward that was halted here while no worker ran, if a worker still has
// to record it.
func (c *Client) awaitsRecording(id string) (end hostrecord.End, ok bool) {
	r, here := c.Record(id)
	if !here || !hostrecord.Awaits(c.Home, r) {
		return hostrecord.End{}, false
	}
	return hostrecord.NotedEnd(c.Home, r)
}

// Abandon ends the run of a loop or a steward that was halted here, before its record is removed: no worker could record
// that end any more.
func (c *Client) Abandon(ctx context.Context, r hostrecord.Record) error {
	end, _ := hostrecord.NotedEnd(c.Home, r)
	if c.SDK == nil || !hostrecord.Awaits(c.Home, r) {
		return nil
	}
	err := c.SDK.TerminateWorkflow(ctx, r.Loop, end.Run, end.Reason)
	if gone(err) {
		return nil
	}
	return err
}
