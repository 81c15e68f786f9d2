package config

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
)

// heartbeatAnswer is how long an answer to a heartbeat may take: less than a silent worker has until it counts as dead.
const heartbeatAnswer = 20 * time.Second

// patient gives a heartbeat more time for its answer. The SDK gives it the time between two heartbeats, which is a
// second here, and treats a missing answer as the end of the activity. On a busy machine the attempt then failed with
// "context canceled" although everything worked. If the activity has ended, patient does not wait for the heartbeat.
func patient(ctx context.Context, method string, request, out any, conn *grpc.ClientConn, call grpc.UnaryInvoker, options ...grpc.CallOption) error {
	if method != workflowservice.WorkflowService_RecordActivityTaskHeartbeat_FullMethodName || errors.Is(ctx.Err(), context.Canceled) {
		return call(ctx, method, request, out, conn, options...)
	}
	longer, cancel := context.WithTimeout(context.WithoutCancel(ctx), heartbeatAnswer)
	defer cancel()
	stop := context.AfterFunc(ctx, func() {
		if errors.Is(ctx.Err(), context.Canceled) {
			cancel()
		}
	})
	defer stop()
	return call(longer, method, request, out, conn, options...)
}
