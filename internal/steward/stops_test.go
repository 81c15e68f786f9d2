package steward

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"pawl/internal/loop"
	"pawl/internal/metric"
	stewardapi "pawl/internal/steward/api"
	"pawl/internal/steward/charter"
	"pawl/internal/steward/risk"
	"pawl/internal/steward/stuck"
	"pawl/internal/steward/task"
)

// readyFor returns a state in which the action may be done.
func readyFor(do Do) (State, charter.Charter, Job) {
	c := limits()
	t := Task{ID: "a", Title: "A", Tier: task.T3, State: task.Executing, Plan: &task.Plan{Hash: "h", Steps: []task.Step{{ID: "one", Kind: "deliver"}}}, Steps: []Step{{ID: "one", Status: Pending}}}
	j := Job{Do: do, Task: "a"}
	switch do {
	case Plan:
		t.State, t.Plan, t.Steps = task.Planning, nil, nil
	case Begin, Join, Adopt:
		j.Step, j.Loop, j.Plan = t.Plan.Steps[0], "s-a-one", "h"
	case Tell:
		j.Loop, j.Message = "s-a-one", loop.MessageContinue
	}
	s := New("s")
	s.Mode, s.Tasks = "mission", []Task{t}
	return s, c, j
}

// TestS6_EveryStopConditionIsCheckedBeforeEveryAction has a row for each condition, with the actions that it stops.
func TestS6_EveryStopConditionIsCheckedBeforeEveryAction(t *testing.T) {
	actions := []Do{Plan, Begin, Join, Adopt, Propose, Tell}
	all, starts, working := actions, []Do{Begin, Join, Adopt}, []Do{Plan, Begin, Join, Adopt, Tell}
	ten := metric.MustDecimal("10")
	cases := []struct {
		name   string
		stop   string // "" if the action is no longer wanted, or not yet; nobody is asked
		before []Do
		in     func(*State, *charter.Charter, *Task)
	}{
		{"nothing holds", "", nil, func(*State, *charter.Charter, *Task) {}},
		{"the steward is being ended", StopPerson, all, func(s *State, _ *charter.Charter, _ *Task) { s.HaltRequested = "enough" }},
		{"everything is paused", StopPerson, all, func(s *State, _ *charter.Charter, _ *Task) { s.Paused = true }},
		{"the task is paused", StopPerson, all, func(_ *State, _ *charter.Charter, t *Task) { t.Paused = true }},
		{"the ledger was moved", StopConflict, all, func(s *State, _ *charter.Charter, _ *Task) {
			s.Drift = []task.Drift{{Name: task.DriftLedger, Text: "moved"}}
		}},
		{"a file was edited", "", nil, func(s *State, _ *charter.Charter, _ *Task) {
			s.Drift = []task.Drift{{Name: task.DriftArtifact, Text: "edited"}}
		}},
		{"a command is not allowed any more", StopGuardrail, starts, func(_ *State, _ *charter.Charter, t *Task) {
			if t.Plan != nil {
				t.Plan.Steps[0].Spec = json.RawMessage(`{"test":{"command":"curl evil"}}`)
			}
		}},
		{"its spec is not valid any more", StopGuardrail, starts, func(_ *State, c *charter.Charter, _ *Task) { c.Defaults = json.RawMessage(`{}`) }},
		{"nobody has approved T1", StopApproval, []Do{Begin, Join, Adopt, Propose, Tell}, func(_ *State, _ *charter.Charter, t *Task) { t.Tier = task.T1 }},
		{"nobody has approved what is needed", StopApproval, []Do{Begin, Join, Adopt, Propose, Tell}, func(_ *State, _ *charter.Charter, t *Task) {
			if t.Plan != nil {
				t.Plan.Needs = []task.Need{{Kind: task.NeedProduction, Text: "production is touched"}}
			}
		}},
		{"the money is spent", StopResources, working, func(_ *State, c *charter.Charter, t *Task) { c.Limits.CostUSD, t.Cost.CostUSD = &ten, ten }},
		{"money is left", "", nil, func(_ *State, c *charter.Charter, t *Task) {
			c.Limits.CostUSD, t.Cost.CostUSD = &ten, metric.MustDecimal("9.99")
		}},
		{"it goes in circles", StopCircle, working, func(_ *State, c *charter.Charter, t *Task) {
			t.Window = stuck.Window{SinceProgress: c.Limits.NoProgress + 1}
		}},
		{"it comes to a limit", "", nil, func(_ *State, c *charter.Charter, t *Task) {
			t.Window = stuck.Window{SinceProgress: c.Limits.NoProgress}
		}},
		{"an hour without a milestone", StopCheckIn, working, func(_ *State, c *charter.Charter, t *Task) {
			t.Window = stuck.Window{ExecutingMs: c.Limits.Executing.D().Milliseconds() + 1}
		}},
		{"what comes before was cancelled", StopDependency, []Do{Plan}, func(_ *State, _ *charter.Charter, t *Task) { t.After = []string{"gone"} }},
		{"it sleeps", "", []Do{Plan, Begin, Join, Adopt}, func(_ *State, _ *charter.Charter, t *Task) { t.Until = time.Unix(1e9, 0) }},
		{"it is over", "", all, func(_ *State, _ *charter.Charter, t *Task) { t.Outcome = Cancelled }},
		{"it waits", "", all, func(_ *State, _ *charter.Charter, t *Task) { t.State = task.Waiting }},
		{"it has another plan", "", starts, func(_ *State, _ *charter.Charter, t *Task) {
			if t.Plan != nil {
				t.Plan.Hash = "other"
			}
		}},
		{"the step was begun", "", starts, func(_ *State, _ *charter.Charter, t *Task) {
			if len(t.Steps) > 0 {
				t.Steps[0].Status = Running
			}
		}},
	}
	met := map[string]bool{StopAmbiguity: true} // this condition comes with a plan, never before an action
	for _, row := range cases {
		for _, do := range actions {
			s, c, j := readyFor(do)
			row.in(&s, &c, &s.Tasks[0])
			if plan := s.Tasks[0].Plan; j.Step.ID != "" {
				j.Step = plan.Steps[0]
			}
			got := Stopped(s, c, j)
			if !slices.Contains(row.before, do) {
				require.Nil(t, got, "%s: %s", row.name, do)
				continue
			}
			require.NotNil(t, got, "%s: %s", row.name, do)
			require.NotEmpty(t, got.Why, row.name)
			name := ""
			if got.Stop != nil {
				name = got.Stop.Name
				met[name] = true
			}
			require.Equal(t, row.stop, name, "%s: %s", row.name, do)
		}
	}
	for _, stop := range Stops {
		require.True(t, met[stop.Name], "no row for %s", stop.Name)
	}
	for _, message := range []string{loop.MessagePause, loop.MessageHalt, loop.MessageSteer} {
		s, c, j := readyFor(Tell)
		s.Paused, j.Message = true, message
		require.Nil(t, Stopped(s, c, j), "what stops a loop is never stopped: %s", message)
	}
}

