package trigger_test

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	sdk "go.temporal.io/sdk/client"
	"google.golang.org/grpc"

	"pawl/config"
	"pawl/internal/home"
	"pawl/internal/integrations/trigger"
	machine "pawl/internal/steward"
	"pawl/internal/steward/task"
)

// service is a Temporal with running stewards, by ID. It panics at a call that it does not expect.
type service struct {
	sdk.Client
	inputs   map[string]string
	run      string
	listed   int
	read     int
	away     error
	signals  []any
	signaled []string
}

type frontend struct {
	workflowservice.WorkflowServiceClient
	*service
}

func (s *service) WorkflowService() workflowservice.WorkflowServiceClient {
	return frontend{service: s}
}

func (s *service) ListWorkflow(_ context.Context, in *workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	s.listed++
	out := &workflowservice.ListWorkflowExecutionsResponse{}
	for id := range s.inputs {
		out.Executions = append(out.Executions, &workflowpb.WorkflowExecutionInfo{Execution: &commonpb.WorkflowExecution{WorkflowId: id, RunId: s.run}})
	}
	return out, s.away
}

func (s frontend) GetWorkflowExecutionHistory(_ context.Context, in *workflowservice.GetWorkflowExecutionHistoryRequest, _ ...grpc.CallOption) (*workflowservice.GetWorkflowExecutionHistoryResponse, error) {
	s.read++
	started := &historypb.WorkflowExecutionStartedEventAttributes{
		FirstExecutionRunId: "first", Input: &commonpb.Payloads{Payloads: []*commonpb.Payload{{Data: []byte(s.inputs[in.Execution.WorkflowId])}}},
	}
	return &workflowservice.GetWorkflowExecutionHistoryResponse{History: &historypb.History{Events: []*historypb.HistoryEvent{{
		Attributes: &historypb.HistoryEvent_WorkflowExecutionStartedEventAttributes{WorkflowExecutionStartedEventAttributes: started},
	}}}}, nil
}

func (s *service) SignalWorkflow(_ context.Context, id, _, name string, arg any) error {
	if s.inputs[id] == "" {
		return serviceerror.NewNotFound("gone")
	}
	s.signaled, s.signals = append(s.signaled, id+" "+name), append(s.signals, arg)
	return s.away
}

func TestS5_TheTriggersOfStewardsThatRunAreFoundWithoutARestart(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	s := &service{run: "1", inputs: map[string]string{}}
	all := &trigger.Temporal{Client: s, Host: "here", Now: func() time.Time { return now }}
	find := func(steward, name string) bool {
		t.Helper()
		r, found, err := all.Find(t.Context(), steward, name)
		require.NoError(t, err)
		if found {
			require.Equal(t, trigger.Route{Steward: steward, Run: "first", Trigger: r.Trigger}, r)
			require.Equal(t, name, r.Trigger.Name)
		}
		return found
	}
	require.False(t, find("shop", "ci"))
	s.inputs["ill"] = `{"name": "ill", "triggers": [{"name": "web", "from": "health"}]}`
	wanted, err := all.Refresh(t.Context())
	require.NoError(t, err)
	require.False(t, wanted, "nobody sends a health check anything")
	delete(s.inputs, "ill")
	now = now.Add(time.Second)
	s.listed, s.read = 0, 0
	require.False(t, find("shop", "ci"))
	s.inputs["shop"] = `{"name": "shop", "triggers": [{"name": "ci", "from": "github"}], "limits": {"executing": "1h0m0s"}}`
	s.inputs["afar"] = `{"name": "afar", "repo": {"host": "there"}, "triggers": [{"name": "ci"}]}`
	s.inputs["odd"] = `7`
	require.False(t, find("shop", "ci"), "who guesses does not make us ask for each guess")
	require.Equal(t, 1, s.listed)
	now = now.Add(time.Second)
	require.True(t, find("shop", "ci"))
	require.False(t, find("shop", "other"))
	require.False(t, find("afar", "ci"), "its secret is on another host")
	require.False(t, find("odd", "ci"))
	found, err := all.Refresh(t.Context())
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, 3, s.read, "a run is read once")

	s.away = errors.New("away")
	now = now.Add(time.Minute)
	require.True(t, find("shop", "ci"), "what is known goes on being served")
	_, _, err = all.Find(t.Context(), "new", "ci")
	require.Error(t, err)
	s.away = nil

	require.NoError(t, all.Submit(t.Context(), "shop", task.Task{ID: "ci-1", Body: "Mend it"}, task.Trigger{Name: "ci"}))
	require.Equal(t, []string{"shop submit"}, s.signaled)
	payload, err := json.Marshal(s.signals[0])
	require.NoError(t, err)
	message, err := machine.Decode(payload)
	require.NoError(t, err, "the steward reads it strictly")
	require.Equal(t, "trigger ci", message.By)
	require.Equal(t, "ci", message.Trigger.Name)
	got, err := task.DecodeTask(message.Task, nil)
	require.NoError(t, err)
	require.Equal(t, "ci-1", got.ID)
	delete(s.inputs, "shop")
	require.ErrorIs(t, all.Submit(t.Context(), "shop", task.Task{ID: "ci-1"}, task.Trigger{Name: "ci"}), trigger.ErrGone)
	found, err = all.Refresh(t.Context())
	require.NoError(t, err)
	require.False(t, found)
}

func TestTheEndpointStaysWhereItWas(t *testing.T) {
	h := home.Home{Dir: t.TempDir()}
	require.Equal(t, []int{home.TriggersPort}, h.TriggerPorts(), "the port is closed to agents before anybody listens there")
	first, err := trigger.Listen(h, config.DefaultTriggers)
	require.NoError(t, err)
	port := first.Addr().(*net.TCPAddr).Port
	require.True(t, first.Addr().(*net.TCPAddr).IP.IsLoopback())
	require.Equal(t, []int{port}, h.TriggerPorts())

	other, err := trigger.Listen(home.Home{Dir: t.TempDir()}, config.DefaultTriggers)
	require.NoError(t, err)
	defer other.Close()
	require.NotEqual(t, port, other.Addr().(*net.TCPAddr).Port, "the next free one")
	require.NoError(t, first.Close())
	again, err := trigger.Listen(h, config.DefaultTriggers)
	require.NoError(t, err)
	require.Equal(t, port, again.Addr().(*net.TCPAddr).Port)
	_, err = trigger.Listen(h, other.Addr().String())
	require.ErrorContains(t, err, "listening for triggers", "an address that somebody chose is that one or none")
	require.NoError(t, again.Close())
}
