package client

import (
	"context"
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

// Sent is what came of a message.
type Sent struct {
	Loop    string `json:"loop"`
	Message string `json:"message"`
	Via     string `json:"via"` // update, or signal where no worker answered; of a loop that has ended, ledger or workflow
	Reply   string `json:"reply,omitempty"`
}

// replyTimeout is how long a message waits for its reply.
const replyTimeout = 20 * time.Second

// Send carries a message to a loop: as an update, whose refusal comes back as a fault and leaves
// no trace; where no worker answers, or not even an engine runs, as a signal, which waits for one. It
// asks the loop first which gate is open, so that an answer is bound to the gate that was meant and cannot answer
// the next one.
func (c *Client) Send(ctx context.Context, id, name string, m loop.Message) (Sent, error) {
	out, err := c.carry(ctx, id, name, toLoop{c, id, name, m})
	if closed, ok := errors.AsType[*fault.Error](err); ok && closed.Code == fault.GateClosed { // the loop itself would have said so
		err = fault.New(govern.Closed(name), "%s", closed.What).Advise(closed.Do)
	}
	return out, err
}

// message is one on its way to somebody.
type message interface {
	family() Family
	// bound asks what waits, and returns the message bound to that. An error is that nobody answers.
	bound(context.Context) (any, error)
	// checked does the same with what the ledger of this host says, which knows all while nothing runs.
	// It refuses what its addressee would refuse.
	checked(context.Context) (any, error)
	// plain is the message as it is.
	plain() any
}

func (c *Client) carry(ctx context.Context, id, name string, m message) (out Sent, err error) {
	defer func() { err = m.family().Naming(id, err) }()
	out = Sent{Loop: id, Message: name}
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
	case err != nil:
		out.Via = "signal"
		return out, c.SDK.SignalWorkflow(ctx, id, "", name, m.plain())
	}
	out.Via = "update"
	out.Reply, err = c.update(ctx, id, name, m.family(), payload)
	return out, err
}

// leave leaves a message where its addressee finds it once a worker runs, on a host where nothing runs:
// as a signal, in an engine that is there for that long.
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
	if errors.As(err, &gone) { // `pawl up` gives the loop to the engine again
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

// bound is a message that answers a gate, bound to the one that is open.
func bound(name string, m loop.Message, open *loop.Gate) loop.Message {
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

// refused turns what an update comes back with into the fault that it was refused with.
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
	case errors.As(err, &gone): // it ended between the question and the answer
		return f.over(id, "")
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return fault.New(fault.InfrastructureError, "the %s %s took the message but has not replied: %v", f.Word, id, err).
		Advise("See `" + f.show + " " + id + "` for whether it took effect.")
}
