package engine

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	engineauth "pawl/internal/engine/auth"
	"pawl/internal/lib/fsutil/durable"
)

// Endpoint is the content of engine.json: where the engine of a directory is, or was last.
type Endpoint struct {
	// Address is the frontend's address, for Temporal clients: "127.0.0.1:7233".
	Address string `json:"address"`
	// UI is the Temporal UI's address: "http://127.0.0.1:8233".
	UI            string    `json:"ui"`
	PID           int       `json:"pid"`
	ServerVersion string    `json:"serverVersion"`
	SchemaVersion string    `json:"schemaVersion"`
	StartedAt     time.Time `json:"startedAt"`
	// ClusterID distinguishes this engine from any other Temporal that answers on the same port.
	ClusterID string `json:"clusterId"`
	// Port is the frontend's port, Preferred the one that was asked for.
	Port      int `json:"port"`
	Preferred int `json:"preferred"`
	// Ports includes the ports between the engine's own services, because anybody who reaches one of them can act as
	// any user. The worker service's port is missing: it reports only its health.
	Ports []int `json:"ports"`
	// Auth says that the engine requires a token.
	Auth bool `json:"auth,omitempty"`
	// Stopped says that the engine was closed, not killed.
	Stopped bool `json:"stopped,omitempty"`

	pass *engineauth.Pass // the pass that the engine requires, nil if it requires none
}

// Pass returns the pass that the engine requires, nil if it requires none.
func (e Endpoint) Pass() *engineauth.Pass { return e.pass }

// Link returns the address of a page of the Temporal UI. If the engine requires a token, the link is good for one
// visit.
func (e Endpoint) Link(page string) string { return link(e.UI, e.pass, e.run(), page) }

// run identifies one run of an engine.
func (e Endpoint) run() string {
	return strconv.Itoa(e.PID) + " " + e.StartedAt.Format(time.RFC3339Nano)
}

const (
	endpointFile = "engine.json"
	databaseFile = "temporal.db"
)

// Find returns the endpoint of the running engine of a directory, for commands that only read. It starts no engine
// and writes nothing. ok is false if no engine answers.
func Find(ctx context.Context, dir string) (endpoint Endpoint, ok bool) {
	// A live port in engine.json proves nothing: a dead owner may have left the file while another Temporal took the
	// port, or somebody copied the directory with the file.
	if locked, err := durable.Locked(lockPath(dir)); !locked || err != nil {
		return Endpoint{}, false
	}
	e, err := openEndpoint(dir)
	if err != nil || e.PID != owner(dir) {
		return Endpoint{}, false
	}
	conn, err := dial(e.Address, e.pass)
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

// openEndpoint is readEndpoint, and also reads the pass if the engine requires a token.
func openEndpoint(dir string) (e Endpoint, err error) {
	if e, err = readEndpoint(dir); err != nil || !e.Auth {
		return e, err
	}
	if e.pass, err = engineauth.Read(dir); e.pass == nil && err == nil {
		err = fmt.Errorf("the engine in %s asks for a token that is not there any more", dir)
	}
	return e, err
}

// write replaces engine.json as a whole; readers see the old file or the new one.
func (e Endpoint) write(dir string) error {
	if err := durable.WriteJSON(filepath.Join(dir, endpointFile), e); err != nil {
		return fmt.Errorf("write engine endpoint: %w", err)
	}
	return nil
}

// dial makes a connection that tries again every few milliseconds; gRPC's default is a second.
func dial(address string, p *engineauth.Pass) (*grpc.ClientConn, error) {
	trust := insecure.NewCredentials()
	if p != nil {
		trust = credentials.NewTLS(p.Insider())
	}
	return grpc.NewClient("passthrough:///"+address,
		grpc.WithTransportCredentials(trust),
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

// answers returns nil if the frontend serves the namespace.
func answers(ctx context.Context, conn *grpc.ClientConn) error {
	_, err := workflowservice.NewWorkflowServiceClient(conn).DescribeNamespace(ctx,
		&workflowservice.DescribeNamespaceRequest{Namespace: namespaceName}, grpc.WaitForReady(true))
	return err
}
