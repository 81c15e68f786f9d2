package config

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
)

// heartbeatAnswer is how long the service may take to answer a heartbeat: less than it takes for a worker that says nothing
// to count as dead.
const heartbeatAnswer = 20 * time.Second

// patient gives a heartbeat time to be answered. The SDK gives it as long as lies between two heartbeats, which is a second
// here, and takes one that is not answered by then for the end of the activity: on a machine under load the attempt failed
// with "context canceled" although everything worked. A heartbeat whose activity has ended is not waited for.
func patient(ctx context.Context, method string, in, out any, conn *grpc.ClientConn, call grpc.UnaryInvoker, options ...grpc.CallOption) error {
	if method != workflowservice.WorkflowService_RecordActivityTaskHeartbeat_FullMethodName {
		return call(ctx, method, in, out, conn, options...)
	}
	longer, cancel := context.WithTimeout(context.WithoutCancel(ctx), heartbeatAnswer)
	defer cancel()
	stop := context.AfterFunc(ctx, func() {
		if errors.Is(ctx.Err(), context.Canceled) {
			cancel()
		}
	})
	defer stop()
	return call(longer, method, in, out, conn, options...)
}
