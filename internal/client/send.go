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
	out, err := c.carry(ctx, id, name, m)
	var closed *fault.Error
	if errors.As(err, &closed) && closed.Code == fault.GateClosed { // the loop itself would have said so
		err = fault.New(govern.Closed(name), "%s", closed.What).Advise(closed.Do)
	}
	return out, err
}

func (c *Client) carry(ctx context.Context, id, name string, m loop.Message) (Sent, error) {
	out := Sent{Loop: id, Message: name}
	if c.SDK == nil {
		out.Via = "signal"
		return out, c.leave(ctx, id, name, m)
	}
	if err := c.Alive(ctx, id); err != nil {
		return out, err
	}
	gate, err := c.Gate(ctx, id)
	var failed *serviceerror.QueryFailed // a worker did answer
	if err != nil && !errors.As(err, &failed) {
		if ctx.Err() != nil {
			return out, context.Cause(ctx)
		}
		out.Via = "signal"
		return out, c.SDK.SignalWorkflow(ctx, id, "", name, m)
	}
	out.Via = "update"
	out.Reply, err = c.update(ctx, id, name, bound(name, m, gate))
	return out, err
}

// bound is a message that answers a gate, bound to the one that is open.
func bound(name string, m loop.Message, open *loop.Gate) loop.Message {
	if m.Gate == "" && open != nil && govern.AnswersGates(name) {
		m.Gate = open.ID
	}
	return m
}

// leave leaves a message where a loop finds it once a worker runs, on a host where nothing runs: as a
// signal, in an engine that is there for that long. Whether the loop would refuse it, its ledger says:
// while nothing runs it knows every gate.
func (c *Client) leave(ctx context.Context, id, name string, m loop.Message) error {
	l, head, err := c.Ledger(ctx, id)
	if err != nil {
		return err
	}
	state, err := l.State(ctx, head)
	if err != nil {
		return err
	}
	if state.Status.Ended() {
		return over(id, string(state.Status))
	}
	contract, err := l.Contract(ctx, head)
	if err != nil {
		return err
	}
	m = bound(name, m, state.Gate)
	if _, err := govern.Answer(state, contract.Spec, name, m); err != nil {
		return err
	}
	if c.Bring == nil {
		return NoEngine()
	}
	if err := c.Bring(ctx); err != nil {
		return err
	}
	var gone *serviceerror.NotFound
	err = c.SDK.SignalWorkflow(ctx, id, "", name, m)
	if errors.As(err, &gone) { // `pawl up` gives the loop to the engine again
		return NoEngine()
	}
	return err
}

func (c *Client) update(ctx context.Context, id, name string, m loop.Message) (reply string, err error) {
	limited, cancel := context.WithTimeout(ctx, replyTimeout)
	defer cancel()
	handle, err := c.SDK.UpdateWorkflow(limited, sdk.UpdateWorkflowOptions{
		WorkflowID: id, UpdateName: name, Args: []any{m}, WaitForStage: sdk.WorkflowUpdateStageCompleted,
	})
	if err == nil {
		err = handle.Get(limited, &reply)
	}
	return reply, c.refused(ctx, id, err)
}

// refused turns what an update comes back with into the fault that the loop refused it with.
func (c *Client) refused(ctx context.Context, id string, err error) error {
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
		return over(id, "")
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return fault.New(fault.InfrastructureError, "the loop %s took the message but has not replied: %v", id, err).
		Advise("See `pawl show " + id + "` for whether it took effect.")
}
