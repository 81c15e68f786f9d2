package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	sdk "go.temporal.io/sdk/client"

	"pawl/internal/client/launch"
	"pawl/internal/fault"
	"pawl/internal/git"
	"pawl/internal/loop/api"
	"pawl/internal/spec"
	"pawl/internal/spec/kind"
)

// Start starts the loop's workflow, anew or from a ledger.
func (c *Client) Start(ctx context.Context, id string, sp spec.Spec, ledger string) (sdk.WorkflowRun, error) {
	k, err := kind.Of(sp.Kind)
	if err != nil {
		return nil, err
	}
	running := fault.New(fault.LoopAlreadyRunning, "a loop %s is running already", id).
		Advise(fmt.Sprintf("Look at it with `pawl show %s`, end it with `pawl halt %s`, or start another with --id.", id, id))
	return c.start(ctx, StartOptions(id, sp), k, sp, ledger, running)
}

// start starts a workflow with that input, anew or from a ledger. The fault running says that it runs already.
func (c *Client) start(ctx context.Context, o sdk.StartWorkflowOptions, k kind.Kind, input any, ledger string, running *fault.Error) (sdk.WorkflowRun, error) {
	args := []any{input}
	if ledger != "" {
		args = append(args, launch.From(ledger))
	}
	run, err := c.SDK.ExecuteWorkflow(ctx, o, k.Workflow, args...)
	_, already := errors.AsType[*serviceerror.WorkflowExecutionAlreadyStarted](err)
	switch {
	case already:
		return nil, c.endsStill(o.ID, running)
	case err != nil:
		return nil, c.Unreachable(ctx, err)
	}
	return run, nil
}

// endsStill returns the fault for an ID of which a loop or a steward was halted here but has not ended in Temporal, or
// running if there is none.
func (c *Client) endsStill(id string, running *fault.Error) *fault.Error {
	if _, halted := c.awaitsRecording(id); !halted {
		return running
	}
	return fault.New(running.Code, "%s was halted, and no worker has recorded that yet", id).
		Advise("A worker does it in a moment once it runs (" + c.AWorker() + "). Repeat this then.")
}

// A worker polls for tasks every minute. One that did not poll within this time is gone.
const lastPoll = 70 * time.Second

// Served reports whether a worker takes loops now, as far as the service knows.
func (c *Client) Served(ctx context.Context) bool {
	return c.polled(ctx, api.TaskQueue, enumspb.TASK_QUEUE_TYPE_WORKFLOW)
}

// polled reports whether a worker has asked for the tasks of a queue in the last minute.
func (c *Client) polled(ctx context.Context, queue string, queueType enumspb.TaskQueueType) bool {
	ctx, cancel := context.WithTimeout(ctx, workerTimeout)
	defer cancel()
	d, err := c.SDK.DescribeTaskQueue(ctx, queue, queueType)
	return err == nil && slices.ContainsFunc(d.GetPollers(), func(p *taskqueuepb.PollerInfo) bool {
		return c.Now().Sub(p.GetLastAccessTime().AsTime()) < lastPoll
	})
}

// AWorker names the command that starts a worker for this service.
func (c *Client) AWorker() string {
	if c.Explicit {
		return "`worker`, or `pawl up` with the same settings"
	}
	return "`pawl up`"
}

// StartOptions returns the options with which every loop is started, whoever starts it. A running loop of that ID is
// not touched, and one that has ended may be followed by another. In Temporal the options show what the loop is for,
// who started it and from where (L12).
func StartOptions(id string, sp spec.Spec) sdk.StartWorkflowOptions {
	return startOptions(launch.Of(id, "pawl/"+git.RefName(id), sp))
}

func startOptions(s launch.Start) sdk.StartWorkflowOptions {
	return sdk.StartWorkflowOptions{
		ID: s.ID, TaskQueue: api.TaskQueue, WorkflowTaskTimeout: launch.TaskTimeout,
		WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
		WorkflowIDReusePolicy:    enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		// Without this the SDK returns a running loop of that name as if it had started it.
		WorkflowExecutionErrorWhenAlreadyStarted: true,
		StaticSummary:                            s.Summary, StaticDetails: s.Details, Memo: s.Memo,
	}
}
