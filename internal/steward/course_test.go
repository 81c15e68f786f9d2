package steward

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"pawl/internal/loop"
	"pawl/internal/loop/rules"
	stewardapi "pawl/internal/steward/api"
	"pawl/internal/steward/task"
)

func TestATaskGoesThroughPlanAndStepsToOneProposal(t *testing.T) {
	o := open(t, limits())
	o.submit(task.Task{ID: "a", Body: "x"}, task.T3, task.Step{ID: "one", Kind: "deliver"}, task.Step{ID: "two", Kind: "improve", After: []string{"one"}})
	o.settle()
	require.Equal(t, task.Executing, o.s.State)
	require.Equal(t, 0, o.started["s-a-two"])
	o.end("s-a-one", "completed", "")
	o.settle()
	require.Equal(t, 1, o.started["s-a-two"])
	o.end("s-a-two", "completed", "")
	o.settle()
	done := o.s.Find("a")
	require.Equal(t, Done, done.Outcome)
	require.Equal(t, task.Idle, o.s.State)
	require.NotEmpty(t, done.Proposal)
	require.Equal(t, []string{"s-a-one", "s-a-two"}, done.Loops)
	require.Equal(t, loop.Fold(New("s"), o.events).Find("a"), o.s.Find("a"))
}

func TestAStepBeginsWithTheWorkOfThoseThatItComesAfter(t *testing.T) {
	o := open(t, limits())
	o.submit(task.Task{ID: "a", Body: "x"}, task.T3, task.Step{ID: "one", Kind: "deliver"}, task.Step{ID: "two", Kind: "deliver"}, task.Step{ID: "three", Kind: "deliver", After: []string{"one"}})
	for _, step := range []string{"s-a-one", "s-a-two"} {
		o.settle()
		o.loops[step] = "ended"
		o.child(task.ChildEvent{Loop: step, Event: task.ChildEnded, Result: &task.ChildResult{Status: "completed"}})
	}
	_, jobs := Next(o.s, o.c, nil)
	require.Len(t, jobs, 1)
	require.Equal(t, "three", jobs[0].Step.ID)
	require.Len(t, jobs[0].After, 1)
	require.Equal(t, "one", jobs[0].After[0].ID)
	require.True(t, jobs[0].Last)
}

func TestS4_ATaskOfTierT1WaitsForExactlyItsPlan(t *testing.T) {
	o := open(t, limits())
	o.submit(task.Task{ID: "a", Body: "x"}, task.T1)
	o.settle()
	require.Equal(t, task.Waiting, o.s.State)
	require.Len(t, o.s.Gates, 1)
	require.Error(t, o.say(loop.MessageApprove, Message{Task: id("a"), Hash: "0000000000000000ffff"}))
	o.answer("a", loop.MessageApprove, Message{Hash: o.s.Gates[0].Hash[:64], By: "me"})
	o.settle()
	require.Equal(t, task.Executing, o.s.Find("a").State)
	require.Equal(t, "me", o.s.Find("a").ApprovedBy)
	require.Equal(t, 1, o.started["s-a-one"])
}

func TestAWaitingTaskLetsOthersWork(t *testing.T) {
	o := open(t, limits())
	o.submit(task.Task{ID: "a", Body: "x"}, task.T1)
	o.submit(task.Task{ID: "b", Body: "x"}, task.T3)
	o.settle()
	require.Equal(t, task.Waiting, o.s.Find("a").State)
	require.Equal(t, task.Executing, o.s.Find("b").State)
	require.Equal(t, task.Executing, o.s.State)
}

func TestS5_AHigherPriorityInterruptsAndTheOtherGoesOnAfterwards(t *testing.T) {
	o := open(t, limits())
	o.submit(task.Task{ID: "low", Body: "x"}, task.T3)
	o.settle()
	o.submit(task.Task{ID: "same", Body: "x"}, task.T3)
	o.settle()
	require.Equal(t, "running", o.loops["s-low-one"], "only strictly higher priority interrupts")
	o.submit(task.Task{ID: "high", Body: "x", Priority: 5}, task.T3)
	o.settle()
	require.Equal(t, "paused", o.loops["s-low-one"])
	require.Equal(t, "running", o.loops["s-high-one"])
	require.Equal(t, "high", o.s.Find("low").Interrupted)
	o.end("s-high-one", "completed", "")
	o.settle()
	require.Equal(t, "running", o.loops["s-low-one"])
	require.Equal(t, 1, o.started["s-low-one"])
	o.end("s-low-one", "completed", "")
	o.settle()
	require.Equal(t, "running", o.loops["s-same-one"])
}

