package client

import (
	"context"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"

	"pawl/internal/act"
	"pawl/internal/loop"
)

// spending returns what the running agent call has spent, from its heartbeats, and false if none runs. The loop books
// it when the step has ended (A8).
func spending(d *workflowservice.DescribeWorkflowExecutionResponse) (loop.Usage, bool) {
	for _, a := range d.GetPendingActivities() {
		var live act.Live
		if a.GetActivityType().GetName() != act.CallName || a.GetHeartbeatDetails() == nil {
			continue
		}
		if converter.GetDefaultDataConverter().FromPayloads(a.GetHeartbeatDetails(), &live) == nil {
			return live.Usage, true
		}
	}
	return loop.Usage{}, false
}

// Live returns the state for people, including what the running step has spent.
func (c *Client) Live(ctx context.Context, id string, state loop.State) loop.State {
	if state.Status.Ended() {
		return state
	}
	if d, err := c.asked(ctx, id); err == nil {
		if u, runs := spending(d); runs {
			return state.Spending(u)
		}
	}
	return state
}
