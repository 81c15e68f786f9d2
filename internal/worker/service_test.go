package worker_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/timestamppb"

	commonpb "go.temporal.io/api/common/v1"
	"pawl/internal/client/launch"
)

// service is a Temporal service that knows only what a test has put into it. An unexpected call panics.
type service struct {
	client.Client

	known      map[string]*workflowservice.DescribeWorkflowExecutionResponse // the known loops, by ID
	attributes map[string]enumspb.IndexedValueType
	closed     bool // adding attributes is not allowed
	away       error
	doubts     int                                 // how often it denies a loop that it knows
	endings    map[string]error                    // the errors with which workflows have ended, by ID
	listed     []*workflowpb.WorkflowExecutionInfo // the workflows for proposals that run

	mu       sync.Mutex
	asked    []string // IDs of described loops
	reset    []string // IDs of loops whose sticky queue was reset
	returned []string // IDs of activities that were handed back
	started  []client.StartWorkflowOptions
	signals  []string // ID, run, message and payload of each signal
	ended    []string // IDs of terminated loops
	resumed  []launch.Resume[struct{}]
}

// frontend and operator are the two APIs of the service.
type (
	frontend struct {
		workflowservice.WorkflowServiceClient
		*service
	}
	operator struct {
		operatorservice.OperatorServiceClient
		*service
	}
)

func (s *service) WorkflowService() workflowservice.WorkflowServiceClient {
	return frontend{service: s}
}
func (s *service) OperatorService() operatorservice.OperatorServiceClient {
	return operator{service: s}
}

// runs makes the service know a loop.
func (s *service) runs(id, firstRun string, status enumspb.WorkflowExecutionStatus, pending ...*workflowpb.PendingActivityInfo) {
	if s.known == nil {
		s.known = map[string]*workflowservice.DescribeWorkflowExecutionResponse{}
	}
	s.known[id] = &workflowservice.DescribeWorkflowExecutionResponse{
		WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{
			Execution: &commonpb.WorkflowExecution{WorkflowId: id, RunId: "run"}, FirstRunId: firstRun, Status: status,
			CloseTime: timestamppb.Now(),
		},
		PendingActivities: pending,
	}
}

// GetWorkflow returns the run of a workflow that has ended as endings say.
func (s *service) GetWorkflow(_ context.Context, id, _ string) client.WorkflowRun {
	return ending{err: s.endings[id]}
}

type ending struct {
	client.WorkflowRun
	err error
}

func (e ending) Get(context.Context, any) error { return e.err }

func (s frontend) DescribeWorkflowExecution(_ context.Context, in *workflowservice.DescribeWorkflowExecutionRequest, _ ...grpc.CallOption) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.doubts > 0 {
		s.doubts--
		return nil, serviceerror.NewNotFound("no such workflow")
	}
	if s.away != nil {
		return nil, s.away
	}
	id := in.GetExecution().GetWorkflowId()
	s.asked = append(s.asked, id)
	if d := s.known[id]; d != nil {
		return d, nil
	}
	return nil, serviceerror.NewNotFound("no such workflow")
}

func (s frontend) ListWorkflowExecutions(context.Context, *workflowservice.ListWorkflowExecutionsRequest, ...grpc.CallOption) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	return &workflowservice.ListWorkflowExecutionsResponse{Executions: s.listed}, s.away
}

func (s frontend) ResetStickyTaskQueue(_ context.Context, in *workflowservice.ResetStickyTaskQueueRequest, _ ...grpc.CallOption) (*workflowservice.ResetStickyTaskQueueResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reset = append(s.reset, in.GetExecution().GetWorkflowId())
	return &workflowservice.ResetStickyTaskQueueResponse{}, nil
}

func (s frontend) RespondActivityTaskFailedById(_ context.Context, in *workflowservice.RespondActivityTaskFailedByIdRequest, _ ...grpc.CallOption) (*workflowservice.RespondActivityTaskFailedByIdResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.returned = append(s.returned, in.GetActivityId())
	return &workflowservice.RespondActivityTaskFailedByIdResponse{}, nil
}

func (s *service) ExecuteWorkflow(_ context.Context, o client.StartWorkflowOptions, _ any, args ...any) (client.WorkflowRun, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.started = append(s.started, o)
	s.resumed = append(s.resumed, args[1].(launch.Resume[struct{}]))
	return nil, nil
}

func (s operator) ListSearchAttributes(context.Context, *operatorservice.ListSearchAttributesRequest, ...grpc.CallOption) (*operatorservice.ListSearchAttributesResponse, error) {
	return &operatorservice.ListSearchAttributesResponse{CustomAttributes: s.attributes}, nil
}

func (s operator) AddSearchAttributes(_ context.Context, in *operatorservice.AddSearchAttributesRequest, _ ...grpc.CallOption) (*operatorservice.AddSearchAttributesResponse, error) {
	if s.closed {
		return nil, serviceerror.NewPermissionDenied("not yours", "")
	}
	if s.attributes == nil {
		s.attributes = map[string]enumspb.IndexedValueType{}
	}
	for name, kind := range in.GetSearchAttributes() {
		s.attributes[name] = kind
	}
	return &operatorservice.AddSearchAttributesResponse{}, nil
}

func (s *service) SignalWorkflow(_ context.Context, id, run, name string, payload any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away != nil {
		return s.away
	}
	text, err := json.Marshal(payload)
	s.signals = append(s.signals, strings.Join([]string{id, run, name, string(text)}, " "))
	return err
}

func (s *service) TerminateWorkflow(_ context.Context, id, _, _ string, _ ...any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = append(s.ended, id)
	return nil
}