// TestS6_TheImmediateStopsAreEvents checks that the ledger has an event for each of the four immediate stops.
func TestS6_TheImmediateStopsAreEvents(t *testing.T) {
	begun := func() *office {
		o := open(t, limits())
		o.submit(task.Task{ID: "a", Body: "x"}, task.T3, task.Step{ID: "x", Kind: "deliver"}, task.Step{ID: "y", Kind: "deliver"}, task.Step{ID: "z", Kind: "deliver", After: []string{"x", "y"}})
		return o
	}
	cases := map[string]struct {
		do   func(*office)
		then func(*office) // how it continues
	}{
		StopGuardrail: {
			func(o *office) {
				o.loops["s-a-x"] = "asking"
				o.child(task.ChildEvent{Loop: "s-a-x", Event: task.ChildAsks, Gate: &task.ChildGate{ID: "guard-3", Kind: "guard", Summary: "secret in config.go"}})
			},
			func(o *office) { o.answerAt("s-a-x") },
		},
		StopResources: {
			func(o *office) {
				ten := metric.MustDecimal("10")
				o.c.Limits.CostUSD = &ten
				o.child(task.ChildEvent{Loop: "s-a-x", Event: task.IterationEnded, Result: &task.ChildResult{Kept: true, Usage: task.Usage{CostUSD: ten}}})
			},
			func(o *office) {
				require.ErrorContains(t, o.say(loop.MessageExtend, Message{Gate: o.s.Gates[0].ID, Hash: o.s.Gates[0].Hash, Limits: json.RawMessage(`{"costUSD":0.01}`)}), "has to be more")
				o.answer("a", loop.MessageExtend, Message{Hash: o.s.Gates[0].Hash, Limits: json.RawMessage(`{"costUSD":20}`)})
			},
		},
		StopPerson: {
			func(o *office) { o.answer("a", loop.MessageHalt, Message{Note: "stop"}) },
			func(o *office) { o.answer("a", loop.MessageAnswer, Message{Choice: Continue}) },
		},
		StopConflict: {
			func(o *office) {
				o.emit(AfterValidation(o.s, o.c, stewardapi.Validated{Drift: []task.Drift{{Name: task.DriftLedger, What: "ref", Text: "the ledger was moved"}}})...)
			},
			func(o *office) { require.NoError(t, o.say(loop.MessageAnswer, Message{Choice: Keep})) },
		},
	}
	for name, row := range cases {
		o := begun()
		o.c.Limits.Parallel = 2
		o.settle()
		require.Equal(t, "running", o.loops["s-a-y"], name)
		row.do(o)
		o.settle()
		a := o.s.Find("a")
		require.Equal(t, task.Waiting, a.State, name)
		require.Equal(t, name, a.Stop, name)
		i := slices.IndexFunc(o.events, func(e loop.Event) bool { return e.Evidence != nil && e.Evidence.Stop == name })
		require.Positive(t, i, name)
		require.Equal(t, task.Waiting, o.events[i].To, "STOP is WAITING and not IDLE: %s", name)
		require.Equal(t, "paused", o.loops["s-a-y"], name)
		require.Contains(t, o.told, "s-a-y pause ", "at once, not at a boundary: %s", name)
		row.then(o)
		o.settle()
		require.Equal(t, task.Executing, o.s.Find("a").State, name)
		require.Equal(t, "running", o.loops["s-a-y"], name)
		require.Empty(t, o.s.Find("a").Stop)
	}
}

