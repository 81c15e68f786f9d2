package loop_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/testsuite"

	"pawl/internal/loop/api"
)

// If a host has separate slots for agents, all agents and nothing else use them.
func TestAgentsGoToTheirOwnQueue(t *testing.T) {
	for _, own := range []string{"", "pawl@test/agents"} {
		w := newWorld(t, map[int][]try{1: {{Says: "better", Metric: "11"}}})
		queues := map[string]string{}
		p := play(t, w, specOf(map[string]any{"limits": map[string]any{"iterations": 1}}), func(env *testsuite.TestWorkflowEnvironment) {
			env.OnActivity(api.OpenName, mock.Anything, mock.Anything).Return(func(ctx context.Context, in api.Open) (api.Opened, error) {
				o, err := w.open(ctx, in)
				o.Agents = own
				return o, err
			})
			env.SetOnActivityStartedListener(func(info *activity.Info, _ context.Context, _ converter.EncodedValues) {
				queues[info.ActivityType.Name] = info.TaskQueue
			})
		})
		require.Nil(t, p.err)
		require.Contains(t, queues, api.CallName)
		require.Contains(t, queues, api.VerifyName)
		for name, queue := range queues {
			switch {
			case name == api.OpenName:
				require.Equal(t, "pawl", queue)
			case name == api.CallName && own != "":
				require.Equal(t, own, queue)
			default:
				require.Equal(t, "pawl@test", queue, name)
			}
		}
	}
}
