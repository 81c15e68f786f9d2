package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/types/known/durationpb"

	"pawl/activities"
	"pawl/internal/exec/supervisor"
	"pawl/internal/home/hostrecord"
	"pawl/internal/lib/safego"
	"pawl/internal/loop/api"
)

// recoverLoops ends what a dead worker of this host left running. It hands the activities that the dead worker had
// taken back to the service, so that they start again at once instead of after a heartbeat timeout. For loops and
// stewards it uses the records on disk, because visibility lags behind. It runs before this worker polls, so every task under this
// identity belongs to the dead worker.
func recoverLoops(ctx context.Context, o Options, host string, a *activities.Activities) error {
	if err := mend(ctx, o, nil); err != nil {
		return fmt.Errorf("making damaged records again: %w", err)
	}
	tellEnds(ctx, o, host)
	records, err := cutOff(o)
	if err == nil {
		err = restore(ctx, o, a)
	}
	if err != nil {
		return fmt.Errorf("listing this host's loops: %w", err)
	}
	records = append(records, proposing(ctx, o)...)
	g, ctx := safego.WithContext(ctx)
	g.SetLimit(8)
	for _, r := range records {
		g.Go(func() error {
			var trees []string
			if r.Ref != "" {
				trees = []string{r.Desk(o.Home), r.Judge(o.Home)}
			}
			n, err := supervisor.Reap(r.Token(), trees...)
			if r.Ref != "" {
				for _, side := range r.Sides(o.Home) {
					more, failed := supervisor.Reap(side.Token(), side.Desk(o.Home))
					n, err = n+more, errors.Join(err, failed)
				}
			}
			if err != nil {
				o.Logger.Warn("some of what a dead worker left running can't be ended", "loop", r.Loop, "error", err)
			}
			if n > 0 {
				o.Logger.Info("ended what a dead worker left running", "loop", r.Loop, "processes", n)
			}
			if r.Store != "" && !r.Closed {
				if what, err := a.Mend(ctx, r, false); err != nil && ctx.Err() == nil {
					o.Logger.Error("the store of a loop is damaged and can't be repaired", "loop", r.Loop, "what", what, "error", err)
				}
			}
			return recoverLoop(ctx, o, Identity(host), r, a)
		})
	}
	return g.Wait()
}

// closedLately is longer than the service needs to notice by itself that an activity's worker is gone. A loop that
// was closed before that has nothing left to hand back.
const closedLately = time.Minute

// cutOff returns the loops for which a dead worker may have worked: those that are not over, those whose end may not
// have reached the service, and those that were being opened.
func cutOff(o Options) ([]hostrecord.Record, error) {
	records, err := hostrecord.List(o.Home)
	if err != nil {
		return nil, err
	}
	announced, err := hostrecord.Announced(o.Home)
	if err != nil {
		return nil, err
	}
	for _, r := range announced {
		if r.Loop == "" {
			o.Logger.Warn("the note of a loop that was being opened is damaged: the service notices by itself that its worker is gone", "run", r.FirstRun)
			hostrecord.Retract(o.Home, r)
			continue
		}
		if r.Closed { // it was halted before a worker had opened it
			continue
		}
		if !slices.ContainsFunc(records, func(known hostrecord.Record) bool { return known.FirstRun == r.FirstRun }) {
			records = append(records, r)
		}
	}
	return slices.DeleteFunc(records, func(r hostrecord.Record) bool {
		return r.Namespace != o.Namespace || (r.Closed && time.Since(r.ClosedAt) > closedLately)
	}), nil
}

// proposing returns the workflows that apply or review a proposal. They have no record on disk. Visibility may lack one
// that was started just before its worker died: then the service notices by itself that the worker is gone.
func proposing(ctx context.Context, o Options) (all []hostrecord.Record) {
	answer, err := o.Client.WorkflowService().ListWorkflowExecutions(ctx, &workflowservice.ListWorkflowExecutionsRequest{
		Namespace: o.Namespace, Query: "WorkflowType IN ('Apply', 'Review') AND ExecutionStatus = 'Running'",
	})
	if err != nil {
		o.Logger.Warn("the workflows that a dead worker may have had can't be listed", "error", err)
	}
	for _, info := range answer.GetExecutions() {
		of := info.GetExecution()
		all = append(all, hostrecord.Record{Loop: of.GetWorkflowId(), FirstRun: of.GetRunId(), Namespace: o.Namespace})
	}
	return all
}

// recoverLoop hands one loop's tasks back, or cleans up after a loop that ended without this worker.
func recoverLoop(ctx context.Context, o Options, identity string, r hostrecord.Record, a *activities.Activities) error {
	service := o.Client.WorkflowService()
	d, known, err := described(ctx, o, r.Loop)
	if err != nil {
		return fmt.Errorf("asking about the loop %s: %w", r.Loop, err)
	}
	if !known {
		return lost(ctx, o, r, a)
	}
	info := d.GetWorkflowExecutionInfo()
	if ended := over(info, r); ended || elsewhere(info, a.Host) {
		if !nothingHere(o, r) {
			if ended {
				noteEnd(ctx, o, r, info)
			}
			giveUp(ctx, o, r, a, !ended)
		}
		return nil
	}
	noted, _ := hostrecord.NotedEnd(o.Home, r)
	if r.Ref != "" && noted.Run != info.GetExecution().GetRunId() { // after a reset it runs again
		if err := hostrecord.DropEnd(o.Home, r); err != nil {
			o.Logger.Warn("the note of an earlier end can't be removed", "loop", r.Loop, "error", err)
		}
	}
	// The dead worker's sticky queue costs five seconds unless it is reset.
	if _, err := service.ResetStickyTaskQueue(ctx, &workflowservice.ResetStickyTaskQueueRequest{
		Namespace: o.Namespace, Execution: info.GetExecution(),
	}); err != nil {
		o.Logger.Warn("the sticky queue of a dead worker can't be reset", "loop", r.Loop, "error", err)
	}
	for _, p := range d.GetPendingActivities() {
		if p.GetLastWorkerIdentity() != identity || !startedStates[p.GetState()] {
			continue
		}
		_, err := service.RespondActivityTaskFailedById(ctx, &workflowservice.RespondActivityTaskFailedByIdRequest{
			Namespace: o.Namespace, WorkflowId: r.Loop, RunId: info.GetExecution().GetRunId(), ActivityId: p.GetActivityId(),
			Identity: identity, Failure: workerDied(),
		})
		if err != nil && !errors.As(err, new(*serviceerror.NotFound)) {
			o.Logger.Warn("an activity of a dead worker can't be given back", "loop", r.Loop, "activity", p.GetActivityType().GetName(), "error", err)
		}
	}
	return nil
}

