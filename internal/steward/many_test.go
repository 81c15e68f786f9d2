package steward

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"pawl/internal/loop"
	"pawl/internal/metric"
	"pawl/internal/steward/task"
)

// A steward asks what comes next after each event, and asks for each of them again when a worker replays it. With a
// thousand tasks that once took so long that Temporal ended the workflow task.
func TestS2_WhatComesNextIsCheapWithAThousandTasks(t *testing.T) {
	o := open(t, limits())
	for i := range 1000 {
		o.emit(loop.Event{Type: loop.TaskSubmitted, Submitted: &task.Task{ID: fmt.Sprintf("t%d", i), Body: "x", Plan: []task.Step{{ID: "x", Kind: "improve"}}}})
	}
	allocated := testing.AllocsPerRun(5, func() { Next(o.s, o.c, nil) })
	require.Less(t, allocated, 2000.0, "it looks at each task a few times, and not at each beside each other one")
}

// TestS5_NoTaskIsForgottenThatIsNotOver submits one task that waits, and then more tasks that end than a state keeps.
func TestS5_NoTaskIsForgottenThatIsNotOver(t *testing.T) {
	o := open(t, limits())
	o.submit(task.Task{ID: "waits", Body: "x"}, task.T1)
	o.settle()
	for n := range KeepEnded + 5 {
		o.submit(task.Task{ID: fmt.Sprint("t", n), Body: "x"}, task.T3)
		o.settle()
		o.end(fmt.Sprintf("s-t%d-one", n), "completed", "")
		o.settle()
	}
	require.NotNil(t, o.s.Find("waits"))
	require.Nil(t, o.s.Find("t0"), "the oldest that is over is")
	require.Len(t, o.s.Tasks, KeepEnded+1)
	require.Equal(t, KeepEnded+6, o.s.TasksCount)
	o.submit(task.Task{ID: "t0", Body: "x"}, task.T3)
	require.Equal(t, KeepEnded+6, o.s.TasksCount, "and is known when it comes again")
	o.answer("waits", loop.MessageAnswer, Message{Choice: Cancel})
	require.NotNil(t, o.s.Find("waits"), "it came first and has ended last")
	require.Nil(t, o.s.Find("t5"))
}

func TestATaskWhoseLoopsHaveNotEndedIsNotForgotten(t *testing.T) {
	s := New("s")
	s.Tasks = append(s.Tasks, Task{ID: "left", State: task.Idle, Outcome: Cancelled, Ending: []Step{{Loop: "l"}}})
	for n := range KeepEnded + 1 {
		s.Tasks = append(s.Tasks, Task{ID: fmt.Sprint("t", n), State: task.Idle, Outcome: Done, Ended: time.Unix(int64(n+1), 0)})
	}
	s.derive()
	require.NotNil(t, s.Find("left"))
	require.Nil(t, s.Find("t0"))
}

// TestS11_AReportThatComesLateChangesNothing delivers the signals of a loop in another order than it sent them.
func TestS11_AReportThatComesLateChangesNothing(t *testing.T) {
	o := open(t, limits())
	o.submit(task.Task{ID: "a", Body: "x"}, task.T3)
	o.settle()
	o.child(task.ChildEvent{Loop: "s-a-one", Seq: 20, Event: task.IterationEnded, Result: &task.ChildResult{Status: "running", Kept: true}})
	before := o.s
	o.child(task.ChildEvent{Loop: "s-a-one", Seq: 12, Event: task.ChildAsks, Gate: &task.ChildGate{ID: "question-1", Kind: "question"}})
	o.child(task.ChildEvent{Loop: "s-a-one", Seq: 20, Event: task.IterationEnded, Result: &task.ChildResult{Status: "running", Kept: true}})
	require.Equal(t, before, o.s)
	o.child(task.ChildEvent{Loop: "s-a-one", Event: task.ChildStands}) // read before its first event
	require.Equal(t, before, o.s)
	o.child(task.ChildEvent{Loop: "s-a-one", Seq: 20, Event: task.ChildEnded, Result: &task.ChildResult{Status: "completed"}})
	o.settle()
	require.Equal(t, Done, o.s.Find("a").Outcome, "another report after the same event is not late")
}

// A run that was reset to before its ledger's head fails with fewer events than the loop had. Its end counts, and what was
// spent stays spent. The same holds for a loop that nobody knows any more.
func TestS11_TheEndOfALoopThatWasResetCounts(t *testing.T) {
	for name, e := range map[string]task.ChildEvent{
		"reset": {Seq: 7, Result: &task.ChildResult{Status: "failed", ErrorCode: "LEDGER_AHEAD", Head: "base", Branch: "pawl/s-a-one"}},
		"lost":  {Result: &task.ChildResult{Status: "failed", ErrorCode: "ALO_LOOP_NOT_FOUND"}},
	} {
		t.Run(name, func(t *testing.T) {
			o := open(t, limits())
			o.submit(task.Task{ID: "a", Body: "x"}, task.T3)
			o.settle()
			spent := task.Usage{CostUSD: metric.MustDecimal("2"), Tokens: 10, ActiveMs: 1000, ToolCalls: 3}
			o.child(task.ChildEvent{Loop: "s-a-one", Seq: 20, Event: task.IterationEnded, Result: &task.ChildResult{Status: "running", Kept: true, Head: "h", Branch: "pawl/s-a-one", Usage: spent}})
			cost := o.s.Find("a").Cost
			o.loops["s-a-one"] = "ended"
			e.Loop, e.Event = "s-a-one", task.ChildEnded
			o.child(e)
			a := o.s.Find("a")
			require.Equal(t, cost, a.Cost)
			require.Equal(t, 1, a.Retries)
			require.Equal(t, Pending, a.Steps[0].Status)
			require.Equal(t, "h", a.Head)
			o.settle()
			require.Equal(t, "s-a-one.2", o.s.Find("a").Steps[0].Loop)
			before := o.s
			o.child(e)
			require.Equal(t, before, o.s, "the loop before is nothing to the next one")
			o.end("s-a-one.2", "completed", "")
			o.settle()
			require.Equal(t, Done, o.s.Find("a").Outcome)
			require.Equal(t, cost, o.s.Find("a").Cost)
		})
	}
}

// TestS11_ATaskGoesOnWithALoopThatHas: a loop continues after an answer, and the report of the answer is lost.
func TestS11_ATaskGoesOnWithALoopThatHas(t *testing.T) {
	o := open(t, limits())
	o.submit(task.Task{ID: "a", Body: "x"}, task.T3)
	o.settle()
	o.asks("s-a-one")
	require.Equal(t, task.Waiting, o.s.Find("a").State)
	o.iterate("s-a-one", true, "1")
	require.Equal(t, task.Executing, o.s.Find("a").State)
	require.Empty(t, o.s.contradictions())
}

func TestAListThatIsCutHasItsFullCountBesideIt(t *testing.T) {
	o := open(t, limits())
	for _, what := range []string{"one", "two", "three"} {
		o.emit(loop.Event{Type: loop.DriftFound, Drift: &task.Drift{Name: task.DriftArtifact, What: what}})
	}
	shown := o.s.Shown(2)
	require.Len(t, shown.Drift, 2)
	require.Equal(t, 3, shown.DriftCount)
}