func TestS8_ACheckInComesAtTheEndOfAnIteration(t *testing.T) {
	o := open(t, limits())
	o.submit(task.Task{ID: "a", Body: "x"}, task.T3)
	o.settle()
	o.child(task.ChildEvent{Loop: "s-a-one", Event: task.IterationEnded, Result: &task.ChildResult{Kept: true, Usage: task.Usage{ActiveMs: time.Hour.Milliseconds() + 1}}})
	o.settle()
	require.Equal(t, StopCheckIn, o.s.Find("a").Stop)
	require.Contains(t, o.told, "s-a-one pause iteration")
}

// A task waits at the question of one loop, and its other loop goes in circles: nothing else would stop that one.
func TestS8_CirclesAreFoundWhileAnotherLoopAsks(t *testing.T) {
	o := open(t, limits())
	o.c.Limits.Parallel = 2
	o.submit(task.Task{ID: "a", Body: "x"}, task.T3, task.Step{ID: "x", Kind: "deliver"}, task.Step{ID: "y", Kind: "deliver"})
	o.settle()
	o.asks("s-a-x")
	for n := range o.c.Limits.NoProgress { // its plan was an action without progress, too
		require.Equal(t, "running", o.loops["s-a-y"])
		o.iterate("s-a-y", false, fmt.Sprint(n))
		o.settle()
	}
	require.Len(t, o.s.Gates, 1)
	require.Equal(t, GateStuck, o.s.Gates[0].Kind)
	require.Equal(t, stuck.NoProgress, o.s.Gates[0].About)
	require.Equal(t, "paused", o.loops["s-a-y"])
	o.answerAt("s-a-x")
	o.settle()
	require.Equal(t, "paused", o.loops["s-a-y"], "the answer to one question is none to the other")
	o.answer("a", loop.MessageAnswer, Message{Choice: Continue})
	o.settle()
	require.Equal(t, "running", o.loops["s-a-y"])
}

