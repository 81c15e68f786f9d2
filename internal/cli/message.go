package cli

import (
	"context"
	"errors"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"pawl/internal/fault"
	"pawl/internal/govern"
	"pawl/internal/loop"
)

// Sent is what came of a message.
type Sent struct {
	Loop    string `json:"loop"`
	Message string `json:"message"`
	Via     string `json:"via"` // update, or signal where no worker answered; of a loop that has ended, ledger or workflow
	Reply   string `json:"reply,omitempty"`
}

// How long a message waits: for a sign that a worker is there, and for its reply.
const (
	workerTimeout = 3 * time.Second
	replyTimeout  = 20 * time.Second
)

// send carries a message to a loop: as an update, whose refusal comes back as a fault and leaves
// no trace; where no worker answers, or not even an engine runs, as a signal, which waits for one. It
// asks the loop first which gate is open, so that an answer is bound to the gate that was meant and cannot answer
// the next one.
func (s *session) send(ctx context.Context, id, name string, m loop.Message) (Sent, error) {
	out, err := s.carry(ctx, id, name, m)
	var closed *fault.Error
	if errors.As(err, &closed) && closed.Code == fault.GateClosed { // the loop itself would have said so
		err = fault.New(govern.Closed(name), "%s", closed.What).Advise(closed.Do)
	}
	return out, err
}

func (s *session) carry(ctx context.Context, id, name string, m loop.Message) (Sent, error) {
	out := Sent{Loop: id, Message: name}
	if s.client == nil {
		out.Via = "signal"
		return out, s.leave(ctx, id, name, m)
	}
	if err := s.alive(ctx, id); err != nil {
		return out, err
	}
	gate, err := s.gate(ctx, id)
	var failed *serviceerror.QueryFailed // a worker did answer
	if err != nil && !errors.As(err, &failed) {
		if ctx.Err() != nil {
			return out, context.Cause(ctx)
		}
		out.Via = "signal"
		return out, s.client.SignalWorkflow(ctx, id, "", name, m)
	}
	out.Via = "update"
	out.Reply, err = s.update(ctx, id, name, bound(name, m, gate))
	return out, err
}

// bound is a message that answers a gate, bound to the one that is open.
func bound(name string, m loop.Message, open *loop.Gate) loop.Message {
	if m.Gate == "" && open != nil && name != "steer" && name != "halt" && name != "pause" && name != "setMode" {
		m.Gate = open.ID
	}
	return m
}

// leave leaves a message where a loop finds it once a worker runs, on a host where nothing runs: as a
// signal, in an engine that is there for that long. Whether the loop would refuse it, its ledger says:
// while nothing runs it knows every gate.
func (s *session) leave(ctx context.Context, id, name string, m loop.Message) error {
	l, head, err := s.openLedger(ctx, id)
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
	if s.app.deps.Embedded == nil {
		return noEngine()
	}
	if err := s.share(ctx); err != nil {
		return err
	}
	var gone *serviceerror.NotFound
	err = s.client.SignalWorkflow(ctx, id, "", name, m)
	if errors.As(err, &gone) { // `pawl up` gives the loop to the engine again
		return noEngine()
	}
	return err
}

func (s *session) update(ctx context.Context, id, name string, m loop.Message) (reply string, err error) {
	limited, cancel := context.WithTimeout(ctx, replyTimeout)
	defer cancel()
	handle, err := s.client.UpdateWorkflow(limited, client.UpdateWorkflowOptions{
		WorkflowID: id, UpdateName: name, Args: []any{m}, WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err == nil {
		err = handle.Get(limited, &reply)
	}
	return reply, s.refused(ctx, id, err)
}

// refused turns what an update comes back with into the fault that the loop refused it with.
func (s *session) refused(ctx context.Context, id string, err error) error {
	var app *temporal.ApplicationError
	var gone *serviceerror.NotFound
	switch {
	case err == nil:
		return nil
	case errors.As(err, &app):
		if _, known := fault.Lookup(fault.Code(app.Type())); known {
			what, advice, _ := strings.Cut(app.Message(), "\n")
			return fault.New(fault.Code(app.Type()), "%s", what).Advise(advice)
		}
		return fault.New(fault.InfrastructureError, "%s", app.Message())
	case errors.As(err, &gone): // it ended between the question and the answer
		return over(id, "")
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return fault.New(fault.InfrastructureError, "the loop %s took the message but has not replied: %v", id, err).
		Advise("See `pawl show " + id + "` for whether it took effect.")
}

// alive says that a loop is there and not over: ALO_LOOP_NOT_FOUND, GATE_CLOSED.
func (s *session) alive(ctx context.Context, id string) error {
	d, err := s.client.DescribeWorkflowExecution(ctx, id, "")
	var gone *serviceerror.NotFound
	switch {
	case errors.As(err, &gone):
		return notFound(id)
	case err != nil:
		return s.unreachable(ctx, err)
	}
	if status := endStatus(d.GetWorkflowExecutionInfo().GetStatus()); status.Ended() {
		return over(id, string(status))
	}
	return nil
}

// gate asks a loop what it waits for. An error means that no worker answered.
func (s *session) gate(ctx context.Context, id string) (*loop.Gate, error) {
	var g *loop.Gate
	err := s.query(ctx, workerTimeout, id, &g, "gate")
	return g, err
}

func (s *session) query(ctx context.Context, limit time.Duration, id string, out any, name string, args ...any) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	v, err := s.client.QueryWorkflow(ctx, id, "", name, args...)
	if err != nil {
		return err
	}
	return v.Get(out)
}

// unreachable is the fault of a service that stopped answering.
func (s *session) unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	f := fault.New(fault.EngineUnreachable, "Temporal at %s does not answer: %v", s.temporal.Address, err)
	if s.temporal.Explicit {
		return f.Advise("Check TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE and temporal.toml, and that the service runs.")
	}
	return f
}

func notFound(id string) error {
	return fault.New(fault.LoopNotFound, "there is no loop %s", id)
}

// over is the fault of a message to a loop that has ended.
func over(id, status string) error {
	if status != "" {
		status = " (" + status + ")"
	}
	return fault.New(fault.GateClosed, "the loop %s has ended%s and takes no more messages", id, status).
		Advise("See what came of it with `pawl show " + id + "`, or start it again with `pawl run`.")
}

// endStatus is the loop's status that a workflow's corresponds to.
func endStatus(status enumspb.WorkflowExecutionStatus) loop.Status {
	switch status {
	case enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, enumspb.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW, enumspb.WORKFLOW_EXECUTION_STATUS_PAUSED:
		return loop.Running
	case enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED:
		return loop.Completed
	case enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED, enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED:
		return loop.Halted
	}
	return loop.Failed
}
