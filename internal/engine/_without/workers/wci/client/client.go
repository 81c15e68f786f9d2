// Package client answers the server's questions about auto-scaled workers: there are none, and none can be
// had. It has those methods of Temporal's client that the server calls.
package client

import (
	"context"

	"go.uber.org/fx"

	deploymentpb "go.temporal.io/api/deployment/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/auto-scaled-workers/wci/workflow/iface"
	"go.temporal.io/server/common/namespace"
)

// Module provides the client.
var Module = fx.Provide(func() Client { return Client{} })

// Client knows no instance of a version's worker.
type Client struct{}

// DescribeWorkerControllerInstance finds nothing.
func (Client) DescribeWorkerControllerInstance(context.Context, *namespace.Namespace, *deploymentpb.WorkerDeploymentVersion) (*iface.QueryDescribeWorkerControllerInstanceResponse, []byte, error) {
	return nil, nil, serviceerror.NewNotFound("this server starts no workers")
}

// ValidateWorkerControllerInstanceSpec refuses.
func (Client) ValidateWorkerControllerInstanceSpec(context.Context, *namespace.Namespace, *deploymentpb.WorkerDeploymentVersion, string, map[string]iface.ScalingGroupSpecUpdate, []string) error {
	return serviceerror.NewInvalidArgument("this server starts no workers: leave the compute configuration out")
}

// UpdateWorkerControllerInstance refuses.
func (c Client) UpdateWorkerControllerInstance(ctx context.Context, n *namespace.Namespace, v *deploymentpb.WorkerDeploymentVersion, _ []byte, identity string, upserted map[string]iface.ScalingGroupSpecUpdate, removed []string) (*iface.UpdateWorkerControllerInstanceResponse, error) {
	return nil, c.ValidateWorkerControllerInstanceSpec(ctx, n, v, identity, upserted, removed)
}

// DeleteWorkerControllerInstance has nothing to delete.
func (Client) DeleteWorkerControllerInstance(context.Context, *namespace.Namespace, *deploymentpb.WorkerDeploymentVersion, string) error {
	return nil
}