// A person lets a task continue that a limit has stopped, at once or after stepping in: it does not stop again at once.
func TestS9_ALimitCountsAnewAfterAPersonHasLetTheTaskContinue(t *testing.T) {
	for rule, reach := range map[string]func(*office){
		stuck.NoProgress: func(o *office) {
			for n := range o.c.Limits.NoProgress {
				o.iterate("s-a-one", false, fmt.Sprint(n))
			}
		},
		"retries": func(o *office) {
			o.c.Limits.Retries = 1
			o.end("s-a-one", "failed", "ALO_TEST_FAILED")
			o.settle()
			o.end("s-a-one.2", "failed", "ALO_TEST_FAILED")
		},
	} {
		for _, choice := range []string{Continue, Intervene} {
			o := open(t, limits())
			o.submit(task.Task{ID: "a", Body: "x"}, task.T3)
			o.settle()
			reach(o)
			o.settle()
			require.Len(t, o.s.Gates, 1, rule)
			require.Equal(t, rule, o.s.Gates[0].About)
			require.Equal(t, loop.Waiting, o.s.Status)
			o.answer("a", loop.MessageAnswer, Message{Choice: choice})
			if choice == Intervene {
				o.settle()
				require.Equal(t, task.Waiting, o.s.Find("a").State)
				o.answer("a", loop.MessageContinue, Message{})
			}
			o.settle()
			require.Empty(t, o.s.Gates, "%s %s", rule, choice)
			require.Equal(t, task.Executing, o.s.Find("a").State, "%s %s", rule, choice)
			require.Contains(t, slices.Collect(maps.Values(o.loops)), "running", "%s %s", rule, choice)
		}
	}
}

// The charter has changed since the plan of a task at work: its next step may not do what it would do.
func TestS6_AStepThatTheCharterForbidsByNowIsAskedAbout(t *testing.T) {
	o := open(t, limits())
	o.submit(task.Task{ID: "a", Body: "x"}, task.T3, task.Step{ID: "x", Kind: "deliver"}, task.Step{ID: "y", Kind: "deliver", After: []string{"x"}, Spec: json.RawMessage(`{"test":{"command":"curl evil"}}`)})
	o.c.Allow = []string{"curl *"}
	o.settle()
	o.c.Allow = nil
	o.end("s-a-x", "completed", "")
	o.settle()
	require.Zero(t, o.started["s-a-y"])
	require.Equal(t, StopGuardrail, o.s.Find("a").Stop)
	require.Len(t, o.s.Gates, 1)
	require.Contains(t, o.s.Gates[0].Summary, "the step y may not use the command `curl evil`")
}

// What a person tells a task, and the warning that it comes near a limit, is for the agent of its loop.
func TestGuidanceAndWarningsReachTheLoopAtWork(t *testing.T) {
	o := open(t, limits())
	o.submit(task.Task{ID: "a", Body: "x"}, task.T3)
	o.settle()
	o.answer("a", loop.MessageSteer, Message{Note: "use the cache"})
	for range 3 {
		o.settle()
		o.iterate("s-a-one", false, "1")
	}
	o.settle()
	var told []string
	for _, e := range o.events {
		if e.Type == loop.ChildTold && e.LoopID == "s-a-one" && e.Message == loop.MessageSteer {
			told = append(told, e.Note)
		}
	}
	require.Len(t, told, 2)
	require.Equal(t, "use the cache", told[0])
	require.Contains(t, told[1], "This comes near a limit: ")
}

// TestS13_ATaskEndsWithTheTimeThatItsLoopsHaveWorked: every loop counts once, and planners do not count.
func TestS13_ATaskEndsWithTheTimeThatItsLoopsHaveWorked(t *testing.T) {
	o := open(t, limits())
	o.submit(task.Task{ID: "a", Body: "x"}, task.T3)
	plan := stewardapi.TaskPlanned{Plan: &task.Plan{Hash: "1", Steps: []task.Step{{ID: "one", Kind: "deliver"}}}, Tier: task.T3}
	plan.Usage.ActiveMs = 9000
	o.emit(AfterPlan(o.s, o.c, o.next(nil)[0], plan)...)
	o.settle()
	o.child(task.ChildEvent{Loop: "s-a-one", Event: task.IterationEnded, Result: &task.ChildResult{Kept: true, Usage: task.Usage{ActiveMs: 2000}}})
	o.settle()
	o.child(task.ChildEvent{Loop: "s-a-one", Event: task.IterationEnded, Result: &task.ChildResult{Kept: true, Usage: task.Usage{ActiveMs: 3000}}})
	o.settle()
	require.EqualValues(t, 3000, o.s.Find("a").ExecutingMs, "a loop reports its sum")
	o.child(task.ChildEvent{Loop: "s-a-one", Event: task.ChildEnded, Result: &task.ChildResult{Status: string(loop.Completed), Usage: task.Usage{ActiveMs: 5000}}})
	o.settle()
	got := o.s.Find("a")
	require.Equal(t, Done, got.Outcome)
	require.EqualValues(t, 5000, got.ExecutingMs)
	require.EqualValues(t, 5000, o.s.Indicators.ExecutingMs)
	require.EqualValues(t, 14000, got.Cost.ActiveMs, "what it cost includes the planner")
	n := next{State: o.s}
	n.finish(*got, Done, "")
	require.EqualValues(t, 5000, n.events[len(n.events)-1].ExecutingMs)
}

