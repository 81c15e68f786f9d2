package steward

import sdk "go.temporal.io/sdk/client"

func startOptions(id string) sdk.StartWorkflowOptions {
	return sdk.StartWorkflowOptions{ID: id, TaskQueue: "pawl"}
}
