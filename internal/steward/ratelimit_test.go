package steward

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"pawl/internal/loop"
	"pawl/internal/steward/task"
)

func TestARateLimitWithAKnownEndIsSleptOut(t *testing.T) {
	o := open(t, limits())
	o.submit(task.Task{ID: "a", Body: "x"}, task.T3)
	o.settle()
	end := o.now.Add(5 * time.Hour)
	o.child(task.ChildEvent{Loop: "s-a-one", Event: task.IterationEnded, Result: &task.ChildResult{Reason: "error:agent", RateLimit: &task.RateLimit{Until: end}}})
	o.settle()
	a := o.s.Find("a")
	require.Equal(t, task.Executing, a.State, "nobody is asked")
	require.Equal(t, end, a.Until)
	require.Equal(t, "paused", o.loops["s-a-one"])
	require.Empty(t, a.Window.Errors, "it is no error of the task")
	require.NoError(t, o.say(loop.MessageSteer, Message{Task: id("a"), Note: "be brief"}), "messages are answered meanwhile")
	o.settle()
	require.Empty(t, Slept(o.s, "a", end.Add(time.Second)), "another time is not its time")
	o.emit(Slept(o.s, "a", end)...)
	o.settle()
	require.Equal(t, "running", o.loops["s-a-one"])

	o.loops["s-a-one"] = "ended"
	o.child(task.ChildEvent{Loop: "s-a-one", Event: task.ChildEnded, Result: &task.ChildResult{
		Status: "failed", ErrorCode: "ALO_AGENT_FAILED", Head: "h1", Branch: "pawl/s-a-one", RateLimit: &task.RateLimit{Until: end},
	}})
	o.settle()
	require.Equal(t, 0, o.s.Find("a").Retries)
	require.Equal(t, 0, o.started["s-a-one.2"])
	o.answer("a", loop.MessageContinue, Message{})
	o.settle()
	require.Equal(t, 1, o.started["s-a-one.2"], "a person may send it on before")
	require.Equal(t, "pawl/s-a-one", o.s.Find("a").Steps[0].Kept)
}

// TestAChildThatSleepsTakesItsTaskWithIt: a loop sleeps by itself and makes the call again later, so no iteration has
// failed.
func TestAChildThatSleepsTakesItsTaskWithIt(t *testing.T) {
	o := open(t, limits())
	o.submit(task.Task{ID: "a", Body: "x"}, task.T3)
	o.settle()
	end := o.now.Add(5 * time.Hour)
	o.child(task.ChildEvent{Loop: "s-a-one", Event: task.ChildSleeps, Result: &task.ChildResult{Status: "sleeping", RateLimit: &task.RateLimit{Until: end}}})
	o.settle()
	a := o.s.Find("a")
	require.Equal(t, task.Executing, a.State)
	require.Equal(t, end, a.Until)
	require.Equal(t, "paused", o.loops["s-a-one"])
	require.Empty(t, a.Window.Errors)
	o.emit(Slept(o.s, "a", end)...)
	o.settle()
	require.Equal(t, "running", o.loops["s-a-one"], "by the steward's word it goes on")
	require.Zero(t, o.s.Find("a").Until)
}

func TestARateLimitWithoutAnEndWaitsForAPerson(t *testing.T) {
	o := open(t, limits())
	o.submit(task.Task{ID: "a", Body: "x"}, task.T3)
	o.settle()
	o.child(task.ChildEvent{Loop: "s-a-one", Event: task.IterationEnded, Result: &task.ChildResult{Reason: "error:agent", RateLimit: &task.RateLimit{Said: "usage limit"}}})
	o.settle()
	require.Equal(t, task.Waiting, o.s.Find("a").State)
	require.Equal(t, StopResources, o.s.Find("a").Stop)
	require.Contains(t, o.s.Gates[0].Summary, "usage limit")
}