func TestS9_ALoopThatGoesInCirclesStopsAndAsks(t *testing.T) {
	o := open(t, limits())
	o.submit(task.Task{ID: "a", Body: "x"}, task.T3)
	o.settle()
	o.iterate("s-a-one", true, "1")
	progress := o.s.Find("a").ProgressAt
	require.Equal(t, o.now.Add(-time.Second), progress)
	for n := range 4 {
		require.Equal(t, task.Executing, o.s.Find("a").State, n)
		o.iterate("s-a-one", false, "1")
		o.settle()
	}
	require.Equal(t, progress, o.s.Find("a").ProgressAt, "they were no progress")
	require.Equal(t, task.Waiting, o.s.Find("a").State)
	require.Equal(t, "paused", o.loops["s-a-one"])
	require.Equal(t, GateStuck, o.s.Gates[0].Kind)
	o.answer("a", loop.MessageAnswer, Message{Choice: Continue})
	o.settle()
	require.Equal(t, "running", o.loops["s-a-one"])
	for range 3 {
		o.iterate("s-a-one", false, "1")
		o.settle()
	}
	require.Equal(t, task.Executing, o.s.Find("a").State, "it counts from the beginning")
	o.iterate("s-a-one", false, "1")
	o.settle()
	o.answer("a", loop.MessageAnswer, Message{Choice: Cancel, Note: "enough"})
	o.settle()
	require.Equal(t, Cancelled, o.s.Find("a").Outcome)
	require.Equal(t, "ended", o.loops["s-a-one"])
	require.Equal(t, task.Idle, o.s.State)
	require.Equal(t, loop.Running, o.s.Status, "it asks nothing any more")
}

func TestAStepThatBeginsSaysHow(t *testing.T) {
	o := open(t, limits())
	o.submit(task.Task{ID: "a", Body: "x"}, task.T3)
	for len(o.started) == 0 {
		events, jobs := Next(o.s, o.c, nil)
		o.emit(events...)
		for _, j := range jobs {
			if j.Do == Begin {
				begun := AfterBegin(o.s, j)[0]
				require.Equal(t, []string{"", ""}, []string{begun.How, begun.Reason})
				begun = AfterBegin(loop.Fold(o.s, []loop.Event{{Type: loop.TaskEnded, Task: "a", Status: loop.Halted, Outcome: Cancelled}}), j)[0]
				require.Equal(t, "the task has changed since: the loop is ended", begun.Reason)
				j.Do = Adopt
				require.Equal(t, "adopted", AfterBegin(o.s, j)[0].How)
				return
			}
			o.job(j)
		}
	}
}

func TestS10_AStepIsTriedAgainThreeTimes(t *testing.T) {
	o := open(t, limits())
	o.submit(task.Task{ID: "a", Body: "x"}, task.T3)
	o.settle()
	for n, id := range []string{"s-a-one", "s-a-one.2", "s-a-one.3", "s-a-one.4"} {
		require.Equal(t, 1, o.started[id], n)
		require.Equal(t, task.Executing, o.s.Find("a").State)
		o.loops[id] = "ended"
		o.child(task.ChildEvent{Loop: id, Event: task.ChildEnded, Result: &task.ChildResult{Status: "failed", ErrorCode: "ALO_TEST_FAILED", Reason: fmt.Sprint(n)}})
		o.settle()
	}
	require.Equal(t, task.Waiting, o.s.Find("a").State)
	require.Equal(t, GateStuck, o.s.Gates[0].Kind)
	require.Equal(t, 0, o.started["s-a-one.5"])
}

// The source counts failures. If a person stops a loop or rejects its work, that is an answer and no failure.
func TestS10_WhatAPersonStopsIsNoFailure(t *testing.T) {
	for name, r := range map[string]task.ChildResult{
		"a file loop-stop": {Status: "halted", ErrorCode: "ALO_CANCELLED", Reason: "the file loop-stop"},
		"a rejected diff":  {Status: "completed", Proposal: &task.ChildProposal{Hash: "c", State: "rejected"}},
	} {
		o := open(t, limits())
		o.submit(task.Task{ID: "a", Body: "x"}, task.T3)
		o.settle()
		for n, id := range []string{"s-a-one", "s-a-one.2", "s-a-one.3"} {
			o.loops[id] = "ended"
			o.child(task.ChildEvent{Loop: id, Event: task.ChildEnded, Result: &task.ChildResult{Status: "failed", ErrorCode: "ALO_TEST_FAILED", Reason: fmt.Sprint(n)}})
			o.settle()
		}
		require.Equal(t, 3, o.s.Find("a").Retries, name)
		o.loops["s-a-one.4"] = "ended"
		o.child(task.ChildEvent{Loop: "s-a-one.4", Event: task.ChildEnded, Result: &r})
		a := o.s.Find("a")
		require.Equal(t, 3, a.Retries, name)
		require.Equal(t, 3, a.Steps[0].Failed, name)
		require.EqualValues(t, 3, o.s.Indicators.Errors, name)
		require.Contains(t, []string{"halted", "rejected"}, a.Tripped, name)
		require.Equal(t, task.Waiting, a.State, name)
	}
}