// TestOneWarningNamesAllTasksOnTheSameFiles, except one that ended while the planner worked.
func TestOneWarningNamesAllTasksOnTheSameFiles(t *testing.T) {
	o := open(t, limits())
	o.submit(task.Task{ID: "over", Body: "x"}, task.T1)
	require.NoError(t, o.say(loop.MessageHalt, Message{Task: id("over")}))
	for _, name := range []string{"one", "two", "three"} {
		o.submit(task.Task{ID: name, Body: "x"}, task.T1)
	}
	o.settle()
	o.submit(task.Task{ID: "a", Body: "x"}, task.T3)
	plan := func(meets ...stewardapi.Meeting) (said []string) {
		for _, e := range AfterPlan(o.s, o.c, o.next(nil)[0], stewardapi.TaskPlanned{
			Plan: &task.Plan{Hash: "1", Steps: []task.Step{{ID: "one", Kind: "deliver"}}}, Tier: task.T3, Meets: meets,
		}) {
			if e.Type == loop.Warned {
				said = append(said, e.Reason)
			}
		}
		return said
	}
	require.Equal(t, []string{"other tasks may change the same files: one, three (work/a); two (new files in docs/**)"},
		plan(stewardapi.Meeting{Task: "one", On: "work/a"}, stewardapi.Meeting{Task: "over", On: "work/a"}, stewardapi.Meeting{Task: "two", On: "new files in docs/**"}, stewardapi.Meeting{Task: "three", On: "work/a"}))
	require.Empty(t, plan(stewardapi.Meeting{Task: "over", On: "work/a"}))

	var same, apart []stewardapi.Meeting
	for i := range 7 {
		name := fmt.Sprintf("t%d", i)
		o.submit(task.Task{ID: name, Body: "x"}, task.T1)
		same = append(same, stewardapi.Meeting{Task: name, On: "work/a"})
		apart = append(apart, stewardapi.Meeting{Task: name, On: name})
	}
	require.Equal(t, []string{"other tasks may change the same files: t0, t1, t2, t3, t4 and 2 more (work/a)"}, plan(same...))
	require.Equal(t, []string{"other tasks may change the same files: t0 (t0); t1 (t1); t2 (t2); t3 (t3); t4 (t4); and in 2 more places"}, plan(apart...))
}

func TestAnAnswerAtALoopDoesNotTakeAPlaceThatAnotherHas(t *testing.T) {
	o := open(t, limits())
	o.submit(task.Task{ID: "a", Body: "x"}, task.T3)
	o.submit(task.Task{ID: "b", Body: "x"}, task.T3)
	o.settle()
	o.asks("s-a-one")
	o.settle()
	require.Equal(t, "running", o.loops["s-b-one"])
	o.answerAt("s-a-one")
	o.settle()
	require.Equal(t, "paused", o.loops["s-a-one"], "its place was given to another")
	o.end("s-b-one", "completed", "")
	o.settle()
	require.Equal(t, "running", o.loops["s-a-one"])
}

func TestAPersonsOwnPauseEndsWithAPersonAlone(t *testing.T) {
	o := open(t, limits())
	o.submit(task.Task{ID: "a", Body: "x"}, task.T3)
	o.settle()
	o.answer("a", loop.MessagePause, Message{})
	o.settle()
	require.Equal(t, "paused", o.loops["s-a-one"])
	o.child(task.ChildEvent{Loop: "s-a-one", Event: task.ChildAsks, Gate: &task.ChildGate{ID: "pause-1", Kind: "pause", By: "ann"}})
	o.answer("a", loop.MessageContinue, Message{})
	o.settle()
	require.Equal(t, "paused", o.loops["s-a-one"])
	require.NotContains(t, o.told, "s-a-one continue ")
	require.Equal(t, "s-a-one", o.s.Find("a").WaitingFor.Loop, "it is shown where it waits")
	o.child(task.ChildEvent{Loop: "s-a-one", Event: task.ChildAnswered, Gate: &task.ChildGate{ID: "pause-1", Kind: "pause"}})
	o.loops["s-a-one"] = "running"
	o.settle()
	require.Equal(t, task.Executing, o.s.Find("a").State)
}

