package workflows_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/testsuite"

	"pawl/internal/act"
)

// If a host has separate slots for agents, all agents and nothing else use them.
func TestAgentsGoToTheirOwnQueue(t *testing.T) {
	for _, own := range []string{"", "pawl@test/agents"} {
		w := newWorld(t, map[int][]try{1: {{Says: "better", Metric: "11"}}})
		queues := map[string]string{}
		p := play(t, w, specOf(map[string]any{"limits": map[string]any{"iterations": 1}}), func(env *testsuite.TestWorkflowEnvironment) {
			env.OnActivity(act.OpenName, mock.Anything, mock.Anything).Return(func(ctx context.Context, in act.Open) (act.Opened, error) {
				o, err := w.open(ctx, in)
				o.Agents = own
				return o, err
			})
			env.SetOnActivityStartedListener(func(info *activity.Info, _ context.Context, _ converter.EncodedValues) {
				queues[info.ActivityType.Name] = info.TaskQueue
			})
		})
		require.Nil(t, p.err)
		require.Contains(t, queues, act.CallName)
		require.Contains(t, queues, act.VerifyName)
		for name, queue := range queues {
			switch {
			case name == act.OpenName:
				require.Equal(t, "pawl", queue)
			case name == act.CallName && own != "":
				require.Equal(t, own, queue)
			default:
				require.Equal(t, "pawl@test", queue, name)
			}
		}
	}
}
