package client

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"go.temporal.io/api/serviceerror"
	sdk "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"pawl/internal/fault"
	"pawl/internal/fault/wire"
	"pawl/internal/loop"
	"pawl/internal/loop/rules"
)

// Sent is the result of sending a message.
type Sent struct {
	Loop    string `json:"loop"`
	Message string `json:"message"`
	Via     string `json:"via"` // update, or signal if no worker answered; record for a halt that this host has noted; ledger or workflow for a loop that has ended or not begun
	Reply   string `json:"reply,omitempty"`
	Already bool   `json:"already,omitempty"` // the proposal had this answer before, and nothing was recorded

	Untold   bool           `json:"-"` // no engine has the message yet: a worker sends it when one answers
	Proposal *loop.Proposal `json:"-"` // the one that was answered, nil if the message went to the loop itself
}

// replyTimeout is how long a message waits for its reply.
const replyTimeout = 20 * time.Second

// Send carries a message to a loop. It sends an update, whose refusal comes back as a fault and leaves no trace. If
// no worker answers, or no engine runs, it sends a signal, which waits for a worker. Send asks the loop first which
// gate is open and binds an answer to that gate, so the answer can't close the next one. If nobody answers, the ledger on
// this host says which gate is open. An approval or a rejection that names no gate is for the proposal of a loop that
// has ended.
func (c *Client) Send(ctx context.Context, id, name string, m loop.Message) (Sent, error) {
	if m.Gate == "" && (name == loop.MessageApprove || name == loop.MessageReject) {
		if sent, done, err := c.review(ctx, id, name, m); done {
			return sent, err
		}
	}
	out, err := carry(ctx, c, id, name, message[loop.Message]{
		Family: Loop,
		halts:  rules.HaltReason(name, m),
		bound:  func(open []loop.Gate) loop.Message { return bound(name, m, open) },
		asked: func() ([]loop.Gate, error) {
			g, err := c.Gate(ctx, id)
			return gates(g), err
		},
		recorded: func() ([]loop.Gate, func(loop.Message) error, error) {
			l, head, err := c.Ledger(ctx, id)
			if err != nil {
				return nil, nil, err
			}
			state, err := l.State(ctx, head)
			if err != nil {
				return nil, nil, err
			}
			if state.Status.Ended() {
				return nil, nil, Loop.over(id, string(state.Status))
			}
			contract, err := l.Contract(ctx, head)
			return gates(state.Gate), func(m loop.Message) error {
				reply, err := rules.Answer(state.Ticking(c.Now()), contract.Spec, name, m)
				if err == nil && name == loop.MessageSteer {
					_, err = rules.Heard(state, rules.NewestVersion, reply)
				}
				return err
			}, err
		},
	})
	if closed, ok := errors.AsType[*fault.Error](err); ok && closed.Code == fault.GateClosed { // the loop itself would give this code
		err = fault.New(rules.Closed(name), "%s", closed.What).Advise(closed.Do)
	}
	return out, err
}

// gates returns the gate of a loop as a list, which is empty if none is open.
func gates(open *loop.Gate) []loop.Gate {
	if open == nil {
		return nil
	}
	return []loop.Gate{*open}
}

// message is a message to a loop or a steward.
type message[M any] struct {
	Family
	halts string // why it ends the addressee, "" if it does not
	// bound returns the message, bound to the gate that it answers if that is one of those.
	bound func(open []loop.Gate) M
	// asked returns the open gates. An error means that nobody answers.
	asked func() (open []loop.Gate, err error)
	// recorded returns the open gates by the ledger of this host, which is complete while nothing runs, and a function
	// that returns the fault with which the addressee would refuse the message.
	recorded func() (open []loop.Gate, refused func(M) error, err error)
	// loops returns the loops that end with the addressee, by the ledger of this host; it may be nil.
	loops func() []string
}

func (m message[M]) children() []string {
	if m.loops == nil {
		return nil
	}
	return m.loops()
}

// carry sends a message. A halt that can't be sent ends a loop or a steward of this host all the same.
func carry[M any](ctx context.Context, c *Client, id, name string, m message[M]) (Sent, error) {
	out, err := carryInTime(ctx, c, id, name, m)
	if err == nil || m.halts == "" || ctx.Err() != nil || isRefusal(err) {
		return out, err
	}
	return haltUntold(ctx, c, id, name, m, err)
}

// carryInTime sends a message. Where this host's disk is full, the embedded engine answers late or not at all.
func carryInTime[M any](ctx context.Context, c *Client, id, name string, m message[M]) (Sent, error) {
	full := ""
	if !c.Explicit {
		full = c.Home.Unwritable()
	}
	if full == "" {
		return carryPatiently(ctx, c, id, name, m)
	}
	limited, cancel := context.WithTimeout(ctx, fullDiskTimeout)
	defer cancel()
	out, err := carryNow(limited, c, id, name, m)
	if err == nil || ctx.Err() != nil || isRefusal(err) {
		return out, err
	}
	return out, fault.New(fault.EngineUnreachable, "%s, so the engine can't record the message: %s has not arrived", full, name).
		Advise("Make room there and send it again. Until then the " + m.Word + " does nothing that it would have to record.")
}

// fullDiskTimeout is how long a message may take that probably can't be recorded.
const fullDiskTimeout = 5 * time.Second

// haltPatience is how long a halt is sent again while the engine does not answer: for some seconds after its disk had no
// room, the engine is mending its database.
const haltPatience = 5 * time.Second