func TestAPausedTaskIsSomethingThatWaitsForAPerson(t *testing.T) {
	o := open(t, limits())
	o.submit(task.Task{ID: "a", Body: "x"}, task.T3)
	o.settle()
	_, waits := o.s.Find("a").Stands()
	require.False(t, waits)
	o.answer("a", loop.MessagePause, Message{})
	o.settle()
	require.Equal(t, "paused", o.loops["s-a-one"])
	g, waits := o.s.Find("a").Stands()
	require.True(t, waits)
	ways := Ways("s", g)
	require.Len(t, ways, 1)
	require.Equal(t, "pawl steward continue s a", ways[0].Command)
	payload, err := json.Marshal(ways[0].Payload)
	require.NoError(t, err)
	m, err := Decode(payload)
	require.NoError(t, err)
	require.NoError(t, o.say(ways[0].Message, m))
	o.settle()
	require.Equal(t, "running", o.loops["s-a-one"])
}

func TestTwoTasksNeverHaveOneLoop(t *testing.T) {
	o := open(t, limits())
	o.submit(task.Task{ID: "x", Body: "b"}, task.T3, task.Step{ID: "y-z", Kind: "deliver"})
	o.submit(task.Task{ID: "x-y", Body: "b"}, task.T3, task.Step{ID: "z", Kind: "deliver"})
	o.settle()
	o.end("s-x-y-z", "completed", "")
	o.settle()
	require.Equal(t, []string{"s-x-y-z.2"}, o.s.Find("x-y").Loops)
}

func TestWhatAChildAsksIsMirroredAndAnsweredThere(t *testing.T) {
	o := open(t, limits())
	o.submit(task.Task{ID: "a", Body: "x"}, task.T3)
	o.submit(task.Task{ID: "b", Body: "x"}, task.T3)
	o.settle()
	o.child(task.ChildEvent{Loop: "s-a-one", Event: task.ChildAsks, Gate: &task.ChildGate{ID: "diff-9", Kind: "diff", Summary: "the change"}})
	o.loops["s-a-one"] = "asking"
	o.settle()
	require.Equal(t, WaitingFor{Loop: "s-a-one", Gate: "diff-9", Kind: "diff", What: "the change"}, *o.s.Find("a").WaitingFor)
	require.Equal(t, task.Executing, o.s.Find("b").State)
	require.ErrorContains(t, o.say(loop.MessageApprove, Message{Task: id("a"), Hash: "0"}), "s-a-one")
	o.end("s-a-one", "completed", "")
	o.settle()
	require.Equal(t, Done, o.s.Find("a").Outcome)
}

func TestASubmissionThatComesAgainIsTheSameTask(t *testing.T) {
	o := open(t, limits())
	o.submit(task.Task{ID: "a", Body: "x", Dedupe: "d1"}, task.T3)
	o.submit(task.Task{ID: "a", Body: "y"}, task.T3)
	o.submit(task.Task{Title: "Another", Body: "y", Dedupe: "d1"}, task.T3)
	require.Equal(t, 1, o.s.TasksCount)
	require.Error(t, o.say(MessageSubmit, Message{Task: json.RawMessage(`{"id":"b","body":"x","after":["nobody"]}`)}))
	require.Error(t, o.say(MessageSubmit, Message{Task: json.RawMessage(`{"id":"b","body":"x","colour":1}`)}))
}

