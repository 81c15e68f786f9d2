package stewarding

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"pawl/internal/act"
	"pawl/internal/loop"
	"pawl/internal/steward"
	"pawl/internal/task"
)

// world is what a steward has around it: a ledger, a planner and loops.
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
	validated int
	slots     []int  // where each validation began
	stop      string // what a loop-stop file says
	specs     map[string]map[string]any
	course    map[string]func(workflow.Context, string) task.ChildResult // what the loop of that ID does
	reading   map[string]act.ChildRead
	unseen    map[string]int // how often a loop is not seen although it is there
	restored  *steward.State // what the ledger has of the steward, where it goes on from that

	governance string                                                       // what the governance files are
	planner    func(context.Context, act.PlanTask) (act.TaskPlanned, error) // instead of plan
}

const charterDoc = `{"kind":"steward","name":"crew","repo":{"path":"/src/shop"},
	"defaults":{"scope":["**"],"verify":{"command":"true"},"test":{"command":"true"},"agent":{"command":["agent"]},"approvals":{"tools":["*"]}}}`

func setUp(t *testing.T) *world {
	suite := testsuite.WorkflowTestSuite{}
	w := &world{
		t: t, env: suite.NewTestWorkflowEnvironment(), tiers: map[string]task.Tier{}, specs: map[string]map[string]any{},
		course: map[string]func(workflow.Context, string) task.ChildResult{}, reading: map[string]act.ChildRead{},
	}
	w.env.SetWorkerOptions(worker.Options{DeadlockDetectionTimeout: time.Minute}) // the machine may be busy
	for name, f := range map[string]any{
		act.OpenStewardName: w.open, act.RecordTasksName: w.record, act.PlanTaskName: w.asked, act.ReadChildName: w.read, act.ValidateName: w.validate,
		act.JoinName: func(context.Context, act.Join) (act.Joined, error) { return act.Joined{Branch: "joined"}, nil },
	} {
		w.env.RegisterActivityWithOptions(f, activity.RegisterOptions{Name: name})
	}
	w.env.RegisterWorkflowWithOptions(Steward, workflow.RegisterOptions{Name: "Steward"})
	w.env.RegisterWorkflowWithOptions(w.loop, workflow.RegisterOptions{Name: "Deliver"})
	w.env.RegisterWorkflowWithOptions(w.loop, workflow.RegisterOptions{Name: "Improve"})
	w.env.SetStartWorkflowOptions(startOptions("crew"))
	return w
}

func (w *world) open(context.Context, act.OpenSteward) (Opened, error) {
	return Opened{Site: act.Site{Ref: "crew", Queue: "q", Host: "h"}, Base: "b0", Onto: "main", State: w.restored}, nil
}

func (w *world) record(_ context.Context, in act.RecordTasks) (act.TasksRecorded, error) {
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
	return act.TasksRecorded{Appended: act.Appended{Ledger: fmt.Sprintf("l%d", len(w.ledger)), Mended: mended, Stop: w.stop}, Drift: drift, Well: well}, nil
}

func (w *world) asked(ctx context.Context, in act.PlanTask) (act.TaskPlanned, error) {
	if w.planner != nil {
		return w.planner(ctx, in)
	}
	return w.plan(ctx, in)
}