// carryPatiently sends a message, and a halt again until the engine answers. A halt takes effect once.
func carryPatiently[M any](ctx context.Context, c *Client, id, name string, m message[M]) (Sent, error) {
	limited, cancel := context.WithTimeout(ctx, haltPatience)
	defer cancel()
	for {
		out, err := carryNow(ctx, c, id, name, m)
		waits := m.halts != "" && c.SDK != nil && fault.CodeOf(err) == fault.EngineUnreachable
		if !waits {
			return out, err
		}
		select {
		case <-limited.Done():
			return out, err
		case <-time.After(retryEvery):
		}
	}
}

// isRefusal reports whether an error is the answer of the addressee, or of this host's records, and not an outage.
func isRefusal(err error) bool {
	f, ok := errors.AsType[*fault.Error](err)
	return ok && f.Code != fault.EngineUnreachable && f.Code != fault.InfrastructureError
}

func carryNow[M any](ctx context.Context, c *Client, id, name string, m message[M]) (out Sent, err error) {
	defer func() { err = m.About(id, err) }()
	out = Sent{Loop: id, Message: name}
	if payload, err := json.Marshal(m.bound(nil)); err == nil {
		if f := rules.Carried(payload); f != nil { // before it is in Temporal's history
			return out, f
		}
	}
	if c.SDK == nil {
		return leave(ctx, c, id, name, m)
	}
	if err := c.alive(ctx, id, m.Family); err != nil {
		return out, err
	}
	open, err := m.asked()
	var failed *serviceerror.QueryFailed // a worker did answer
	switch {
	case errors.As(err, &failed):
	case err != nil && ctx.Err() != nil:
		return out, context.Cause(ctx)
	case err != nil: // it waits for a worker, and may find another gate open then
		if end, halted := c.awaitsRecording(id); halted {
			return out, m.over(id, end.Status)
		}
		out.Via = "signal"
		open, refused, err := m.recorded() // none if this host has no ledger
		if m.halts != "" {
			return haltAlone(ctx, c, id, name, m, open)
		}
		if err == nil && name == loop.MessageSteer {
			if err := refused(m.bound(open)); err != nil { // nothing would ever come of it
				return out, err
			}
		}
		return out, c.SDK.SignalWorkflow(ctx, id, "", name, m.bound(open))
	}
	out.Via = "update"
	out.Reply, err = c.update(ctx, id, name, m.Family, m.bound(open))
	return out, err
}

// endedUnbegun is the result of a halt that ended a loop or steward which no worker had taken.
func endedUnbegun(id, name string) Sent {
	return Sent{Loop: id, Message: name, Via: "workflow", Reply: "halted before it began"}
}

// leave leaves a message on a host where nothing runs. It starts an engine for that time and sends a signal, which
// the addressee gets once a worker runs.
func leave[M any](ctx context.Context, c *Client, id, name string, m message[M]) (Sent, error) {
	out := Sent{Loop: id, Message: name, Via: "signal"}
	started, unbegun := c.lastNote(id)
	switch {
	case unbegun && started.Closed:
		return out, m.over(id, string(loop.Halted))
	case unbegun && m.halts == "":
		return out, c.notBegun(m.Family, id)
	}
	if end, halted := c.awaitsRecording(id); halted {
		return out, m.over(id, end.Status)
	}
	open, refused, err := m.recorded()
	payload := m.bound(open)
	if err == nil {
		err = refused(payload)
	} else if unbegun || m.halts != "" && c.opens(ctx, id) {
		err = nil
	}
	if err != nil {
		return out, err
	}
	if c.Bring == nil {
		return out, c.NoEngine()
	}
	if err := c.Bring(ctx); err != nil {
		return out, err
	}
	if m.halts != "" {
		out, err = haltAlone(ctx, c, id, name, m, open)
	} else {
		err = c.SDK.SignalWorkflow(ctx, id, "", name, payload)
	}
	if gone(err) && m.halts != "" {
		return c.haltLost(id, m.halts)
	}
	if gone(err) { // `pawl up` starts the loop again on this engine
		return out, c.NoEngine()
	}
	return out, err
}

// bound returns a message that answers a gate, bound to the open gate. An approval with a hash names what it is for, and
// the loop knows by that whether it was given before.
func bound(name string, m loop.Message, open []loop.Gate) loop.Message {
	if name == loop.MessageApprove && m.Hash != "" {
		return m
	}
	if m.Gate == "" && len(open) > 0 && rules.AnswersGates(name) {
		m.Gate = open[0].ID
	}
	return m
}

func (c *Client) update(ctx context.Context, id, name string, f Family, payload any) (reply string, err error) {
	limited, cancel := context.WithTimeout(ctx, replyTimeout)
	defer cancel()
	handle, err := c.SDK.UpdateWorkflow(limited, sdk.UpdateWorkflowOptions{
		WorkflowID: id, UpdateName: name, Args: []any{payload}, WaitForStage: sdk.WorkflowUpdateStageCompleted,
	})
	if err == nil {
		err = handle.Get(limited, &reply)
	}
	return reply, c.refused(ctx, id, f, err)
}

// refused turns the error of an update into the fault with which it was refused.
func (c *Client) refused(ctx context.Context, id string, f Family, err error) error {
	var app *temporal.ApplicationError
	switch {
	case err == nil:
		return nil
	case wire.Decode(err) != nil:
		return wire.Decode(err)
	case errors.As(err, &app):
		return fault.New(fault.InfrastructureError, "%s", app.Message())
	case gone(err): // it ended between the query and the update
		return f.over(id, "")
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return fault.New(fault.InfrastructureError, "the %s %s has not replied to the message: %v", f.Word, id, err).
		Advise("See `" + f.show + " " + id + "` for whether it took effect. If an engine ended before that, send the message again.")
}
