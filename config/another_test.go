package config_test

import (
	"context"
	"log/slog"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"pawl/config"
	"pawl/internal/engine/auth"
)

// fakeEngine serves only a client's first calls, and refuses calls for another engine.
type fakeEngine struct {
	workflowservice.UnimplementedWorkflowServiceServer
	id      string
	refused atomic.Int32
}

func (f *fakeEngine) GetSystemInfo(context.Context, *workflowservice.GetSystemInfoRequest) (*workflowservice.GetSystemInfoResponse, error) {
	return &workflowservice.GetSystemInfoResponse{}, nil
}

func (f *fakeEngine) DescribeNamespace(ctx context.Context, _ *workflowservice.DescribeNamespaceRequest) (*workflowservice.DescribeNamespaceResponse, error) {
	if metadata.ValueFromIncomingContext(ctx, auth.EngineHeader)[0] != f.id {
		f.refused.Add(1)
		return nil, serviceerror.ToStatus(serviceerror.NewUnavailable(auth.AnotherEngine)).Err()
	}
	return &workflowservice.DescribeNamespaceResponse{}, nil
}

func (f *fakeEngine) serve(t *testing.T) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := grpc.NewServer()
	workflowservice.RegisterWorkflowServiceServer(s, f)
	go s.Serve(l)
	t.Cleanup(s.Stop)
	return l.Addr().String()
}

// An engine that continues on another port is found there, although another engine has its old port.
func TestAClientFollowsItsEngineAwayFromAnother(t *testing.T) {
	t.Setenv("TEMPORAL_ADDRESS", "")
	ours, another := &fakeEngine{id: "ours"}, &fakeEngine{id: "another"}
	old, now := another.serve(t), ours.serve(t)
	c, err := config.Connect()
	require.NoError(t, err)
	where := func() string {
		if another.refused.Load() == 0 {
			return old
		}
		return now
	}
	client, err := config.Dial(t.Context(), c.At(old, nil, "ours", where), "test", slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	defer client.Close()
	require.Eventually(t, func() bool { // as workers do
		_, err := client.WorkflowService().DescribeNamespace(t.Context(), &workflowservice.DescribeNamespaceRequest{Namespace: "default"})
		return err == nil
	}, time.Minute, time.Millisecond)
	require.Positive(t, another.refused.Load())
}