func (w *world) plan(_ context.Context, in act.PlanTask) (act.TaskPlanned, error) {
	p := act.TaskPlanned{
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

func (w *world) read(_ context.Context, in act.ReadChild) (act.ChildRead, error) {
	if there := w.reading[in.Loop]; there.Found && w.unseen[in.Loop] > 0 {
		w.unseen[in.Loop]--
		return act.ChildRead{}, nil
	}
	return w.reading[in.Loop], nil
}

func (w *world) validate(_ context.Context, in act.Validate) (act.Validated, error) {
	w.slots = append(w.slots, in.Slots["nightly"].Counted)
	w.validated++
	return act.Validated{
		Governance: w.governance, Missed: map[string]int{"nightly": 0}, Slots: map[string]task.Slots{"nightly": {Counted: in.Slots["nightly"].Counted + 1}},
	}, nil
}

// loop is a child: it does what the course says, and tells its steward of the end.
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
	w.reading[id] = act.ChildRead{Found: true, Event: task.ChildEvent{Loop: id, Event: task.ChildEnded, Result: &result}}
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

func TestAStewardPlansATaskAndRunsItsLoop(t *testing.T) {
	w := setUp(t)
	w.submit(time.Second, `{"id":"a","title":"Mend it","body":"It is broken."}`)
	r := w.run()
	require.Equal(t, int64(1), r.Indicators.Done)
	spec := w.specs["crew-a-one"]
	require.Equal(t, "deliver", spec["kind"])
	require.Equal(t, "Mend it", spec["goal"])
	require.Equal(t, "crew", spec["session"].(map[string]any)["steward"])
	require.Equal(t, "auto", spec["approvals"].(map[string]any)["plan"])
	require.Equal(t, "h", spec["repo"].(map[string]any)["host"], "another host may have something else under that path")
	require.Equal(t, loop.Halted, r.Status)
}

// What a steward's host has mended is in its ledger.
func TestAStewardRecordsWhatWasMended(t *testing.T) {
	w := setUp(t)
	w.mended = []string{"the store is gone; it is mended"}
	w.submit(time.Second, `{"id":"a","title":"Mend it"}`)
	w.run()
	require.True(t, slices.ContainsFunc(w.ledger, func(e loop.Event) bool {
		return e.Type == loop.Warned && e.Reason == "the store is gone; it is mended"
	}))
}

func TestS12_WhatAnEntryFindsInTheProjectIsAskedAboutAndWhenItIsRight(t *testing.T) {
	w := setUp(t)
	status := task.Drift{Name: task.DriftArtifact, What: "STATUS_LEDGER.md", Text: "it was edited"}
	w.drift = []task.Drift{status}
	w.env.RegisterDelayedCallback(func() {
		require.Equal(t, "it was edited", w.state().Gates[0].Summary)
		status.Text = "it is right again"
		w.well = []task.Drift{status}
	}, time.Second)
	w.submit(time.Minute, `{"id":"a","title":"Mend it"}`)
	w.run()
	require.Equal(t, "it is right again (found before: it was edited)", w.final().Gates[0].Summary)
}

func TestS4_AStewardWaitsForAnApprovalOfExactlyThePlan(t *testing.T) {
	w := setUp(t)
	w.tiers["a"] = task.T1
	w.submit(time.Second, `{"id":"a","body":"x"}`)
	w.submit(time.Second, `{"id":"b","body":"x"}`)
	w.env.RegisterDelayedCallback(func() {
		s := w.state()
		require.Equal(t, task.Waiting, s.Find("a").State)
		require.Equal(t, steward.Done, s.Find("b").Outcome, "a task that waits lets others work")
		require.NotContains(t, w.specs, "crew-a-one")
		require.Len(t, s.Gates, 1)
	}, time.Hour)
	w.say(2*time.Hour, "approve", func() string {
		return fmt.Sprintf(`{"task":"a","hash":%q,"by":"ann"}`, w.state().Gates[0].Hash)
	})
	r := w.run()
	require.Equal(t, int64(2), r.Indicators.Done)
	require.Equal(t, "ann", w.specs["crew-a-one"]["session"].(map[string]any)["approvedBy"])
}

func TestS12_GovernanceThatChangesBetweenTwoStepsIsAssessedBeforeTheSecond(t *testing.T) {
	w := setUp(t)
	w.governance = "first"
	var again []string
	w.planner = func(ctx context.Context, in act.PlanTask) (act.TaskPlanned, error) {
		p, err := w.plan(ctx, in)
		p.Plan.Steps = append(p.Plan.Steps, task.Step{ID: "two", Kind: "improve", After: []string{"one"}})
		p.Governance = w.governance
		if again = append(again, in.Again); in.Again != "" {
			p.Tier, p.Governs = task.T1, true
		}
		return p, err
	}
	w.course["crew-a-one"] = func(ctx workflow.Context, id string) task.ChildResult {
		_ = workflow.Sleep(ctx, 50*time.Minute)
		return task.ChildResult{Status: "completed", Head: "h", Branch: "pawl/" + id}
	}
	w.submit(time.Second, `{"id":"a","body":"x"}`)
	w.env.RegisterDelayedCallback(func() { w.governance = "second" }, 5*time.Minute)
	w.env.RegisterDelayedCallback(func() {
		require.Equal(t, []string{"", strings.Repeat("a", 64)}, again)
		require.Equal(t, task.Waiting, w.state().Find("a").State)
		require.NotContains(t, w.specs, "crew-a-two")
	}, 2*time.Hour)
	w.say(3*time.Hour, "approve", func() string { return fmt.Sprintf(`{"task":"a","hash":%q,"by":"ann"}`, w.state().Gates[0].Hash) })
	require.Equal(t, int64(1), w.run().Indicators.Done)
	require.Equal(t, "ann", w.specs["crew-a-two"]["session"].(map[string]any)["approvedBy"])
}

// A person's answer at a loop and the steward's message that its place is needed cross each other: the loop says
// later that it was answered, and until it pauses it has its place.
func TestALoopThatWasAnsweredJustNowKeepsItsPlaceUntilItPauses(t *testing.T) {
	w := setUp(t)
	runs := false
	say := func(ctx workflow.Context, id, event string, g task.ChildGate) {
		w.signal(ctx, task.ChildEvent{Loop: id, Event: event, Gate: &g})
	}
	w.course["crew-a-one"] = func(ctx workflow.Context, id string) task.ChildResult {
		say(ctx, id, task.ChildAsks, task.ChildGate{ID: "question-1", Kind: "question"})
		w.reading[id] = act.ChildRead{Found: true, Event: task.ChildEvent{Loop: id, Event: task.ChildStands, Result: &task.ChildResult{Status: "running"}}}
		runs = true
		_ = workflow.Sleep(ctx, 10*time.Minute)
		runs = false
		delete(w.reading, id)
		say(ctx, id, task.ChildAsks, task.ChildGate{ID: "pause-1", Kind: "pause", By: loop.StewardName("crew")})
		workflow.GetSignalChannel(ctx, loop.MessageContinue).Receive(ctx, nil)
		say(ctx, id, task.ChildAnswered, task.ChildGate{ID: "pause-1", Kind: "pause"})
		return task.ChildResult{Status: "completed"}
	}
	w.course["crew-b-one"] = func(ctx workflow.Context, id string) task.ChildResult {
		require.False(t, runs, "one loop at a time")
		return task.ChildResult{Status: "completed"}
	}
	w.submit(time.Second, `{"id":"a","body":"x"}`)
	w.submit(2*time.Minute, `{"id":"b","body":"x"}`)
	require.Equal(t, int64(2), w.run().Indicators.Done)
}

func TestNobodyAnsweringRemindsEscalatesAndGoesOnWaiting(t *testing.T) {
	w := setUp(t)
	w.tiers["a"] = task.T1
	w.submit(time.Second, `{"id":"a","body":"x"}`)
	var escalated []int
	for _, after := range []time.Duration{2 * time.Hour, 4 * time.Hour, 23 * time.Hour, 25 * time.Hour, 49 * time.Hour} {
		w.env.RegisterDelayedCallback(func() { escalated = append(escalated, w.state().Gates[0].Escalated) }, after)
	}
	w.run()
	require.Equal(t, []int{0, 1, 1, 2, 3}, escalated)
}

func TestAChildThatEndsWithoutAWordIsRead(t *testing.T) {
	w := setUp(t)
	w.submit(time.Second, `{"id":"a","body":"x"}`)
	w.course["crew-a-one"] = func(ctx workflow.Context, id string) task.ChildResult {
		w.reading[id] = act.ChildRead{Found: true, Event: task.ChildEvent{Loop: id, Event: task.ChildEnded, Result: &task.ChildResult{Status: "completed"}}}
		panic("terminated")
	}
	w.env.SetTestTimeout(time.Minute)
	r := w.run()
	require.Equal(t, int64(1), r.Indicators.Done)
}

func TestALoopThatIsThereAlreadyIsAdopted(t *testing.T) {
	for plan, adopted := range map[string]bool{strings.Repeat("a", 64): true, strings.Repeat("b", 64): false} {
		w := setUp(t)
		w.submit(time.Second, `{"id":"a","body":"x"}`)
		there := task.ChildResult{Status: "completed", Steward: "crew", Approved: "steward crew, plan " + plan}
		w.reading["crew-a-one"] = act.ChildRead{Found: true, Event: task.ChildEvent{Loop: "crew-a-one", Event: task.ChildEnded, Result: &there}}
		r := w.run()
		require.Equal(t, int64(1), r.Indicators.Done)
		if adopted {
			require.Empty(t, w.specs, "it was not started once more")
			continue
		}
		require.Contains(t, w.specs, "crew-a-one.2", "that of another life of this name is not the task's")
	}
}

// Between the look for a loop and its start somebody else may start one of that name.
func TestALoopOfAnotherThatTookTheNameIsNotTheTasks(t *testing.T) {
	for unseen, begun := range map[int]bool{1: true, 2: false} {
		w := setUp(t)
		w.course["crew-a-one"] = func(ctx workflow.Context, id string) task.ChildResult {
			ctx = workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{WorkflowID: "crew-b-one"})
			require.NoError(t, workflow.ExecuteChildWorkflow(ctx, "Deliver", w.specs[id]).Get(ctx, nil))
			w.unseen = map[string]int{"crew-b-one": unseen}
			return task.ChildResult{Status: "completed"}
		}
		w.submit(time.Second, `{"id":"a","body":"x"}`)
		w.submit(2*time.Second, `{"id":"b","body":"x"}`)
		if !begun {
			w.say(3*time.Hour, "answer", func() string { return `{"task":"b","choice":"cancel"}` })
		}
		r := w.run()
		if begun {
			require.Equal(t, int64(2), r.Indicators.Done)
			require.Contains(t, w.specs, "crew-b-one.2")
			continue
		}
		require.Equal(t, int64(1), r.Indicators.Cancelled)
		record, err := json.Marshal(w.ledger)
		require.NoError(t, err)
		require.Contains(t, string(record), "another workflow has the ID crew-b-one, and can't be read")
	}
}

func TestS6_AHaltedTaskOpensAGateThatCanBeAnswered(t *testing.T) {
	w := setUp(t)
	w.course["crew-a-one"] = func(ctx workflow.Context, id string) task.ChildResult {
		_ = workflow.Sleep(ctx, 6*time.Hour)
		return task.ChildResult{Status: "completed"}
	}
	w.submit(time.Second, `{"id":"a","body":"x"}`)
	w.say(time.Minute, "halt", func() string { return `{"task":"a","by":"ann"}` })
	w.env.RegisterDelayedCallback(func() {
		s := w.state()
		require.Equal(t, task.Waiting, s.State, "STOP is to wait for a person, not IDLE")
		require.Len(t, s.Gates, 1)
		require.NotEmpty(t, s.Gates[0].ID)
		require.False(t, s.Gates[0].OpenedAt.IsZero())
		require.Equal(t, []string{"answer"}, s.Gates[0].Answers)
	}, 2*time.Minute)
	w.say(3*time.Minute, "answer", func() string { return `{"task":"a","choice":"cancel"}` })
	require.Equal(t, int64(1), w.run().Indicators.Cancelled)
}

func TestARateLimitIsSleptOutByATimer(t *testing.T) {
	w := setUp(t)
	var end time.Time
	w.course["crew-a-one"] = func(ctx workflow.Context, id string) task.ChildResult {
		end = workflow.Now(ctx).Add(5 * time.Hour)
		return task.ChildResult{Status: "failed", ErrorCode: "ALO_AGENT_FAILED", Head: "h", Branch: "pawl/" + id, RateLimit: &task.RateLimit{Until: end, Said: "five_hour"}}
	}
	w.submit(time.Second, `{"id":"a","body":"x"}`)
	w.env.RegisterDelayedCallback(func() {
		require.NotContains(t, w.specs, "crew-a-one.2")
		require.Contains(t, Details(w.state()), "EXECUTING, sleeps until 20")
		require.Equal(t, task.Executing, w.state().State, "nobody is asked")
	}, 4*time.Hour)
	w.say(3*time.Hour, "prioritize", func() string { return `{"task":"a","priority":3}` })
	r := w.run()
	require.Equal(t, int64(1), r.Indicators.Done)
	require.Equal(t, "pawl/crew-a-one", w.specs["crew-a-one.2"]["repo"].(map[string]any)["base"], "it goes on from the work that was kept")
	slept := false
	for _, e := range w.ledger {
		if e.Type == loop.RateLimitOver {
			slept = true
			require.False(t, e.Time.Before(end), "%s", e.Time)
		}
	}
	require.True(t, slept)
}

func TestS5_APlannerIsInterruptedAndPlansAgain(t *testing.T) {
	w := setUp(t)
	var asked []string
	gaveUp := make(chan struct{})
	told := sync.OnceFunc(func() { close(gaveUp) })                      // another activity may be cancelled after it
	w.env.SetOnActivityCanceledListener(func(*activity.Info) { told() }) // this environment tells no activity
	w.planner = func(ctx context.Context, in act.PlanTask) (act.TaskPlanned, error) {
		asked = append(asked, in.Task)
		if in.Task == "low" && len(asked) == 1 { // the time stands while an activity runs
			w.env.SignalWorkflow("submit", json.RawMessage(`{"task":{"id":"high","body":"x","priority":5}}`))
			<-gaveUp
			return act.TaskPlanned{}, ctx.Err()
		}
		return w.plan(ctx, in)
	}
	w.submit(time.Second, `{"id":"low","body":"x"}`)
	r := w.run()
	require.Equal(t, []string{"low", "high", "low"}, asked)
	require.Equal(t, int64(2), r.Indicators.Done)
	require.Equal(t, []string{"crew-low-one"}, w.state().Find("low").Loops, "nothing is done twice")
}

func TestAFloodOfLargeTasksIsRecordedInPieces(t *testing.T) {
	w := setUp(t)
	const tasks = 60
	body := strings.Repeat("long ", 10_000)
	w.env.RegisterDelayedCallback(func() {
		for n := range tasks {
			w.env.SignalWorkflow("submit", json.RawMessage(fmt.Sprintf(`{"task":{"id":"t%d","body":%q}}`, n, body)))
		}
	}, time.Second)
	w.run()
	require.Less(t, w.largest, 2<<20)
	require.Equal(t, tasks, w.state().TasksCount)
}

// TestAFloodIsNotHandedToTheNextRun: what came while an entry was written is more than the input of a run may be.
func TestAFloodIsNotHandedToTheNextRun(t *testing.T) {
	w := setUp(t)
	const tasks = 60
	body := strings.Repeat("long ", 10_000)
	w.while = func() {
		w.while = nil
		for n := range tasks {
			w.env.SignalWorkflow("submit", json.RawMessage(fmt.Sprintf(`{"task":{"id":"n%d","body":%q}}`, n, body)))
		}
		w.env.RegisterDelayedCallback(func() { w.env.SetContinueAsNewSuggested(true) }, 0)
	}
	w.env.ExecuteWorkflow("Steward", json.RawMessage(charterDoc), Resume{})
	resume := w.carried()
	require.Less(t, len(must(json.Marshal(resume))), 2<<20, "Temporal takes no larger one")
	require.Equal(t, tasks, resume.Carry.State.TasksCount, "and nothing of it is lost")
}

// TestALoopOfAPlanThatWasGivenUpIsReadAtEachValidation: it may be over without having been able to say so, and would
// have its place for ever.
func TestALoopOfAPlanThatWasGivenUpIsReadAtEachValidation(t *testing.T) {
	w := setUp(t)
	w.course["crew-a-one"] = func(ctx workflow.Context, _ string) task.ChildResult {
		_ = workflow.Sleep(ctx, 1000*time.Hour)
		return task.ChildResult{}
	}
	w.submit(time.Second, `{"id":"a","body":"x"}`)
	w.say(time.Minute, "halt", func() string { return `{"task":"a"}` })
	w.say(2*time.Minute, "answer", func() string { return `{"task":"a","choice":"cancel"}` })
	w.submit(3*time.Minute, `{"id":"b","body":"x"}`)
	w.env.RegisterDelayedCallback(func() {
		s := w.state()
		require.Len(t, s.Find("a").Ending, 1)
		require.Equal(t, task.Idle, s.Find("b").State, "the loop may still be at work")
		w.reading["crew-a-one"] = act.ChildRead{Found: true, Event: task.ChildEvent{Loop: "crew-a-one", Event: task.ChildEnded, Result: &task.ChildResult{
			Status: "halted", Usage: task.Usage{Tokens: 7},
		}}}
	}, 4*time.Minute)
	require.Equal(t, int64(1), w.run().Indicators.Done)
	a := w.state().Find("a")
	require.Empty(t, a.Ending)
	require.Equal(t, int64(7), a.Cost.Tokens, "what it has cost counts")
	require.Equal(t, steward.Done, w.state().Find("b").Outcome)
}

func TestWhatIsNoCharterIsRefusedAndDoesNotHang(t *testing.T) {
	for doc, want := range map[string]string{
		`{"kind":"improve","name":"crew"}`:                         "kind",
		`{"kind":"steward","name":"other","repo":{"path":"/src"}}`: "must be the steward's name",
		`{"kind":"steward","name":"crew","colour":1}`:              "colour",
	} {
		w := setUp(t)
		w.env.ExecuteWorkflow("Steward", json.RawMessage(doc), Resume{})
		require.ErrorContains(t, w.env.GetWorkflowError(), want)
	}
}

func TestAStewardGoesOnInANewRunWithAllThatItHas(t *testing.T) {
	first := setUp(t)
	first.tiers["a"] = task.T1
	first.submit(time.Second, `{"id":"a","body":"x"}`)
	first.submit(2*time.Second, `{"id":"b","body":"x"}`)
	first.env.RegisterDelayedCallback(func() { first.env.SetContinueAsNewSuggested(true) }, 50*time.Minute)
	first.env.ExecuteWorkflow("Steward", json.RawMessage(charterDoc), Resume{})
	var next *workflow.ContinueAsNewError
	require.ErrorAs(t, first.env.GetWorkflowError(), &next)
	require.Len(t, first.ledger, int(first.ledger[len(first.ledger)-1].Seq), "all of it is in the ledger")
	var resume Resume
	require.NoError(t, converter.GetDefaultDataConverter().FromPayload(next.Input.GetPayloads()[1], &resume))

	require.Equal(t, []int{0, 1}, first.slots, "a validation begins with the slots where the last one ended")

	second := setUp(t)
	second.ledger = first.ledger
	second.submit(time.Minute, `{"id":"c","body":"x"}`)
	second.env.RegisterDelayedCallback(func() {
		require.Equal(t, 1, second.validated, "a new run looks around first: it hears of no child's end but by signals")
		require.Equal(t, []int{2}, second.slots, "and knows what the last run knew")
	}, 30*time.Second)
	second.say(time.Hour, "approve", func() string { return fmt.Sprintf(`{"task":"a","hash":%q,"by":"ann"}`, second.state().Gates[0].Hash) })
	second.say(48*time.Hour, "halt", func() string { return `{"by":"ann"}` })
	second.env.ExecuteWorkflow("Steward", json.RawMessage(next.Input.GetPayloads()[0].GetData()), resume)
	require.NoError(t, second.env.GetWorkflowError())
	s := second.state()
	for _, id := range []string{"a", "b", "c"} {
		require.NotNil(t, s.Find(id), "%s is not in %+v", id, s.Tasks)
		require.Equal(t, steward.Done, s.Find(id).Outcome, id)
	}
	require.NotContains(t, second.specs, "crew-b-one", "what was done is not done again")
}

// Temporal keeps the details with the workflow, and refuses them where they are large.
func TestS6_AStopFilePausesTheStewardUntilAPersonLetsItGoOn(t *testing.T) {
	w := setUp(t)
	w.submit(time.Second, `{"id":"a","body":"x"}`)
	w.env.RegisterDelayedCallback(func() { w.stop = "loop-stop is there" }, 10*time.Second)
	w.submit(time.Minute, `{"id":"b","body":"x"}`)
	w.env.RegisterDelayedCallback(func() {
		require.True(t, w.state().Paused)
		require.Equal(t, task.Waiting, w.state().Find("a").State)
		w.stop = ""
	}, 2*time.Minute)
	w.say(time.Hour, "continue", func() string { return `{}` })
	require.Equal(t, int64(2), w.run().Indicators.Done)
	pauses := 0
	for _, e := range w.ledger {
		if e.Type == loop.MessageReceived && e.By == "loop-stop" {
			pauses++
		}
	}
	require.Equal(t, 1, pauses, "it is said once")
}

// Who was told of a gate, or reminded of it, is not told of it as of a new one when the steward goes on in a new run.
func TestAGateThatWasToldOfIsNotToldOfAnewInTheNextRun(t *testing.T) {
	t.Run("told", func(t *testing.T) { goesOnWithAGate(t, time.Hour, loop.GateOpened) })
	t.Run("reminded", func(t *testing.T) { goesOnWithAGate(t, 5*time.Hour, loop.GateOpened, loop.GateEscalated) })
}

// goesOnWithAGate opens a gate in a run that goes on in a new one at the end.
func goesOnWithAGate(t *testing.T, end time.Duration, want ...loop.Type) {
	t.Helper()
	doc := strings.Replace(charterDoc, `"defaults"`, `"notify":["desktop"],"defaults"`, 1)
	told := func(w *world) *[]loop.Type {
		var events []loop.Type
		w.env.RegisterActivityWithOptions(func(_ context.Context, in act.Notify) error { events = append(events, in.Notice.Event); return nil },
			activity.RegisterOptions{Name: act.NotifyName})
		return &events
	}
	first := setUp(t)
	events := told(first)
	first.tiers["a"] = task.T1
	first.submit(time.Second, `{"id":"a","body":"x"}`)
	first.env.RegisterDelayedCallback(func() { first.env.SetContinueAsNewSuggested(true) }, end)
	first.env.ExecuteWorkflow("Steward", json.RawMessage(doc), Resume{})
	resume := first.carried()
	require.Equal(t, want, *events)

	second := setUp(t)
	events = told(second)
	second.ledger = first.ledger
	second.tiers["b"] = task.T1
	second.submit(time.Minute, `{"id":"b","body":"x"}`)
	second.say(time.Hour, "halt", func() string { return `{}` })
	second.env.ExecuteWorkflow("Steward", json.RawMessage(doc), resume)
	require.NoError(t, second.env.GetWorkflowError())
	require.Equal(t, []loop.Type{loop.GateOpened, loop.StewardEnded}, *events, "of the new one, and of no other")
}

// The ledger has a gate before people are told of it, so a steward that starts again from its ledger tells nobody of it anew.
func TestAGateOfTheLedgerIsNotToldOfAnewAfterARestart(t *testing.T) {
	doc := strings.Replace(charterDoc, `"defaults"`, `"notify":["desktop"],"defaults"`, 1)
	run := func(w *world, id string, resume Resume) (events []loop.Type) {
		w.env.RegisterActivityWithOptions(func(_ context.Context, in act.Notify) error { events = append(events, in.Notice.Event); return nil },
			activity.RegisterOptions{Name: act.NotifyName})
		w.tiers[id] = task.T1
		w.submit(time.Minute, `{"id":"`+id+`","body":"x"}`)
		w.say(time.Hour, "halt", func() string { return `{}` })
		w.env.ExecuteWorkflow("Steward", json.RawMessage(doc), resume)
		require.NoError(t, w.env.GetWorkflowError())
		return events
	}
	first := setUp(t)
	require.Equal(t, []loop.Type{loop.GateOpened, loop.StewardEnded}, run(first, "a", Resume{}))
	gate := slices.IndexFunc(first.ledger, func(e loop.Event) bool { return e.Type == loop.GateOpened })
	second := setUp(t)
	second.ledger = first.ledger[:gate+1] // the engine was lost then
	s := loop.Fold(steward.New("crew"), second.ledger)
	require.Len(t, s.Gates, 1)
	second.restored = &s
	require.Equal(t, []loop.Type{loop.GateOpened, loop.StewardEnded}, run(second, "b", Resume{Ledger: "l1"}), "of the new one, and of no other")
	require.Len(t, second.state().Gates, 2, "both are open")
}

func TestDetailsOfAStewardThatHasEndedAskNobody(t *testing.T) {
	s := steward.State{Steward: "crew", Status: loop.Running, Gates: []loop.Gate{{ID: "drift-1", Kind: steward.GateDrift, Choices: []string{steward.Keep}}},
		Tasks: []steward.Task{{ID: "a", State: task.Waiting, WaitingFor: &steward.WaitingFor{Loop: "crew-a-one", Gate: "diff-2"}}}}
	require.Equal(t, 2, strings.Count(Details(s), "### Waiting"))
	s.Gates[0].Summary, s.Gates[0].Points = "it is blocked: one; two", []string{"one", "two"}
	require.Contains(t, Details(s), "it is blocked: (gate `drift-1`)\n\n- one\n- two\n\n")
	s.Status = loop.Halted
	require.NotContains(t, Details(s), "### Waiting")
	require.Contains(t, Details(s), "| a | not done, was WAITING_FOR_HUMAN |")
	require.NotContains(t, Details(s), "| queue |")
}

func TestDetailsSayWhyNothingGoesOn(t *testing.T) {
	s := steward.New("crew")
	row := func(change func(*steward.State, *steward.Task)) string {
		changed := s
		changed.Mode, changed.Tasks = "mission", []steward.Task{{ID: "a", State: task.Executing, Title: "x"}}
		change(&changed, &changed.Tasks[0])
		return Details(changed)
	}
	for words, change := range map[string]func(*steward.State, *steward.Task){
		"| state | IDLE |\n| mode | mission |\n":                         func(*steward.State, *steward.Task) {},
		"| state | IDLE, held: tasks start again with `resume` |\n":      func(s *steward.State, _ *steward.Task) { s.Held = true },
		"| state | IDLE, paused: everything goes on with `continue` |\n": func(s *steward.State, _ *steward.Task) { s.Paused, s.Held = true, true },
		"| mode | plan |\n":                                    func(s *steward.State, _ *steward.Task) { s.Mode = "plan" },
		"| a | EXECUTING |":                                    func(*steward.State, *steward.Task) {},
		"| a | EXECUTING, paused |":                            func(_ *steward.State, t *steward.Task) { t.Paused = true },
		"| a | IDLE, held |":                                   func(_ *steward.State, t *steward.Task) { t.State, t.Held = task.Idle, true },
		"| a | EXECUTING, gives way to b |":                    func(_ *steward.State, t *steward.Task) { t.Interrupted = "b" },
		"| a | WAITING_FOR_HUMAN |":                            func(_ *steward.State, t *steward.Task) { t.State, t.Interrupted = task.Waiting, "b" },
		"| a | EXECUTING, sleeps until 2026-11-25T10:00:00Z |": func(_ *steward.State, t *steward.Task) { t.Until = time.Date(2026, 11, 25, 10, 0, 0, 0, time.UTC) },
		"| a | PLANNING, waits for a place |":                  func(_ *steward.State, t *steward.Task) { t.State, t.Standstill = task.Planning, "waits for a place" },
		"| a | done |":                                         func(_ *steward.State, t *steward.Task) { t.Outcome, t.Held = steward.Done, true },
	} {
		require.Contains(t, row(change), words)
	}
}

func TestDetailsAreBoundedHoweverManyLoopsWait(t *testing.T) {
	s := steward.New("crew")
	for i := range 300 {
		id := fmt.Sprintf("t%d", i)
		s.Tasks = append(s.Tasks, steward.Task{ID: id, State: task.Waiting, Title: "x", WaitingFor: &steward.WaitingFor{Loop: "crew-" + id, Gate: "diff-1", What: "a diff"}})
	}
	text := Details(s)
	require.Less(t, len(text), 16<<10)
	require.Contains(t, text, "280 more loops wait: see `pawl inbox`.")
	require.Contains(t, text, "280 more: see the query `tasks`.")
	s.Tasks = s.Tasks[:21]
	require.Contains(t, Details(s), "One more loop waits: see `pawl inbox`.")
}
