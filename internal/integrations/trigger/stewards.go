package trigger

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	sdk "go.temporal.io/sdk/client"

	machine "pawl/internal/steward"
	"pawl/internal/steward/charter"
	"pawl/internal/steward/delivery"
	"pawl/internal/steward/task"
)

// running is the query for running stewards.
const running = "WorkflowType = 'Steward' AND ExecutionStatus = 'Running'"

// lookAgain is the shortest time between two lists. An unknown route asks for a new list only after this time, so that
// guessing routes costs Temporal no more.
const lookAgain = time.Second

// askTime is how long Temporal may take to list the stewards.
const askTime = 5 * time.Second

// Temporal knows the stewards of a namespace that this host serves. This needs no steward's worker: a charter is the
// input of its run, and a task is a signal.
type Temporal struct {
	Client    sdk.Client
	Namespace string
	Host      string // this host's ID; it serves no steward whose repo.host is another one
	Now       func() time.Time

	stewards atomic.Value // the last list: map[string]steward, by ID

	asking sync.Mutex // held during a call to Temporal; guards the fields below
	asked  time.Time
	failed error // the error of the last list
}

type steward struct {
	run, first string // run IDs
	triggers   []charter.Trigger
}

// known returns the stewards of the last list.
func (t *Temporal) known() map[string]steward {
	all, _ := t.stewards.Load().(map[string]steward) // nil before the first list
	return all
}

// Find asks Temporal again if the route is unknown and the list is not new.
func (t *Temporal) Find(ctx context.Context, id, trigger string) (Route, bool, error) {
	if route, found := t.find(id, trigger); found {
		return route, true, nil
	}
	t.asking.Lock()
	defer t.asking.Unlock()
	if t.Now().Sub(t.asked) >= lookAgain {
		t.refresh(ctx)
	}
	route, found := t.find(id, trigger)
	return route, found, t.failed
}

func (t *Temporal) find(id, trigger string) (Route, bool) {
	s := t.known()[id]
	i := slices.IndexFunc(s.triggers, func(tr charter.Trigger) bool { return tr.Name == trigger })
	if i < 0 {
		return Route{}, false
	}
	return Route{Steward: id, Run: s.first, Trigger: s.triggers[i]}, true
}

// Refresh reads the list of stewards, and reports whether any of them has a trigger.
func (t *Temporal) Refresh(ctx context.Context) (bool, error) {
	t.asking.Lock()
	defer t.asking.Unlock()
	if t.refresh(ctx); t.failed != nil {
		return false, t.failed
	}
	return slices.ContainsFunc(slices.Collect(maps.Values(t.known())), func(s steward) bool { return len(s.triggers) > 0 }), nil
}

// refresh reads the list. If that fails, the last list stays.
func (t *Temporal) refresh(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	found, err := t.list(ctx)
	t.asked, t.failed = t.Now(), err
	if err == nil {
		t.stewards.Store(found)
	}
}

func (t *Temporal) list(ctx context.Context) (map[string]steward, error) {
	before, found := t.known(), map[string]steward{}
	var page []byte
	for {
		answer, err := t.Client.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{Query: running, NextPageToken: page})
		if err != nil {
			return nil, err
		}
		for _, e := range answer.GetExecutions() {
			id := e.GetExecution().GetWorkflowId()
			known, ok := before[id]
			if !ok || known.run != e.GetExecution().GetRunId() {
				if known, err = t.read(ctx, e); err != nil {
					return nil, err
				}
			}
			found[id] = known
		}
		if page = answer.GetNextPageToken(); len(page) == 0 {
			return found, nil
		}
	}
}

// read reads a steward's triggers from its charter, the input of its run. One that can't be read has none, and ends.
func (t *Temporal) read(ctx context.Context, e *workflowpb.WorkflowExecutionInfo) (steward, error) {
	run := e.GetExecution()
	s := steward{run: run.GetRunId()}
	answer, err := t.Client.WorkflowService().GetWorkflowExecutionHistory(ctx, &workflowservice.GetWorkflowExecutionHistoryRequest{
		Namespace: t.Namespace, Execution: &commonpb.WorkflowExecution{WorkflowId: run.GetWorkflowId(), RunId: run.GetRunId()}, MaximumPageSize: 1,
	})
	if _, gone := errors.AsType[*serviceerror.NotFound](err); gone {
		return s, nil
	}
	if err != nil {
		return s, err
	}
	for _, event := range answer.GetHistory().GetEvents() {
		started := event.GetWorkflowExecutionStartedEventAttributes()
		s.first = cmp.Or(started.GetFirstExecutionRunId(), e.GetFirstRunId(), s.run)
		if inputs := started.GetInput().GetPayloads(); len(inputs) > 0 {
			var c charter.Charter
			if json.Unmarshal(inputs[0].GetData(), &c) == nil && (c.Repo.Host == "" || c.Repo.Host == t.Host) {
				s.triggers = slices.DeleteFunc(c.Triggers, func(t charter.Trigger) bool { return t.From == charter.Health }) // nobody sends deliveries to those
			}
		}
	}
	return s, nil
}

// Submit signals the steward. Temporal keeps the signal until a worker takes it.
func (t *Temporal) Submit(ctx context.Context, id string, work task.Task, tr task.Trigger) error {
	doc, err := json.Marshal(work)
	if err != nil {
		return err
	}
	err = t.Client.SignalWorkflow(ctx, id, "", machine.MessageSubmit, machine.Message{Task: doc, By: delivery.Source(tr.Name), Trigger: &tr})
	if _, gone := errors.AsType[*serviceerror.NotFound](err); gone {
		return ErrGone
	}
	return err
}