func TestAStepGoesOnFromTheWorkThatAnEarlierTryHasKept(t *testing.T) {
	ten := metric.MustDecimal("10")
	for _, row := range []struct {
		code, head string
		kept       bool
	}{
		{"BUDGET_EXHAUSTED", "h1", true},
		{"BUDGET_EXHAUSTED", "base", false},
		{"ALO_TEST_FAILED", "h1", false},
	} {
		o := open(t, limits())
		o.c.Limits.CostUSD = &ten
		o.submit(task.Task{ID: "a", Body: "x"}, task.T3)
		o.settle()
		require.Equal(t, "10", o.s.Find("a").Steps[0].Cap.String())
		o.loops["s-a-one"] = "ended"
		o.child(task.ChildEvent{Loop: "s-a-one", Event: task.ChildEnded, Result: &task.ChildResult{
			Status: "halted", ErrorCode: row.code, Head: row.head, Base: "base", Branch: "pawl/s-a-one", Usage: task.Usage{CostUSD: ten},
		}})
		o.settle()
		require.Equal(t, loop.GateBudget, o.s.Gates[0].Kind)
		o.answer("a", loop.MessageExtend, Message{Hash: o.s.Gates[0].Hash, Limits: json.RawMessage(`{"costUSD":15}`)})
		events, jobs := Next(o.s, o.c, nil)
		require.Empty(t, events)
		require.Len(t, jobs, 1)
		require.Equal(t, "s-a-one.2", jobs[0].Loop)
		require.Equal(t, "5", jobs[0].Cap.String(), "what the first has cost counts")
		want := ""
		if row.kept {
			want = "pawl/s-a-one"
		}
		require.Equal(t, want, jobs[0].From, fmt.Sprint(row))
		require.Equal(t, "10", o.s.Find("a").Cost.CostUSD.String())
	}
}

func TestS6_WorkThatCannotBeJoinedIsAConflict(t *testing.T) {
	o := open(t, limits())
	o.submit(task.Task{ID: "a", Body: "x"}, task.T3, task.Step{ID: "x", Kind: "deliver"}, task.Step{ID: "y", Kind: "deliver"}, task.Step{ID: "z", Kind: "deliver", After: []string{"x", "y"}})
	o.settle()
	o.end("s-a-x", "completed", "")
	o.settle()
	o.end("s-a-y", "completed", "")
	_, jobs := Next(o.s, o.c, nil)
	require.Len(t, jobs, 1)
	o.emit(AfterJoin(o.s, o.c, jobs[0], stewardapi.Joined{Conflicts: []string{"main.go"}})...)
	a := o.s.Find("a")
	require.Equal(t, task.Waiting, a.State)
	require.Equal(t, StopConflict, a.Stop)
	require.Equal(t, "conflict", a.Log[len(a.Log)-1].Outcome, "a join is an action, and recorded")
	require.Contains(t, o.s.Gates[0].Summary, "main.go")
	o.answer("a", loop.MessageAnswer, Message{Choice: Intervene})
	o.validated(stewardapi.Validated{Drift: []task.Drift{{Name: task.DriftLedger, What: "refs/pawl-ledger/s", Text: "it was moved"}}})
	require.NoError(t, o.say(loop.MessageAnswer, Message{Choice: Keep}))
	require.Equal(t, task.Waiting, o.s.Find("a").State, "the answer about the ledger is not for a task that a person has stepped into")
	require.Len(t, o.s.Open(), 1)
	o.answer("a", loop.MessageContinue, Message{})
	require.Equal(t, task.Executing, o.s.Find("a").State)
}

func TestCancelAnswersADriftThatATaskIsConcernedBy(t *testing.T) {
	drift := stewardapi.Validated{Drift: []task.Drift{{Name: task.DriftEngine, What: "s-a-one", Text: "gone"}}}
	o := open(t, limits())
	o.emit(AfterValidation(o.s, o.c, stewardapi.Validated{Drift: []task.Drift{{Name: task.DriftCI, What: "main", Text: "CI fails"}}})...)
	require.Equal(t, []string{Keep}, o.s.Gates[0].Choices, "there is no task that cancel could end")
	require.NoError(t, o.say(loop.MessageAnswer, Message{Choice: Keep}))
	o.submit(task.Task{ID: "a", Body: "x"}, task.T3)
	o.submit(task.Task{ID: "b", Body: "x"}, task.T3)
	o.settle()
	o.emit(AfterValidation(o.s, o.c, drift)...)
	require.Equal(t, []string{Keep, Cancel}, o.s.Gates[0].Choices)
	require.Contains(t, o.s.Gates[0].Summary, "ends the task a")
	require.NoError(t, o.say(loop.MessageAnswer, Message{Choice: Cancel, By: "ann"}))
	o.settle()
	require.Equal(t, Cancelled, o.s.Find("a").Outcome)
	require.Equal(t, "ended", o.loops["s-a-one"])
	require.Equal(t, "running", o.loops["s-b-one"])
	require.Empty(t, o.s.Drift)
}

