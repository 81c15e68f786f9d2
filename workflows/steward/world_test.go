package steward

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/internal/steward"
	stewardapi "pawl/internal/steward/api"
	"pawl/internal/steward/task"
	"pawl/test/harness/testflow"
)

// world is the surroundings of a steward: a ledger, a planner and loops.
type world struct {
	t         *testing.T
	env       *testsuite.TestWorkflowEnvironment
	ledger    []loop.Event
	largest   int    // entry, in bytes
	while     func() // what happens while an entry is written
	tiers     map[string]task.Tier
	drift     []task.Drift // what the next entry finds in the project
	well      []task.Drift // and what it finds right again
	mended    []string
	differs   func() []task.Drift // what a validation finds
	trouble   func(string) error  // what keeps an activity from its work
	validated int
	slots     []int  // where each validation began
	stop      string // which loop-stop file asks for the end
	specs     map[string]map[string]any
	course    map[string]func(workflow.Context, string) task.ChildResult // what the loop with that ID does
	reading   map[string]stewardapi.ChildRead
	meanwhile func()         // what happens while a loop is read
	unseen    map[string]int // how often reading a loop does not find it although it exists
	restored  *steward.State // the ledger's state from which the steward continues

	governance string                                                                     // what the governance files are
	planner    func(context.Context, stewardapi.PlanTask) (stewardapi.TaskPlanned, error) // instead of plan
}

const charterDoc = `{"kind":"steward","name":"crew","repo":{"path":"/src/shop"},
	"defaults":{"scope":["**"],"verify":{"command":"true"},"test":{"command":"true"},"agent":{"command":["agent"]},"approvals":{"tools":["*"]}}}`

func setUp(t *testing.T) *world {
	w := &world{
		t: t, env: testflow.Environment(nil), tiers: map[string]task.Tier{}, specs: map[string]map[string]any{},
		course: map[string]func(workflow.Context, string) task.ChildResult{}, reading: map[string]stewardapi.ChildRead{},
	}
	for name, f := range map[string]any{
		stewardapi.OpenStewardName: w.open, stewardapi.RecordTasksName: w.record, stewardapi.PlanTaskName: w.asked, stewardapi.ReadChildName: w.read, stewardapi.ValidateName: w.validate,
		stewardapi.JoinName: func(context.Context, stewardapi.Join) (stewardapi.Joined, error) {
			return stewardapi.Joined{Branch: "joined"}, nil
		},
	} {
		w.env.RegisterActivityWithOptions(f, activity.RegisterOptions{Name: name})
	}
	w.env.RegisterWorkflowWithOptions(Steward, workflow.RegisterOptions{Name: "Steward"})
	w.env.RegisterWorkflowWithOptions(w.loop, workflow.RegisterOptions{Name: "Deliver"})
	w.env.RegisterWorkflowWithOptions(w.loop, workflow.RegisterOptions{Name: "Improve"})
	w.env.SetStartWorkflowOptions(startOptions("crew"))
	return w
}

func (w *world) open(_ context.Context, _ stewardapi.OpenSteward) (Opened, error) {
	if w.trouble != nil {
		if err := w.trouble(stewardapi.OpenStewardName); err != nil {
			return Opened{}, err
		}
	}
	return Opened{Site: api.Site{Ref: "crew", Queue: "q", Host: "h"}, Base: "b0", Onto: "main", State: w.restored}, nil
}

func (w *world) record(_ context.Context, in stewardapi.RecordTasks) (stewardapi.TasksRecorded, error) {
	if w.trouble != nil {
		if err := w.trouble(stewardapi.RecordTasksName); err != nil {
			return stewardapi.TasksRecorded{}, err
		}
	}
	if doc, err := json.Marshal(in); err == nil {
		w.largest = max(w.largest, len(doc))
	}
	for _, e := range in.Events {
		require.Equal(w.t, int64(len(w.ledger)+1), e.Seq, "the ledger has every event once, in order")
		w.ledger = append(w.ledger, e)
	}
	require.Equal(w.t, in.Close || slices.ContainsFunc(in.Events, func(e loop.Event) bool {
		return e.Type == loop.MilestoneReached || e.Type == loop.TaskStateChanged || e.Type == loop.LoopDetected
	}), in.Milestone, "LAST_KNOWN_STATE.md is written at each transition, milestone and loop that is detected (S7)")
	if w.while != nil {
		w.while()
	}
	drift, well, mended := w.drift, w.well, w.mended
	w.drift, w.well, w.mended = nil, nil, nil
	return stewardapi.TasksRecorded{Appended: api.Appended{Ledger: fmt.Sprintf("l%d", len(w.ledger)), Mended: mended, Stop: w.stop}, Drift: drift, Well: well}, nil
}