func TestRandomCoursesLoseNoTaskAndRunNoneTwice(t *testing.T) {
	for seed := range courses(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		c := limits()
		c.Limits.Parallel = 1 + r.IntN(3)
		o := open(t, c)
		tasks := 1 + r.IntN(5)
		for n := range tasks {
			steps := []task.Step{{ID: "x", Kind: "improve"}}
			if r.IntN(2) == 0 {
				steps = []task.Step{{ID: "x", Kind: "improve"}, {ID: "y", Kind: "improve"}, {ID: "z", Kind: "deliver", After: []string{"x", "y"}}}
			}
			o.submit(task.Task{ID: fmt.Sprint("t", n), Body: "b", Priority: r.IntN(3)}, task.Tiers[r.IntN(4)], steps...)
		}
		for range 400 {
			o.settle()
			var open []string
			for id, status := range o.loops {
				if status == "running" {
					open = append(open, id)
				}
			}
			slices.Sort(open)
			switch {
			case len(open) > 0 && r.IntN(3) > 0:
				id := open[r.IntN(len(open))]
				switch r.IntN(5) {
				case 0:
					o.end(id, "failed", "ALO_TEST_FAILED")
				case 1, 2:
					o.end(id, "completed", "")
				default:
					o.iterate(id, r.IntN(2) == 0, fmt.Sprint(r.IntN(5)))
				}
			case len(o.s.Gates) > 0:
				g := o.s.Gates[r.IntN(len(o.s.Gates))]
				if g.Kind == GateTier && r.IntN(2) == 0 {
					o.answer(g.Task, loop.MessageApprove, Message{Gate: g.ID, Hash: g.Hash, By: "me"})
				} else {
					o.answer(g.Task, loop.MessageAnswer, Message{Gate: g.ID, Choice: g.Choices[r.IntN(len(g.Choices))]})
				}
			default:
				_ = o.say(loop.MessageContinue, Message{})
			}
			for _, task := range o.s.Tasks {
				if task.Outcome == "" && r.IntN(200) == 0 {
					_ = o.say([]string{loop.MessagePause, loop.MessageContinue, loop.MessageHalt, MessageInterrupt, MessageHold, MessageResume}[r.IntN(6)], Message{Task: id(task.ID)})
				}
			}
		}
		// From now on every gate is answered, and every loop succeeds.
		for range 200 {
			_ = o.say(loop.MessageContinue, Message{})
			for _, task := range o.s.Tasks {
				_ = o.say(MessageResume, Message{Task: id(task.ID)})
				_ = o.say(loop.MessageContinue, Message{Task: id(task.ID)})
			}
			for _, g := range slices.Clone(o.s.Gates) {
				if g.Kind == GateTier {
					o.answer(g.Task, loop.MessageApprove, Message{Gate: g.ID, Hash: g.Hash, By: "me"})
				} else {
					o.answer(g.Task, loop.MessageAnswer, Message{Gate: g.ID, Choice: g.Choices[0]})
				}
			}
			o.settle()
			for _, id := range slices.Sorted(func(yield func(string) bool) {
				for id, status := range o.loops {
					if status == "running" && !yield(id) {
						return
					}
				}
			}) {
				o.end(id, "completed", "")
			}
		}
		for n := range tasks {
			task := o.s.Find(fmt.Sprint("t", n))
			require.NotNil(t, task, "seed %d", seed)
			require.NotEmpty(t, task.Outcome, "seed %d: %s is %s, waits for %+v, steps %+v", seed, task.ID, task.State, task.WaitingFor, task.Steps)
		}
		for id, n := range o.started {
			require.Equal(t, 1, n, "seed %d: %s", seed, id)
		}
		for id, status := range o.loops {
			require.Equal(t, "ended", status, "seed %d: %s goes on", seed, id)
		}
		require.Equal(t, loop.Fold(New("s"), o.events).At(o.s.Ledger), o.s, "seed %d: the state is the fold of its events", seed)
	}
}

func TestALoopThatHasPausedBeforeTheLedgerKnowsGoesOnAgain(t *testing.T) {
	o := open(t, limits())
	o.submit(task.Task{ID: "low", Body: "x"}, task.T3)
	o.settle()
	o.submit(task.Task{ID: "high", Body: "x", Priority: 1}, task.T3)
	o.loops["s-low-one"] = "paused"
	o.child(task.ChildEvent{Loop: "s-low-one", Event: task.ChildAsks, Gate: &task.ChildGate{ID: "pause-1", Kind: "pause", By: loop.StewardName("s")}})
	require.Equal(t, task.Executing, o.s.Find("low").State, "nobody is asked about the steward's own pause")
	o.settle()
	o.end("s-high-one", "completed", "")
	o.settle()
	require.Equal(t, Done, o.s.Find("high").Outcome)
	o.emit(AfterTell(Job{Task: "low", Loop: "s-low-one", Message: loop.MessagePause}, "")...)
	o.settle()
	require.Equal(t, "running", o.loops["s-low-one"])
}

