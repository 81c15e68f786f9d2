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
	"pawl/internal/govern"
	"pawl/internal/loop"
	"pawl/internal/wire"
)

// Sent is the result of sending a message.
type Sent struct {
	Loop    string `json:"loop"`
	Message string `json:"message"`
	Via     string `json:"via"` // update, or signal if no worker answered; for an ended loop, ledger or workflow
	Reply   string `json:"reply,omitempty"`
	Already bool   `json:"already,omitempty"` // the proposal had this answer before, and nothing was recorded
}

// replyTimeout is how long a message waits for its reply.
const replyTimeout = 20 * time.Second

// Send carries a message to a loop. It sends an update, whose refusal comes back as a fault and leaves no trace. If
// no worker answers, or no engine runs, it sends a signal, which waits for a worker. Send asks the loop first which
// gate is open and binds an answer to that gate, so the answer can't close the next one. If nobody answers, the ledger on
// this host says which gate is open.
func (c *Client) Send(ctx context.Context, id, name string, m loop.Message) (Sent, error) {
	out, err := c.carry(ctx, id, name, toLoop{c, id, name, m})
	if closed, ok := errors.AsType[*fault.Error](err); ok && closed.Code == fault.GateClosed { // the loop itself would give this code
		err = fault.New(govern.Closed(name), "%s", closed.What).Advise(closed.Do)
	}
	return out, err
}

// message is a message to a loop or a steward.
type message interface {
	family() Family
	// bound asks which gates are open, and returns the message bound to the right one. An error means that nobody
	// answers.
	bound(context.Context) (any, error)
	// checked does the same with the ledger of this host, which is complete while nothing runs. It refuses what the
	// addressee would refuse.
	checked(context.Context) (any, error)
	// left returns the message bound to the gate that is open by the ledger of this host, if it has one.
	left(context.Context) any
	// plain returns the message without a gate.
	plain() any
}

func (c *Client) carry(ctx context.Context, id, name string, m message) (out Sent, err error) {
	defer func() { err = m.family().Naming(id, err) }()
	out = Sent{Loop: id, Message: name}
	if payload, err := json.Marshal(m.plain()); err == nil {
		if f := govern.Carried(payload); f != nil { // before it is in Temporal's history
			return out, f
		}
	}
	if c.SDK == nil {
		out.Via = "signal"
		return out, c.leave(ctx, id, name, m)
	}
	if err := c.alive(ctx, id, m.family()); err != nil {
		return out, err
	}
	payload, err := m.bound(ctx)
	var failed *serviceerror.QueryFailed // a worker did answer
	switch {
	case errors.As(err, &failed):
		payload = m.plain()
	case err != nil && ctx.Err() != nil:
		return out, context.Cause(ctx)
	case err != nil: // it waits for a worker, and may find another gate open then
		out.Via = "signal"
		return out, c.SDK.SignalWorkflow(ctx, id, "", name, m.left(ctx))
	}
	out.Via = "update"
	out.Reply, err = c.update(ctx, id, name, m.family(), payload)
	return out, err
}

// leave leaves a message on a host where nothing runs. It starts an engine for that time and sends a signal, which
// the addressee gets once a worker runs.
func (c *Client) leave(ctx context.Context, id, name string, m message) error {
	payload, err := m.checked(ctx)
	if err != nil {
		return err
	}
	if c.Bring == nil {
		return NoEngine()
	}
	if err := c.Bring(ctx); err != nil {
		return err
	}
	var gone *serviceerror.NotFound
	err = c.SDK.SignalWorkflow(ctx, id, "", name, payload)
	if errors.As(err, &gone) { // `pawl up` starts the loop again on this engine
		return NoEngine()
	}
	return err
}

// toLoop is a message to a loop.
type toLoop struct {
	*Client
	id, name string
	m        loop.Message
}

func (t toLoop) family() Family { return Loop }
func (t toLoop) plain() any     { return t.m }

func (t toLoop) bound(ctx context.Context) (any, error) {
	gate, err := t.Gate(ctx, t.id)
	return bound(t.name, t.m, gate), err
}

func (t toLoop) checked(ctx context.Context) (any, error) {
	l, head, err := t.Ledger(ctx, t.id)
	if err != nil {
		return nil, err
	}
	state, err := l.State(ctx, head)
	if err != nil {
		return nil, err
	}
	if state.Status.Ended() {
		return nil, Loop.over(t.id, string(state.Status))
	}
	contract, err := l.Contract(ctx, head)
	if err != nil {
		return nil, err
	}
	m := bound(t.name, t.m, state.Gate)
	_, err = govern.Answer(state, contract.Spec, t.name, m)
	return m, err
}

func (t toLoop) left(ctx context.Context) any {
	l, head, err := t.Ledger(ctx, t.id)
	if err != nil {
		return t.m
	}
	state, err := l.State(ctx, head)
	if err != nil {
		return t.m
	}
	return bound(t.name, t.m, state.Gate)
}

// bound returns a message that answers a gate, bound to the open gate. An approval with a hash names what it is for, and
// the loop knows by that whether it was given before.
func bound(name string, m loop.Message, open *loop.Gate) loop.Message {
	if name == loop.MessageApprove && m.Hash != "" {
		return m
	}
	if m.Gate == "" && open != nil && govern.AnswersGates(name) {
		m.Gate = open.ID
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
	var gone *serviceerror.NotFound
	switch {
	case err == nil:
		return nil
	case wire.Decode(err) != nil:
		return wire.Decode(err)
	case errors.As(err, &app):
		return fault.New(fault.InfrastructureError, "%s", app.Message())
	case errors.As(err, &gone): // it ended between the query and the update
		return f.over(id, "")
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return fault.New(fault.InfrastructureError, "the %s %s took the message but has not replied: %v", f.Word, id, err).
		Advise("See `" + f.show + " " + id + "` for whether it took effect.")
}
