package host

import (
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"pawl/internal/act"
	"pawl/internal/git"
	"pawl/internal/launch"
	"pawl/internal/spec"
)

// StartOptions are those under which every loop is started, whoever starts it: a loop of that ID
// that runs is not touched, one that has ended may be followed by another, and whoever looks at
// it in Temporal sees what it is for, who started it and from where (L12).
func StartOptions(id string, sp spec.Spec) client.StartWorkflowOptions {
	s := launch.Of(id, "pawl/"+git.RefName(id), sp)
	return client.StartWorkflowOptions{
		ID: s.ID, TaskQueue: act.TaskQueue, WorkflowTaskTimeout: launch.TaskTimeout,
		WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
		WorkflowIDReusePolicy:    enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		// Else the SDK takes a loop of that name that runs already for the one that it started.
		WorkflowExecutionErrorWhenAlreadyStarted: true,
		StaticSummary:                            s.Summary, StaticDetails: s.Details, Memo: s.Memo,
	}
}
