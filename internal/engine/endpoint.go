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

	"pawl/internal/durable"
	"pawl/internal/pass"
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
	// Auth says that the engine requires a token.
	Auth bool `json:"auth,omitempty"`
	// Stopped says that the engine was closed and not killed.
	Stopped bool `json:"stopped,omitempty"`

	pass *pass.Pass // what it asks for, nil where it asks nobody
}

// Pass is what the engine asks for, nil where it asks nobody.
func (e Endpoint) Pass() *pass.Pass { return e.pass }

// Link is the address of a page of the Temporal UI. Where the engine requires a token it is good for one visit.
func (e Endpoint) Link(page string) string { return link(e.UI, e.pass, e.run(), page) }

// run tells the runs of an engine apart.
func (e Endpoint) run() string {
	return strconv.Itoa(e.PID) + " " + e.StartedAt.Format(time.RFC3339Nano)
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

// openEndpoint is readEndpoint with what the engine asks for.
func openEndpoint(dir string) (e Endpoint, err error) {
	if e, err = readEndpoint(dir); err != nil || !e.Auth {
		return e, err
	}
	if e.pass, err = pass.Read(dir); e.pass == nil && err == nil {
		err = fmt.Errorf("the engine in %s asks for a token that is not there any more", dir)
	}
	return e, err
}

// write replaces engine.json whole; readers see the old one or the new one.
func (e Endpoint) write(dir string) error {
	if err := durable.WriteJSON(filepath.Join(dir, endpointFile), e); err != nil {
		return fmt.Errorf("write engine endpoint: %w", err)
	}
	return nil
}

// dial makes a connection that tries again every few milliseconds; gRPC's default is a second.
func dial(address string, p *pass.Pass) (*grpc.ClientConn, error) {
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

// answers is nil when the frontend serves the namespace.
func answers(ctx context.Context, conn *grpc.ClientConn) error {
	_, err := workflowservice.NewWorkflowServiceClient(conn).DescribeNamespace(ctx,
		&workflowservice.DescribeNamespaceRequest{Namespace: namespaceName}, grpc.WaitForReady(true))
	return err
}