// Only a person closes a gate. If the drift has passed, the gate says so. If it comes back, the question is asked
// again.
func TestS12_DriftThatHasPassedIsSaidAndItsGateStaysForAPerson(t *testing.T) {
	o := open(t, limits())
	failing := stewardapi.Validated{Drift: []task.Drift{{Name: task.DriftCI, What: "main", Theirs: "1", Text: "CI of main fails: build"}}}
	well := stewardapi.Validated{Well: []task.Drift{{Name: task.DriftCI, What: "main", Text: "CI of main is well again"}}}
	says := func() string {
		require.Len(t, o.s.Gates, 1)
		require.Len(t, o.s.Drift, 1)
		return o.s.Gates[0].Summary
	}
	o.validated(well)
	require.Empty(t, o.s.Gates)
	o.submit(task.Task{ID: "a", Body: "x"}, task.T3)
	o.settle()
	o.validated(failing)
	gate := o.s.Gates[0].ID
	require.Equal(t, "CI of main fails: build", says())
	o.validated(stewardapi.Validated{})
	require.Equal(t, "CI of main fails: build", says(), "nobody could look")
	o.validated(well)
	passed := "CI of main is well again (found before: CI of main fails: build)"
	require.Equal(t, passed, says())
	n := len(o.events)
	o.validated(well)
	require.Len(t, o.events, n+1, "it is said once")
	failing.Drift[0].Theirs, failing.Drift[0].Text = "2", "CI of main fails: lint"
	o.validated(failing)
	require.Equal(t, "CI of main fails: lint", says())
	require.Equal(t, "2", o.s.Drift[0].Theirs)
	o.validated(well)
	require.Equal(t, gate, o.s.Gates[0].ID)
	require.NoError(t, o.say(loop.MessageAnswer, Message{Choice: Keep, By: "ann"}))
	require.Empty(t, o.s.Gates)
	require.Empty(t, o.s.Drift)
	o.validated(failing)
	require.Equal(t, "CI of main fails: lint", says(), "who has kept it as it was well has not accepted that it fails")
	require.NotEqual(t, gate, o.s.Gates[0].ID)
	require.Equal(t, loop.Fold(New("s"), o.events).At(o.s.Ledger), o.s)
}

func TestWhatALoopSpendsWhoseTaskIsOverCounts(t *testing.T) {
	o := open(t, limits())
	o.submit(task.Task{ID: "a", Body: "x"}, task.T3)
	o.submit(task.Task{ID: "b", Body: "x"}, task.T3)
	o.settle()
	o.answer("a", loop.MessageHalt, Message{})
	o.answer("a", loop.MessageAnswer, Message{Choice: Cancel})
	jobs := o.next(nil)
	o.emit(AfterTell(jobs[0], "")...)
	require.Equal(t, loop.MessageHalt, jobs[0].Message)
	require.Empty(t, o.next(nil), "the loop has its place until it has ended")
	o.loops["s-a-one"] = "ended"
	o.child(task.ChildEvent{Loop: "s-a-one", Event: task.ChildEnded, Result: &task.ChildResult{Status: "halted", Usage: task.Usage{CostUSD: metric.MustDecimal("2")}}})
	require.Equal(t, "2", o.s.Find("a").Cost.CostUSD.String())
	require.Equal(t, "2", o.s.Usage.CostUSD.String())
	o.settle()
	require.Equal(t, "running", o.loops["s-b-one"])
}

