package engine

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"

	"pawl/internal/durable"
)

// Endpoint is what engine.json says: where the engine of a directory is, or was last.
type Endpoint struct {
	// Address is the frontend's, for Temporal clients: "127.0.0.1:7233".
	Address string `json:"address"`
	// UI is the Temporal UI's: "http://127.0.0.1:8233".
	UI            string    `json:"ui"`
	PID           int       `json:"pid"`
	ServerVersion string    `json:"serverVersion"`
	SchemaVersion string    `json:"schemaVersion"`
	StartedAt     time.Time `json:"startedAt"`
	// ClusterID tells this engine from any other Temporal that answers on the same port.
	ClusterID string `json:"clusterId"`
	// Port is the frontend's, Preferred the one that was asked for.
	Port      int `json:"port"`
	Preferred int `json:"preferred"`
	// Ports are those between its own services too: whoever reaches one of them can answer for
	// anybody. Only the worker service's is missing, which says no more than that it is well.
	Ports []int `json:"ports"`
	// Stopped says that the engine was closed and not killed.
	Stopped bool `json:"stopped,omitempty"`
}

const (
	endpointFile = "engine.json"
	databaseFile = "temporal.db"
)

// Find returns the endpoint of the running engine of a directory without starting one, for
// commands that only read. ok is false if none answers. It leaves no trace.
func Find(ctx context.Context, dir string) (endpoint Endpoint, ok bool) {
	// That engine.json names a live port proves nothing: a dead owner left it and another Temporal
	// took the port, or the directory was copied together with it.
	if locked, err := durable.Locked(lockPath(dir)); !locked || err != nil {
		return Endpoint{}, false
	}
	e, err := readEndpoint(dir)
	if err != nil || e.PID != owner(dir) {
		return Endpoint{}, false
	}
	conn, err := dial(e.Address)
	if err != nil {
		return Endpoint{}, false
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	id, err := clusterID(ctx, conn)
	return e, err == nil && id == e.ClusterID
}

func readEndpoint(dir string) (e Endpoint, err error) {
	return e, durable.ReadJSON(filepath.Join(dir, endpointFile), &e)
}

// write replaces engine.json whole; readers see the old one or the new one.
func (e Endpoint) write(dir string) error {
	if err := durable.WriteJSON(filepath.Join(dir, endpointFile), e); err != nil {
		return fmt.Errorf("write engine endpoint: %w", err)
	}
	return nil
}

// dial makes a connection that tries again every few milliseconds; gRPC's default is a second.
func dial(address string) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///"+address,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithNoProxy(),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 2 * time.Millisecond, Multiplier: 1, MaxDelay: 2 * time.Millisecond},
			MinConnectTimeout: time.Second,
		}))
}

func clusterID(ctx context.Context, conn *grpc.ClientConn) (string, error) {
	info, err := workflowservice.NewWorkflowServiceClient(conn).GetClusterInfo(ctx, &workflowservice.GetClusterInfoRequest{})
	if err != nil {
		return "", err
	}
	if info.ClusterId == "" {
		return "", errors.New("the server has no cluster ID")
	}
	return info.ClusterId, nil
}

// answers is nil when the frontend serves the namespace.
func answers(ctx context.Context, conn *grpc.ClientConn) error {
	_, err := workflowservice.NewWorkflowServiceClient(conn).DescribeNamespace(ctx,
		&workflowservice.DescribeNamespaceRequest{Namespace: namespaceName}, grpc.WaitForReady(true))
	return err
}
