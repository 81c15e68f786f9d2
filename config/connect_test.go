package config_test

import (
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"

	"pawl/config"
	"pawl/internal/fault"
)

// clean removes the machine's Temporal settings.
func clean(t *testing.T) {
	for _, name := range []string{"ADDRESS", "NAMESPACE", "API_KEY", "PROFILE", "TLS"} {
		t.Setenv("TEMPORAL_"+name, "") // restores it afterwards
		os.Unsetenv("TEMPORAL_" + name)
	}
	t.Setenv("TEMPORAL_CONFIG_FILE", filepath.Join(t.TempDir(), "none.toml"))
}

func TestWithoutSettingsTheEngineIsEmbedded(t *testing.T) {
	clean(t)
	c, err := config.Connect()
	require.NoError(t, err)
	require.False(t, c.Explicit)
	require.Equal(t, "default", c.Namespace)
	require.Equal(t, "127.0.0.1:9", c.At("127.0.0.1:9", nil, "", nil).Address)
}

func TestAnAddressInTheEnvironmentIsExplicit(t *testing.T) {
	clean(t)
	t.Setenv("TEMPORAL_ADDRESS", "temporal.example:7233")
	t.Setenv("TEMPORAL_NAMESPACE", "loops")
	c, err := config.Connect()
	require.NoError(t, err)
	require.True(t, c.Explicit)
	require.Equal(t, "temporal.example:7233", c.Address)
	require.Equal(t, "loops", c.Namespace)
	require.Equal(t, "temporal.example:7233", c.At("127.0.0.1:9", nil, "", nil).Address, "an explicit address stays")
}

func TestAnAddressInAProfileIsExplicit(t *testing.T) {
	clean(t)
	t.Setenv("TEMPORAL_CONFIG_FILE", write(t, "temporal.toml", "[profile.work]\naddress = \"there:7233\"\n"))
	t.Setenv("TEMPORAL_PROFILE", "work")
	c, err := config.Connect()
	require.NoError(t, err)
	require.True(t, c.Explicit)
	require.Equal(t, "there:7233", c.Address)
}

func TestANamespaceWithoutAnAddressIsRefused(t *testing.T) {
	clean(t)
	t.Setenv("TEMPORAL_NAMESPACE", "loops")
	_, err := config.Connect()
	require.ErrorContains(t, err, "unset TEMPORAL_NAMESPACE")
}

func TestAMissingProfileIsAClearError(t *testing.T) {
	clean(t)
	t.Setenv("TEMPORAL_PROFILE", "nope")
	_, err := config.Connect()
	require.ErrorContains(t, err, "nope")
	require.Equal(t, fault.EngineUnreachable, fault.CodeOf(err))
}

func TestAServiceThatDoesNotAnswerIsAClearError(t *testing.T) {
	clean(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := l.Addr().String()
	l.Close()
	t.Setenv("TEMPORAL_ADDRESS", address)
	c, err := config.Connect()
	require.NoError(t, err)
	_, err = config.Dial(t.Context(), c, "test", slog.New(slog.DiscardHandler))
	require.Equal(t, fault.EngineUnreachable, fault.CodeOf(err))
	require.ErrorContains(t, err, address)
	require.ErrorContains(t, err, "TEMPORAL_ADDRESS")
}

// late is a service that answers only after asked has ended.
type late struct {
	workflowservice.UnimplementedWorkflowServiceServer
	asked context.Context
}

func (l *late) GetSystemInfo(context.Context, *workflowservice.GetSystemInfoRequest) (*workflowservice.GetSystemInfoResponse, error) {
	return &workflowservice.GetSystemInfoResponse{}, nil
}

func (l *late) RecordActivityTaskHeartbeat(context.Context, *workflowservice.RecordActivityTaskHeartbeatRequest) (*workflowservice.RecordActivityTaskHeartbeatResponse, error) {
	<-l.asked.Done()
	return &workflowservice.RecordActivityTaskHeartbeatResponse{}, nil
}

func (l *late) DescribeNamespace(context.Context, *workflowservice.DescribeNamespaceRequest) (*workflowservice.DescribeNamespaceResponse, error) {
	<-l.asked.Done()
	return &workflowservice.DescribeNamespaceResponse{}, nil
}

// The SDK treats a missing answer to a heartbeat as the end of the activity, after a second here. A busy machine is
// slower.
func TestAHeartbeatIsGivenTimeToBeAnswered(t *testing.T) {
	clean(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	asked, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	server := grpc.NewServer()
	workflowservice.RegisterWorkflowServiceServer(server, &late{asked: asked})
	go server.Serve(l)
	t.Cleanup(server.Stop)
	t.Setenv("TEMPORAL_ADDRESS", l.Addr().String())
	at, err := config.Connect()
	require.NoError(t, err)
	c, err := config.Dial(t.Context(), at, "test", slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	defer c.Close()
	_, err = c.WorkflowService().RecordActivityTaskHeartbeat(asked, &workflowservice.RecordActivityTaskHeartbeatRequest{})
	require.NoError(t, err)
	_, err = c.WorkflowService().DescribeNamespace(asked, &workflowservice.DescribeNamespaceRequest{})
	require.Error(t, err, "what is no heartbeat ends with its caller")

	over, end := context.WithCancel(t.Context())
	end()
	_, err = c.WorkflowService().RecordActivityTaskHeartbeat(over, &workflowservice.RecordActivityTaskHeartbeatRequest{})
	require.Error(t, err, "nor is a heartbeat waited for whose activity is over")
}