func (w *world) asked(ctx context.Context, in stewardapi.PlanTask) (stewardapi.TaskPlanned, error) {
	if w.planner != nil {
		return w.planner(ctx, in)
	}
	return w.plan(ctx, in)
}

func (w *world) plan(_ context.Context, in stewardapi.PlanTask) (stewardapi.TaskPlanned, error) {
	p := stewardapi.TaskPlanned{
		Plan: &task.Plan{Hash: strings.Repeat("a", 64), Steps: []task.Step{{ID: "one", Kind: "deliver"}}, By: "planner"}, Tier: w.tiers[in.Task], TierBy: "rules",
	}
	if p.Tier == "" {
		p.Tier = task.T3
	}
	if p.Tier == task.T1 {
		p.Governs = true
	}
	return p, nil
}

func (w *world) read(_ context.Context, in stewardapi.ReadChild) (stewardapi.ChildRead, error) {
	if w.meanwhile != nil {
		w.meanwhile()
	}
	if there := w.reading[in.Loop]; there.Found && w.unseen[in.Loop] > 0 {
		w.unseen[in.Loop]--
		return stewardapi.ChildRead{}, nil
	}
	return w.reading[in.Loop], nil
}

func (w *world) validate(_ context.Context, in stewardapi.Validate) (stewardapi.Validated, error) {
	w.slots = append(w.slots, in.Slots["nightly"].Counted)
	w.validated++
	var drift []task.Drift
	if w.differs != nil {
		drift = w.differs()
	}
	return stewardapi.Validated{
		Drift: drift, Governance: w.governance, Missed: map[string]int{"nightly": 0}, Slots: map[string]task.Slots{"nightly": {Counted: in.Slots["nightly"].Counted + 1}},
	}, nil
}

// loop is a child: it does what the course says, and reports its end to the steward.
func (w *world) loop(ctx workflow.Context, input converter.RawValue) (string, error) {
	id := workflow.GetInfo(ctx).WorkflowExecution.ID
	var doc map[string]any
	require.NoError(w.t, json.Unmarshal(input.Payload().GetData(), &doc))
	w.specs[id] = doc
	result := task.ChildResult{Status: "completed", Head: "h-" + id, Branch: "pawl/" + id}
	if course := w.course[id]; course != nil {
		result = course(ctx, id)
	} else if err := workflow.Sleep(ctx, time.Minute); err != nil {
		return "", err
	}
	w.signal(ctx, task.ChildEvent{Loop: id, Event: task.ChildEnded, Result: &result})
	w.reading[id] = stewardapi.ChildRead{Found: true, Event: task.ChildEvent{Loop: id, Event: task.ChildEnded, Result: &result}}
	return "", nil
}

func (w *world) signal(ctx workflow.Context, e task.ChildEvent) {
	_ = workflow.SignalExternalWorkflow(ctx, "crew", "", task.ChildSignal, e).Get(ctx, nil) // its steward may be gone
}

func (w *world) state() (s steward.State) {
	v, err := w.env.QueryWorkflow("state")
	require.NoError(w.t, err)
	require.NoError(w.t, v.Get(&s))
	return s
}

func (w *world) submit(after time.Duration, doc string) {
	w.env.RegisterDelayedCallback(func() {
		w.env.SignalWorkflow("submit", json.RawMessage(`{"task":`+doc+`,"by":"ann"}`))
	}, after)
}

func (w *world) say(after time.Duration, name string, message func() string) {
	w.env.RegisterDelayedCallback(func() {
		w.env.UpdateWorkflow(name, fmt.Sprint(after), &testsuite.TestUpdateCallback{
			OnAccept: func() {}, OnReject: func(err error) { w.t.Errorf("%s: %v", name, err) }, OnComplete: func(_ any, err error) { require.NoError(w.t, err) },
		}, json.RawMessage(message()))
	}, after)
}

func (w *world) run() Result {
	w.say(time.Hour*72, "halt", func() string { return `{"by":"ann"}` })
	w.env.ExecuteWorkflow("Steward", json.RawMessage(charterDoc), Resume{})
	require.True(w.t, w.env.IsWorkflowCompleted())
	require.NoError(w.t, w.env.GetWorkflowError())
	var r Result
	require.NoError(w.t, w.env.GetWorkflowResult(&r))
	require.Equal(w.t, loop.Fold(steward.New("crew"), w.ledger).Tasks, w.final().Tasks, "the ledger has all that the steward knows")
	return r
}

func (w *world) final() (s steward.State) { return w.state() }
