package steward

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/workflow"

	"pawl/internal/loop"
	"pawl/internal/steward"
	stewardapi "pawl/internal/steward/api"
	"pawl/internal/steward/task"
)

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

// The ledger has what a steward's host has mended.
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

func TestS12_DriftThatWasKeptIsAskedAboutAgainWhenItHasBeenRight(t *testing.T) {
	w := setUp(t)
	deleted := task.Drift{Name: task.DriftArtifact, What: "STATUS_LEDGER.md", Text: "it was deleted"}
	right := deleted
	right.Text = "it is right again"
	w.drift = []task.Drift{deleted}
	w.say(time.Hour, "answer", func() string { return fmt.Sprintf(`{"gate":%q,"choice":"keep"}`, w.state().Gates[0].ID) })
	w.env.RegisterDelayedCallback(func() { w.well = []task.Drift{right} }, 2*time.Hour)
	w.submit(3*time.Hour, `{"id":"a","title":"Mend it"}`)
	w.env.RegisterDelayedCallback(func() { w.drift = []task.Drift{deleted} }, 4*time.Hour)
	w.submit(5*time.Hour, `{"id":"b","title":"Mend it"}`)
	w.run()
	require.Len(t, w.final().Gates, 1)
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
	w.planner = func(ctx context.Context, in stewardapi.PlanTask) (stewardapi.TaskPlanned, error) {
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

// A step builds on the branch of the step before it, or on one that joins those of several. If they can't be joined, it
// does not begin.
func TestAStepStartsFromTheWorkOfTheStepsBeforeIt(t *testing.T) {
	for _, conflicts := range [][]string{nil, {"main.go"}} {
		w := setUp(t)
		w.planner = func(ctx context.Context, in stewardapi.PlanTask) (stewardapi.TaskPlanned, error) {
			p, err := w.plan(ctx, in)
			p.Plan.Steps = []task.Step{{ID: "x", Kind: "deliver"}, {ID: "y", Kind: "deliver"}, {ID: "z", Kind: "deliver", After: []string{"x", "y"}}, {ID: "last", Kind: "deliver", After: []string{"z"}}}
			return p, err
		}
		var heads []string
		w.env.OnActivity(stewardapi.JoinName, mock.Anything, mock.Anything).Return(func(_ context.Context, in stewardapi.Join) (stewardapi.Joined, error) {
			heads = in.Heads
			return stewardapi.Joined{Branch: "joined", Conflicts: conflicts}, nil
		})
		w.submit(time.Second, `{"id":"a","body":"x"}`)
		result := w.run()
		require.Equal(t, []string{"h-crew-a-x", "h-crew-a-y"}, heads)
		from := func(id string) any {
			repo, _ := w.specs[id]["repo"].(map[string]any)
			return repo["base"]
		}
		require.Equal(t, from("crew-a-x"), from("crew-a-y"))
		if conflicts == nil {
			require.Equal(t, []any{"joined", "pawl/crew-a-z", int64(1)}, []any{from("crew-a-z"), from("crew-a-last"), result.Indicators.Done})
			continue
		}
		require.NotContains(t, w.specs, "crew-a-z")
		require.True(t, slices.ContainsFunc(w.ledger, func(e loop.Event) bool {
			return e.Type == loop.GateOpened && strings.Contains(e.Gate.Summary, "they conflict in main.go")
		}))
	}
}

// A person pauses while the steward joins the work of several steps: the step that follows does not begin.
func TestS6_WhatAPersonStopsMeanwhileDoesNotBegin(t *testing.T) {
	w := setUp(t)
	w.planner = func(ctx context.Context, in stewardapi.PlanTask) (stewardapi.TaskPlanned, error) {
		p, err := w.plan(ctx, in)
		p.Plan.Steps = []task.Step{{ID: "x", Kind: "deliver"}, {ID: "y", Kind: "deliver"}, {ID: "z", Kind: "deliver", After: []string{"x", "y"}}}
		return p, err
	}
	w.env.OnActivity(stewardapi.JoinName, mock.Anything, mock.Anything).After(time.Hour).Return(stewardapi.Joined{Branch: "joined"}, nil)
	w.submit(time.Second, `{"id":"a","body":"x"}`)
	w.say(30*time.Minute, "pause", func() string { return `{"by":"ann"}` })
	w.env.RegisterDelayedCallback(func() {
		require.Contains(t, w.specs, "crew-a-y")
		require.NotContains(t, w.specs, "crew-a-z")
	}, 3*time.Hour)
	w.say(4*time.Hour, "continue", func() string { return `{"by":"ann"}` })
	require.Equal(t, int64(1), w.run().Indicators.Done)
}

// A person answers at a loop while the steward sends the message that its slot is needed. The loop reports the answer
// later, and keeps its slot until it pauses.
func TestALoopThatWasAnsweredJustNowKeepsItsPlaceUntilItPauses(t *testing.T) {
	w := setUp(t)
	runs := false
	say := func(ctx workflow.Context, id, event string, g task.ChildGate) {
		w.signal(ctx, task.ChildEvent{Loop: id, Event: event, Gate: &g})
	}
	w.course["crew-a-one"] = func(ctx workflow.Context, id string) task.ChildResult {
		say(ctx, id, task.ChildAsks, task.ChildGate{ID: "question-1", Kind: "question"})
		w.reading[id] = stewardapi.ChildRead{Found: true, Event: task.ChildEvent{Loop: id, Event: task.ChildStands, Result: &task.ChildResult{Status: "running"}}}
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
		w.reading[id] = stewardapi.ChildRead{Found: true, Event: task.ChildEvent{Loop: id, Event: task.ChildEnded, Result: &task.ChildResult{Status: "completed"}}}
		panic("terminated")
	}
	w.env.SetTestTimeout(time.Minute)
	r := w.run()
	require.Equal(t, int64(1), r.Indicators.Done)
}

// Somebody ends a loop of the steward and starts another one under its ID. The work of that one is not the step's.
func TestALoopOfAnotherThatTookTheNameOfARunningOneIsNotTheTasks(t *testing.T) {
	w := setUp(t)
	w.submit(time.Second, `{"id":"a","body":"x"}`)
	w.course["crew-a-one"] = func(ctx workflow.Context, id string) task.ChildResult {
		w.reading[id] = stewardapi.ChildRead{Found: true, Event: task.ChildEvent{Loop: id, Event: task.ChildEnded, Result: &task.ChildResult{Status: "completed", Base: "b", Head: "theirs"}}}
		panic("terminated")
	}
	w.env.SetTestTimeout(time.Minute)
	r := w.run()
	require.Equal(t, int64(1), r.Indicators.Done)
	require.Contains(t, w.specs, "crew-a-one.2")
	require.Equal(t, "h-crew-a-one.2", w.final().Find("a").Head)
}

func TestALoopThatIsThereAlreadyIsAdopted(t *testing.T) {
	for plan, adopted := range map[string]bool{strings.Repeat("a", 64): true, strings.Repeat("b", 64): false} {
		w := setUp(t)
		w.submit(time.Second, `{"id":"a","body":"x"}`)
		there := task.ChildResult{Status: "completed", Steward: "crew", Approved: "steward crew, plan " + plan}
		w.reading["crew-a-one"] = stewardapi.ChildRead{Found: true, Event: task.ChildEvent{Loop: "crew-a-one", Event: task.ChildEnded, Result: &there}}
		r := w.run()
		require.Equal(t, int64(1), r.Indicators.Done)
		if adopted {
			require.Empty(t, w.specs, "it was not started once more")
			continue
		}
		require.Contains(t, w.specs, "crew-a-one.2", "that of another life of this name is not the task's")
	}
}

// The loop ends after it was read and before the steward has the answer.
func TestALoopThatEndsWhileItIsAdoptedIsDone(t *testing.T) {
	w := setUp(t)
	w.submit(time.Second, `{"id":"a","body":"x"}`)
	there := task.ChildResult{Status: "running", Steward: "crew", Approved: "steward crew, plan " + strings.Repeat("a", 64)}
	w.reading["crew-a-one"] = stewardapi.ChildRead{Found: true, Event: task.ChildEvent{Loop: "crew-a-one", Event: task.ChildStands, Result: &there, Seq: 7}}
	w.meanwhile = func() {
		w.env.SignalWorkflow(task.ChildSignal, task.ChildEvent{Loop: "crew-a-one", Event: task.ChildEnded, Result: &task.ChildResult{Status: "completed"}, Seq: 8})
		w.meanwhile = nil
	}
	require.Equal(t, int64(1), w.run().Indicators.Done)
	require.Empty(t, w.specs, "it was not started once more")
}

// The answer takes effect while a validation, which has seen the difference before, is under way.
func TestS12_AnAnswerDuringAValidationIsNotAskedForAgain(t *testing.T) {
	w := setUp(t)
	var looks int
	w.differs = func() []task.Drift {
		looks++
		moved := []task.Drift{{Name: task.DriftLedger, What: "l", Text: "it was moved", Restorable: true}}
		switch looks {
		case 1:
			return moved
		case 2:
			w.env.SignalWorkflow("answer", json.RawMessage(`{"choice":"restore","by":"ann"}`))
			return moved
		case 3:
			require.Empty(t, w.state().Gates)
		}
		return nil
	}
	w.run()
	var opened int
	for _, e := range w.ledger {
		if e.Type == loop.GateOpened {
			opened++
		}
	}
	require.Equal(t, 1, opened)
}

// Between reading a loop and starting it, somebody else may start a loop with that name.
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
	w.env.SetOnActivityCanceledListener(func(*activity.Info) { told() }) // the test environment does not notify activities
	w.planner = func(ctx context.Context, in stewardapi.PlanTask) (stewardapi.TaskPlanned, error) {
		asked = append(asked, in.Task)
		if in.Task == "low" && len(asked) == 1 { // the clock stands still while an activity runs
			w.env.SignalWorkflow("submit", json.RawMessage(`{"task":{"id":"high","body":"x","priority":5}}`))
			<-gaveUp
			return stewardapi.TaskPlanned{}, ctx.Err()
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

// The loop may be over without having been able to report it, and would keep its slot for ever.
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
		w.reading["crew-a-one"] = stewardapi.ChildRead{Found: true, Event: task.ChildEvent{Loop: "crew-a-one", Event: task.ChildEnded, Result: &task.ChildResult{
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

// A plan is approved by its hash. People who have only the Temporal UI see there what it does, and where its text is.
func TestDetailsShowThePlanThatAnApprovalIsFor(t *testing.T) {
	hash := strings.Repeat("76c6198660167f27", 4)
	s := steward.State{Steward: "crew", Status: loop.Running, Ledger: "a1b2c3", Gates: []loop.Gate{{ID: "tier-1", Kind: steward.GateTier, Task: "a", Hash: hash, Choices: []string{steward.Cancel}}},
		Tasks: []steward.Task{{ID: "a", State: task.Waiting, Plan: &task.Plan{Hash: hash, Steps: []task.Step{
			{ID: "shrink", Kind: "improve", Spec: json.RawMessage(`{"scope":["src/**"]}`)}, {ID: "tell", Kind: "deliver"},
		}}}}}
	require.Contains(t, Details(s), "The plan, 2 steps, whose SHA-256 begins with `76c6198660167f27`:\n\n- `shrink` (improve): `{\"scope\":[\"src/**\"]}`\n- `tell` (deliver): by the steward's defaults\n")
	require.Contains(t, Details(s), "`pawl steward show crew a` prints PLAN.md. So does, in the repository, `git show a1b2c3:tasks/a/PLAN.md`.")
	s.Gates[0].Kind = steward.GateStuck
	require.NotContains(t, Details(s), "The plan, ")
}

func TestDetailsOfAStewardThatHasEndedAskNobody(t *testing.T) {
	s := steward.State{Steward: "crew", Status: loop.Running, Gates: []loop.Gate{{ID: "drift-1", Kind: steward.GateDrift, Choices: []string{steward.Keep}}},
		Tasks: []steward.Task{{ID: "a", State: task.Waiting, WaitingFor: &steward.WaitingFor{Loop: "crew-a-one", Gate: "diff-2"}}}}
	require.Equal(t, 2, strings.Count(Details(s), "### Waiting"))
	s.Gates[0].Summary, s.Gates[0].Points = "it is blocked: one; two", []string{"one", "two"}
	require.Contains(t, Details(s), "it is blocked: (gate `drift-1`)\n\n- one\n- two\n\n"+steward.AsFound)
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
		"| a | PLANNING, waits for a free slot |": func(_ *steward.State, t *steward.Task) {
			t.State, t.Standstill = task.Planning, "waits for a free slot"
		},
		"| a | done |": func(_ *steward.State, t *steward.Task) { t.Outcome, t.Held = steward.Done, true },
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