// The loop of a task that gives way ends its step first; a stop that is immediate must not wait for that.
func TestS6_AnImmediateStopInterruptsALoopThatWasToPauseLater(t *testing.T) {
	of := func(m Message) Message { m.Task = id("a"); return m }
	for name, c := range map[string]struct {
		told    string
		message string
		m       Message
		again   []string
	}{
		"the task is halted":              {loop.PauseStep, loop.MessageHalt, of(Message{}), []string{loop.PauseNow}},
		"the task is paused":              {loop.PauseStep, loop.MessagePause, of(Message{}), []string{loop.PauseNow}},
		"the steward is paused":           {loop.PauseStep, loop.MessagePause, Message{}, []string{loop.PauseNow}},
		"it was to end its iteration":     {loop.PauseIteration, loop.MessagePause, Message{}, []string{loop.PauseNow}},
		"it was to pause at once already": {loop.PauseNow, loop.MessagePause, Message{}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			o := open(t, limits())
			o.submit(task.Task{ID: "a", Body: "x"}, task.T3)
			o.settle()
			o.emit(AfterTell(Job{Task: "a", Loop: "s-a-one", Message: loop.MessagePause, Choice: c.told}, "")...)
			require.NoError(t, o.say(c.message, c.m))
			var again []string
			for _, j := range o.next(nil) {
				require.Equal(t, loop.MessagePause, j.Message)
				again = append(again, j.Choice)
				o.emit(AfterTell(j, "")...)
			}
			require.Equal(t, c.again, again)
			require.Empty(t, o.next(nil), "it is told once")
		})
	}
}

func TestS10_WhatFailsWhileAnotherLoopAsksCounts(t *testing.T) {
	c := limits()
	c.Limits.Parallel, c.Limits.Retries = 2, 0
	for status, code := range map[string]string{"failed": "ALO_TEST_FAILED", "halted": "ALO_CANCELLED", "completed": ""} {
		o := open(t, c)
		o.submit(task.Task{ID: "a", Body: "x"}, task.T3, task.Step{ID: "x", Kind: "deliver"}, task.Step{ID: "y", Kind: "deliver"})
		o.settle()
		o.child(task.ChildEvent{Loop: "s-a-y", Event: task.ChildAsks, Gate: &task.ChildGate{ID: "diff-9", Kind: "diff", Summary: "the change"}})
		o.loops["s-a-x"] = "ended"
		o.child(task.ChildEvent{Loop: "s-a-x", Event: task.ChildEnded, Result: &task.ChildResult{
			Status: status, ErrorCode: code, Proposal: &task.ChildProposal{Hash: "c", State: "rejected"},
		}})
		o.settle()
		o.child(task.ChildEvent{Loop: "s-a-y", Event: task.ChildAnswered, Gate: &task.ChildGate{ID: "diff-9", Kind: "diff"}})
		o.settle()
		require.Equal(t, 0, o.started["s-a-x.2"], "%s: it is not begun again without a word", status)
		require.Equal(t, task.Waiting, o.s.Find("a").State)
		require.Equal(t, GateStuck, o.s.Gates[0].Kind)
	}
}

func TestS10_EachStepHasItsOwnRetries(t *testing.T) {
	c := limits()
	c.Limits.Parallel = 2
	o := open(t, c)
	o.submit(task.Task{ID: "a", Body: "x"}, task.T3, task.Step{ID: "x", Kind: "deliver"}, task.Step{ID: "y", Kind: "deliver"})
	o.settle()
	fail := func(id string) {
		o.loops[id] = "ended"
		o.child(task.ChildEvent{Loop: id, Event: task.ChildEnded, Result: &task.ChildResult{Status: "failed", ErrorCode: "ALO_TEST_FAILED", Reason: id}})
		o.settle()
	}
	for _, id := range []string{"s-a-x", "s-a-x.2", "s-a-y", "s-a-x.3", "s-a-y.2"} {
		require.Equal(t, task.Executing, o.s.Find("a").State, id)
		fail(id)
	}
	require.Equal(t, task.Executing, o.s.Find("a").State, "five failures, but three of one step")
	o.end("s-a-y.3", "completed", "")
	o.settle()
	fail("s-a-x.4")
	require.Equal(t, task.Waiting, o.s.Find("a").State, "what another step comes to is no more tries for this one")
}

