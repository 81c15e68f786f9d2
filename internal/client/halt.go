package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"

	"pawl/internal/exec/supervisor"
	"pawl/internal/fault"
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
func haltAlone[M any](ctx context.Context, c *Client, id, name string, m message[M], open []loop.Gate) (Sent, error) {
	served := c.Served(ctx)
	if !served {
		begun, err := c.hasBegun(ctx, id)
		if err != nil {
			return Sent{}, err
		}
		if !begun {
			return endedUnbegun(id, name), c.endUnopened(ctx, id, m.halts)
		}
	}
	out := Sent{Loop: id, Message: name, Via: "signal"}
	if err := c.SDK.SignalWorkflow(ctx, id, "", name, m.bound(open)); err != nil {
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

// haltUntold ends a loop or a steward of this host to which no halt can be sent: its engine is stopped, or can't write. It
// ends what runs of it and notes the end with the message, which a worker sends when the engine answers. cause is why it
// does not answer.
func haltUntold[M any](ctx context.Context, c *Client, id, name string, m message[M], cause error) (Sent, error) {
	out := Sent{Loop: id, Message: name, Via: "record", Untold: true, Reply: "halted. Its end is recorded when the engine answers again"}
	r, found := c.Record(id)
	if !found {
		return out, c.closeNote(id, m.Family, cause)
	}
	if isSteward := m.Family == Steward; r.Steward() != isSteward {
		return out, cause
	}
	if end, ended := hostrecord.NotedEnd(c.Home, r); r.Closed || ended {
		return out, m.over(id, end.Status)
	}
	children := m.children()
	if err := c.endUntold(r, name, m.bound(nil), m.halts); err != nil {
		return out, undelivered(cause, err)
	}
	for _, child := range children {
		r, found := c.Record(child)
		if !found || hostrecord.Over(c.Home, r) {
			continue
		}
		note := ofSteward(m.halts)
		if err := c.endUntold(r, loop.MessageHalt, note, note.Note); err != nil {
			return out, undelivered(cause, err)
		}
	}
	return out, nil
}

// undelivered is the fault for a halt that could neither be sent nor noted.
func undelivered(cause, err error) error {
	f, ok := errors.AsType[*fault.Error](cause)
	if !ok {
		return errors.Join(cause, err)
	}
	return fault.New(f.Code, "%s. Nothing of it runs any more, but its end can't be noted: %v", strings.TrimSuffix(f.What, "."), err).Advise(f.Do)
}

// endUntold ends what runs of a record, and notes its end with a message that its run has yet to get.
func (c *Client) endUntold(r hostrecord.Record, name string, m any, reason string) error {
	payload, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("encoding the message %s: %w", name, err)
	}
	if err := c.reap(r); err != nil {
		return err
	}
	end := c.haltedEnd("", reason)
	end.Untold = &hostrecord.Untold{Name: name, Payload: payload}
	return hostrecord.NoteEnd(c.Home, r, end)
}

// closeNote notes that a loop or a steward is over which no worker has opened. A worker ends its run when the engine
// answers.
func (c *Client) closeNote(id string, f Family, cause error) error {
	r, noted := c.lastNote(id)
	switch {
	case !noted:
		return cause
	case r.Closed:
		return f.over(id, string(loop.Halted))
	}
	r.Closed, r.ClosedAt = true, c.Now()
	return hostrecord.Announce(c.Home, r)
}

// ofSteward is the halt of a loop whose steward was ended.
func ofSteward(reason string) loop.Message {
	return loop.Message{Note: "its steward was ended: " + reason}
}

// haltChild halts a loop of a steward that is being halted, and for which no worker answers either.
func (c *Client) haltChild(ctx context.Context, id, reason string) error {
	m := ofSteward(reason)
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
func (c *Client) endHere(ctx context.Context, id, reason string) (ended bool, err error) {
	d, err := c.asked(ctx, id)
	if err != nil {
		return false, c.Unreachable(ctx, err)
	}
	info := d.GetWorkflowExecutionInfo()
	if endStatus(info.GetStatus()).Ended() {
		return true, nil
	}
	r, found := c.recordHere(info)
	if !found {
		if r, noted := c.lastNote(id); !noted || r.FirstRun != info.GetFirstRunId() {
			return false, nil
		}
		return true, c.endUnopened(ctx, id, reason)
	}
	if err := c.reap(r); err != nil {
		return false, err
	}
	if c.begins(ctx, r) {
		return true, c.endUnopened(ctx, id, reason)
	}
	return true, c.noteHalt(r, info.GetExecution().GetRunId(), reason)
}

// reap ends what runs of a loop or a steward on this host.
func (c *Client) reap(r hostrecord.Record) error {
	_, err := supervisor.Reap(r.Token(), r.Desk(c.Home), r.Judge(c.Home))
	for _, side := range r.Sides(c.Home) {
		_, failed := supervisor.Reap(side.Token(), side.Desk(c.Home))
		err = errors.Join(err, failed)
	}
	if err != nil {
		return fmt.Errorf("ending what runs of %s: %w", r.Loop, err)
	}
	return nil
}

// recordHere returns this host's record of a running loop or steward, unless it has moved to another host.
func (c *Client) recordHere(info *workflowpb.WorkflowExecutionInfo) (r hostrecord.Record, found bool) {
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
func (c *Client) noteHalt(r hostrecord.Record, run, reason string) error {
	return hostrecord.NoteEnd(c.Home, r, c.haltedEnd(run, reason))
}

func (c *Client) haltedEnd(run, reason string) hostrecord.End {
	end := rules.Interrupted.Because(reason)
	return hostrecord.End{Run: run, Status: string(end.Status), Code: end.Code, Reason: end.Reason, Time: c.Now()}
}

// haltLost ends a loop or a steward of this host that its engine has lost: no worker starts it again from its ledger.
func (c *Client) haltLost(id, reason string) (Sent, error) {
	r, found := c.Record(id)
	if !found {
		return Sent{}, c.NoEngine()
	}
	return Sent{Loop: id, Message: loop.MessageHalt, Via: "record", Reply: "halted"}, c.noteHalt(r, "", reason)
}

// opens reports whether this host has begun to open a loop or a steward and recorded nothing of it yet.
func (c *Client) opens(ctx context.Context, id string) bool {
	r, found := c.Record(id)
	return found && !hostrecord.Over(c.Home, r) && c.begins(ctx, r)
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
func (c *Client) endUnopened(ctx context.Context, id, reason string) error {
	if err := c.SDK.TerminateWorkflow(ctx, id, "", cmp.Or(reason, "halted")); err != nil {
		return fmt.Errorf("ending %s: %w", id, err)
	}
	if r, ok := c.lastNote(id); ok {
		r.Closed, r.ClosedAt = true, c.Now()
		return hostrecord.Announce(c.Home, r)
	}
	if r, ok := c.Record(id); ok && !r.Closed && c.begins(ctx, r) {
		return c.noteHalt(r, "", reason)
	}
	return nil
}

// awaitsRecording returns the end of a loop or a steward that was halted here while no worker answered, if a worker still has
// to record it.
func (c *Client) awaitsRecording(id string) (end hostrecord.End, ok bool) {
	r, found := c.Record(id)
	if !found || !hostrecord.Awaits(c.Home, r) {
		return hostrecord.End{}, false
	}
	return hostrecord.NotedEnd(c.Home, r)
}

// Abandon ends the run of a loop or a steward that was halted here, before its record is removed: no worker could record
// that end any more. It starts an engine where none runs, else the run would go on without its record.
func (c *Client) Abandon(ctx context.Context, r hostrecord.Record) error {
	end, _ := hostrecord.NotedEnd(c.Home, r)
	if !hostrecord.Awaits(c.Home, r) {
		return nil
	}
	if c.SDK == nil {
		if c.Bring == nil {
			return c.NoEngine()
		}
		if err := c.Bring(ctx); err != nil {
			return err
		}
	}
	err := c.SDK.TerminateWorkflow(ctx, r.Loop, end.Run, end.Reason)
	if gone(err) {
		return nil
	}
	return err
}