func TestWhatPeopleAreToldIsSaidOnce(t *testing.T) {
	o := open(t, limits())
	o.submit(task.Task{ID: "a", Body: "x"}, task.T1)
	plan := o.next(nil)[0]
	o.emit(AfterPlan(o.s, o.c, plan, stewardapi.TaskPlanned{
		Plan: &task.Plan{Hash: fmt.Sprintf("%064d", 1), Steps: []task.Step{{ID: "one", Kind: "deliver"}}}, Tier: task.T1, TierBy: "rules", Governs: true,
		TierReasons: []task.TierReason{
			{Tier: task.T1, Rule: risk.Governance, Text: "RULES.md may change, and your spec calls it a governance file"},
			{Tier: task.T2, Rule: "dependencies", Text: "go.mod: which third-party code is used"},
		},
	})...)
	n := next{State: o.s, charter: o.c}
	cost := task.TierReason{Tier: task.T2, Rule: risk.Cost, Text: "an estimate of $2: more than limits.costUSD"}
	dependencies := task.TierReason{Tier: task.T2, Rule: "dependencies", Text: "go.mod: dependencies"}
	estimate := task.Need{Kind: task.NeedEstimate, Text: "the estimate of $2 is above limits.costUSD, $1"}
	for want, reasons := range map[string][]task.TierReason{
		"the tier is T2; the estimate of $2 is above limits.costUSD, $1":                      {cost},
		"go.mod: dependencies (dependencies); the estimate of $2 is above limits.costUSD, $1": {dependencies, cost},
	} {
		dear := *o.s.Find("a")
		dear.Tier, dear.TierBy, dear.TierReasons = task.T2, "rules", reasons
		dear.Plan = &task.Plan{Needs: []task.Need{risk.TierNeed(task.T2), estimate}}
		require.Equal(t, `T2: the plan of "a" needs an approval: `+want, n.tierGate(dear).Gate.Summary)
	}
	o.next(nil)
	require.Equal(t, `T1: the plan of "a" needs an approval: RULES.md may change, and your spec calls it a governance file (governance); T2: go.mod: which third-party code is used (dependencies)`, o.s.Gates[0].Summary)
	o.answer("a", loop.MessageApprove, Message{Hash: o.s.Gates[0].Hash, By: "root", Note: "the demo's own answer"})
	last := o.events[len(o.events)-1]
	require.Equal(t, "approved by root: the demo's own answer", last.Evidence.Answer)
}

func TestWhatATriggerHandsInIsTakenAlsoWithoutWhatItComesAfter(t *testing.T) {
	o := open(t, limits())
	doc := json.RawMessage(`{"id":"ci-1","title":"Mend","body":"b","after":["nobody"]}`)
	require.ErrorContains(t, o.say(MessageSubmit, Message{Task: doc}), "there is no such task", "a person is told")
	reply, err := Answer(o.s, o.c, MessageSubmit, Message{Task: doc, By: "trigger ci", Trigger: &task.Trigger{Name: "ci", From: "github"}})
	require.NoError(t, err, "the sender was told that it is accepted")
	require.Contains(t, reply.Events[1].Reason, "nobody")
	require.Empty(t, loop.Fold(o.s, reply.Events).Find("ci-1").After)
}

func TestS1_NothingIsExecutedWithoutItsArtifacts(t *testing.T) {
	o := open(t, limits())
	o.submit(task.Task{ID: "a", Body: "x"}, task.T3)
	o.settle()
	o.answer("a", loop.MessagePause, Message{})
	o.settle()
	require.NoError(t, o.say(MessageSetTier, Message{Task: id("a"), Tier: task.T1}))
	o.answer("a", loop.MessageContinue, Message{})
	o.settle()
	a := o.s.Find("a")
	require.Equal(t, task.Waiting, a.State, "its plan needs an approval by now")
	require.Equal(t, StopApproval, a.Stop)
	require.Equal(t, GateTier, o.s.Gates[0].Kind)
	require.Equal(t, "paused", o.loops["s-a-one"])
	o.answer("a", loop.MessageApprove, Message{Hash: o.s.Gates[0].Hash, By: "ann"})
	o.settle()
	require.Equal(t, "running", o.loops["s-a-one"])
	for _, e := range o.events {
		if e.Type == loop.TaskStateChanged && e.To == task.Executing {
			require.NotEmpty(t, e.Evidence.Plan)
			require.NotEmpty(t, e.Evidence.Tier)
			require.NotEmpty(t, e.Evidence.Estimate)
			require.NotEmpty(t, e.Evidence.Approval)
			require.NotEmpty(t, e.Evidence.Written, "the artifacts of that entry say so")
		}
	}
}
