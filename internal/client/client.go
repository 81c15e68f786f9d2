package client

import (
	"context"
	"errors"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	sdk "go.temporal.io/sdk/client"

	"pawl/internal/client/launch"
	"pawl/internal/fault"
	"pawl/internal/home"
	"pawl/internal/loop"
	"pawl/internal/loop/api"
)

// Client reaches loops through Temporal, if an engine runs, and through this host's files.
type Client struct {
	Home home.Home
	SDK  sdk.Client // nil if no engine answers
	// Unanswered is why SDK is nil although this host's engine runs: its process is stopped. It is nil if none runs.
	Unanswered error

	Address, Namespace string
	Explicit           bool // the service was named explicitly, so it is not the embedded engine

	// Bring starts the engine of this host and sets SDK, to leave a message for a loop while no engine runs. It is
	// nil if there is no engine to start.
	Bring func(context.Context) error
	// Proposals works on the proposals of this host's loops.
	Proposals Proposals
	Now       func() time.Time
}

// Proposals works on proposals on the host that has their store, without Temporal.
type Proposals interface {
	ApplyHere(context.Context, api.Apply) (api.Applied, error)
	ReviewHere(context.Context, api.Review) (api.Reviewed, error)
}

// How long a query waits for its answer: to find out whether a worker runs, and when following a loop.
const (
	workerTimeout = 3 * time.Second
	QueryTimeout  = 5 * time.Second
)

// Alive returns nil if the loop exists and has not ended, else ALO_LOOP_NOT_FOUND, GATE_CLOSED, or that Temporal does
// not answer.
func (c *Client) Alive(ctx context.Context, id string) error { return c.alive(ctx, id, Loop) }

func (c *Client) alive(ctx context.Context, id string, f Family) error {
	d, err := c.asked(ctx, id)
	switch {
	case gone(err):
		return f.NotFound(id)
	case err != nil:
		return c.Unreachable(ctx, err)
	}
	if err := f.runs(id, d.GetWorkflowExecutionInfo().GetType().GetName()); err != nil {
		return err
	}
	if info := d.GetWorkflowExecutionInfo(); endStatus(info.GetStatus()).Ended() {
		return f.over(id, known(info))
	}
	return nil
}

// known returns the status with which an execution ended, "" if Temporal doesn't tell. A halt completes the workflow
// too, so only the search attribute tells the difference.
func known(info *workflowpb.WorkflowExecutionInfo) string {
	status, published := endStatus(info.GetStatus()), ""
	decode(info.GetSearchAttributes().GetIndexedFields()[launch.Status], &published)
	switch {
	case loop.Status(published).Ended():
		return published
	case status == loop.Completed:
		return ""
	}
	return string(status)
}

// gone reports whether an error says that Temporal does not know a workflow, or knows it no longer.
func gone(err error) bool {
	_, ok := errors.AsType[*serviceerror.NotFound](err)
	return ok
}

// State asks a loop for its state. An error means that no worker answered.
func (c *Client) State(ctx context.Context, id string) (loop.State, error) {
	return ask[loop.State](ctx, c, id, "state")
}

// Gate asks a loop what it waits for. An error means that no worker answered.
func (c *Client) Gate(ctx context.Context, id string) (*loop.Gate, error) {
	return ask[*loop.Gate](ctx, c, id, "gate")
}

// ask returns a workflow's answer to a query. An error means that no worker answered.
func ask[T any](ctx context.Context, c *Client, id, query string, args ...any) (answer T, err error) {
	err = c.query(ctx, workerTimeout, id, &answer, query, args...)
	return answer, err
}

func (c *Client) query(ctx context.Context, limit time.Duration, id string, out any, name string, args ...any) error {
	if c.SDK == nil {
		return c.NoEngine()
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	v, err := c.SDK.QueryWorkflow(ctx, id, "", name, args...)
	if err != nil {
		return err
	}
	return v.Get(out)
}

// Unreachable returns the fault for a service that stopped answering.
func (c *Client) Unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	f := fault.New(fault.EngineUnreachable, "Temporal at %s does not answer: %v", c.Address, err)
	if c.Explicit {
		return f.Advise("Check TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE and temporal.toml, and that the service runs.")
	}
	return f.Advise("The engine of this host runs and may be busy: repeat this in a moment. `pawl doctor` says which process it is.")
}

// endStatus returns the loop status that corresponds to a workflow's status.
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

// NoEngine returns the fault for an action that needs an engine that answers.
func (c *Client) NoEngine() error {
	if c.Unanswered != nil {
		return c.Unanswered
	}
	return fault.New(fault.EngineUnreachable, "no engine is running").
		Advise("Start it with `pawl up` in another terminal, then repeat this.")
}

// Over reports whether the loop or steward with that ID has ended, or Temporal does not know it any more.
func (c *Client) Over(ctx context.Context, id string) bool {
	d, err := c.asked(ctx, id)
	return gone(err) || err == nil && endStatus(d.GetWorkflowExecutionInfo().GetStatus()).Ended()
}
