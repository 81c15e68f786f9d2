package display

import (
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/workflow"
)

// Diffs returns the beginning of the diff with a hash that a gate of a loop asks about, as Markdown, "" if this host
// does not have it. all is the command that shows the whole diff. It reads a file of the host, so that no diff enters
// the history: a workflow may show it in its current details, and must decide nothing by it.
type Diffs func(ref, hash, whole string) string

// Interceptor lets the workflows of a worker show diffs.
func (d Diffs) Interceptor() interceptor.WorkerInterceptor { return &workerInterceptor{diffs: d} }

// DiffsOf returns what the worker lends its workflows; without it, there are no diffs. ctx is that of the workflow
// function.
func DiffsOf(ctx workflow.Context) Diffs {
	if diffs, ok := ctx.Value(diffsKey{}).(Diffs); ok {
		return diffs
	}
	return func(string, string, string) string { return "" }
}

type diffsKey struct{}

type workerInterceptor struct {
	interceptor.WorkerInterceptorBase
	diffs Diffs
}

// InterceptWorkflow returns the interceptor of one workflow.
func (w *workerInterceptor) InterceptWorkflow(_ workflow.Context, next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	inbound := &inboundInterceptor{diffs: w.diffs}
	inbound.Next = next
	return inbound
}

type inboundInterceptor struct {
	interceptor.WorkflowInboundInterceptorBase
	diffs Diffs
}

// ExecuteWorkflow runs the workflow with the diffs in its context.
func (i *inboundInterceptor) ExecuteWorkflow(ctx workflow.Context, in *interceptor.ExecuteWorkflowInput) (any, error) {
	return i.Next.ExecuteWorkflow(workflow.WithValue(ctx, diffsKey{}, i.diffs), in)
}