// elsewhere reports whether a running loop has moved to another host.
func elsewhere(info *workflowpb.WorkflowExecutionInfo, host string) bool {
	at := memo(info, api.HostMemo)
	return at != "" && at != host
}

// over reports whether the loop of a workspace is over: it has ended, or another loop with its ID replaced it and
// does not continue from its ledger.
func over(info *workflowpb.WorkflowExecutionInfo, r hostrecord.Record) bool {
	return !sameLoop(info, r) || info.GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING
}

// sameLoop reports whether a workflow is that of a record, or continues from its ledger.
func sameLoop(info *workflowpb.WorkflowExecutionInfo, r hostrecord.Record) bool {
	if info.GetFirstRunId() == r.FirstRun {
		return true
	}
	return r.FirstRun != "" && memo(info, api.CarriedMemo) == r.FirstRun
}

// memo returns a text from a workflow's memo, "" if it has none.
func memo(info *workflowpb.WorkflowExecutionInfo, name string) (text string) {
	if p := info.GetMemo().GetFields()[name]; p == nil || converter.GetDefaultDataConverter().FromPayload(p, &text) != nil {
		return ""
	}
	return text
}

// nothingHere reports whether a loop that is over has nothing on this host to clean up: it was closed, or it never
// had a workspace.
func nothingHere(o Options, r hostrecord.Record) bool {
	if r.Ref == "" {
		hostrecord.Retract(o.Home, r)
	}
	return r.Closed || r.Ref == ""
}

// lost handles a loop that the service does not know. With the embedded engine this means that the engine's file was
// replaced, so the loop is started again from its ledger. Any other service may just be the wrong one, so nothing is
// started there.
func lost(ctx context.Context, o Options, r hostrecord.Record, a *activities.Activities) error {
	if nothingHere(o, r) {
		return nil
	}
	if hostrecord.Over(o.Home, r) { // a person halted it meanwhile
		giveUp(ctx, o, r, a, false)
		return nil
	}
	if !o.Embedded {
		o.Logger.Warn("the service doesn't know a loop that this host has a workspace for; its trees and ledger stay", "loop", r.Loop)
		return nil
	}
	started, err := carryOver(ctx, o, r)
	switch {
	case err != nil:
		o.Logger.Error("a loop can't be started again from its ledger", "loop", r.Loop, "error", err)
	case started:
		o.Logger.Info("a loop that the engine had lost continues from its ledger", "loop", r.Loop)
	}
	return nil
}

// askAgain is the time until the embedded engine is asked again about a loop that it does not know.
const askAgain = time.Second

// described returns what the service says about a loop, and whether it knows the loop. An engine that is stopping may
// say about any loop that it does not know it, so the embedded engine is asked twice.
func described(ctx context.Context, o Options, loop string) (d *workflowservice.DescribeWorkflowExecutionResponse, known bool, err error) {
	for again := o.Embedded; ; again = false {
		d, err = describe(ctx, o.Client, o.Namespace, loop)
		if _, gone := errors.AsType[*serviceerror.NotFound](err); !gone {
			return d, err == nil, err
		}
		if !again {
			return nil, false, nil
		}
		select {
		case <-ctx.Done():
			return nil, false, context.Cause(ctx)
		case <-time.After(askAgain):
		}
	}
}

// startedStates are the states of an activity that a worker has taken. An activity that was to be interrupted for a
// pause or a halt has its own state.
var startedStates = map[enumspb.PendingActivityState]bool{
	enumspb.PENDING_ACTIVITY_STATE_STARTED: true, enumspb.PENDING_ACTIVITY_STATE_CANCEL_REQUESTED: true,
	enumspb.PENDING_ACTIVITY_STATE_PAUSE_REQUESTED: true,
}

// workerDied returns the failure of an activity whose worker is gone. The loop did nothing wrong, so the activity is
// tried again at once.
func workerDied() *failurepb.Failure {
	return &failurepb.Failure{
		Message: "the worker died", Source: "pawl",
		FailureInfo: &failurepb.Failure_ApplicationFailureInfo{ApplicationFailureInfo: &failurepb.ApplicationFailureInfo{
			Type: "WorkerDied", Category: enumspb.APPLICATION_ERROR_CATEGORY_BENIGN,
			NextRetryDelay: durationpb.New(time.Millisecond),
		}},
	}
}

// describe asks the service once about a loop.
func describe(ctx context.Context, c client.Client, namespace, loop string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	return c.WorkflowService().DescribeWorkflowExecution(ctx, &workflowservice.DescribeWorkflowExecutionRequest{
		Namespace: namespace, Execution: &commonpb.WorkflowExecution{WorkflowId: loop},
	})
}