func TestWhatAgentsWroteIsToldApartFromWhatTheyRead(t *testing.T) {
	require.Equal(t, task.Usage{Tokens: 120, OutputTokens: 20}, rules.Child(loop.State{Usage: loop.Usage{InputTokens: 100, OutputTokens: 20}}, "").Result.Usage)
	o := open(t, limits())
	o.submit(task.Task{ID: "a", Body: "x"}, task.T3)
	var plan Job
	for plan.Do != Plan {
		events, jobs := Next(o.s, o.c, nil)
		o.emit(events...)
		if len(jobs) > 0 {
			plan = jobs[0]
		}
	}
	o.emit(AfterPlan(o.s, o.c, plan, stewardapi.TaskPlanned{
		Plan: &task.Plan{Hash: "1", Steps: []task.Step{{ID: "one", Kind: "deliver"}}}, Tier: task.T3, TierBy: "rules", Usage: task.Usage{Tokens: 10, OutputTokens: 4},
	})...)
	o.settle()
	said := task.ChildResult{Status: "running", Usage: task.Usage{Tokens: 100, OutputTokens: 20}}
	o.child(task.ChildEvent{Loop: "s-a-one", Event: task.IterationEnded, Result: &said})
	ended := task.ChildResult{Status: "completed", Usage: task.Usage{Tokens: 300, OutputTokens: 50}}
	o.loops["s-a-one"] = "ended"
	o.child(task.ChildEvent{Loop: "s-a-one", Event: task.ChildEnded, Result: &ended})
	o.settle()
	require.Equal(t, task.Usage{Tokens: 310, OutputTokens: 54}, o.s.Usage)
	var made, over *loop.Usage
	for _, e := range o.events {
		switch e.Type {
		case loop.ActionTaken:
			if e.Action.Name == "plan" {
				made = e.Usage
			}
		case loop.TaskEnded:
			over = e.Usage
		}
	}
	require.Equal(t, &loop.Usage{InputTokens: 6, OutputTokens: 4}, made)
	require.Equal(t, &loop.Usage{InputTokens: 256, OutputTokens: 54}, over)

	old := loop.Fold(o.s, []loop.Event{{Type: loop.ActionTaken, Task: "a", Action: &task.Action{}, Usage: &loop.Usage{InputTokens: 90}}})
	require.Equal(t, task.Usage{Tokens: 400, OutputTokens: 54}, old.Usage, "a record from before says of all that it was read")
}

// A step whose loop approves by itself (approvals.diff: auto) leaves a marked proposal open. Later steps would build on it.
func TestS4_WhatOnlyAPersonMayApproveIsAskedAboutBeforeTheNextStep(t *testing.T) {
	steps := []task.Step{{ID: "x", Kind: "deliver"}, {ID: "y", Kind: "deliver", After: []string{"x"}}}
	ends := func(o *office, id, state string, marked bool) {
		o.loops[id] = "ended"
		o.child(task.ChildEvent{Loop: id, Event: task.ChildEnded, Result: &task.ChildResult{
			Status: "completed", Head: "c-" + id, Base: "b", Branch: "pawl/" + id,
			Proposal: &task.ChildProposal{Hash: "h", State: state, Marked: marked, Why: "unproven: the guard fails on the base too"},
		}})
		o.settle()
	}
	for _, c := range []struct {
		state  string
		marked bool
		asked  bool
	}{{"open", true, true}, {"approved", true, false}, {"open", false, false}} {
		o := open(t, limits())
		o.submit(task.Task{ID: "a", Body: "x"}, task.T3, steps...)
		o.settle()
		ends(o, "s-a-x", c.state, c.marked)
		if !c.asked {
			require.Equal(t, 1, o.started["s-a-y"], "%+v", c)
			continue
		}
		require.Equal(t, 0, o.started["s-a-y"], "nothing builds on it")
		require.Len(t, o.s.Gates, 1)
		require.Equal(t, "marked", o.s.Gates[0].About)
		require.Contains(t, o.s.Gates[0].Summary, "unproven: the guard fails on the base too")
		require.Contains(t, o.s.Gates[0].Summary, "pawl diff s-a-x")
		o.answer("a", loop.MessageAnswer, Message{Choice: Continue})
		o.settle()
		require.Equal(t, 1, o.started["s-a-y"], "a person has let it pass")
		require.Equal(t, 0, o.s.Find("a").Steps[0].Failed, "which is no failure")
		ends(o, "s-a-y", "open", true)
		require.Equal(t, Done, o.s.Find("a").Outcome, "the last one is the task's own proposal, which a person approves")
	}
}
