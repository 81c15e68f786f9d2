package steward

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"pawl/internal/act"
	"pawl/internal/evidence"
	"pawl/internal/fault"
	"pawl/internal/loop"
	"pawl/internal/task"
)

func TestAFullQueueTakesWhatTriggersBringAndNothingOfAPerson(t *testing.T) {
	c := limits()
	c.Limits.Queue = 2
	o := open(t, c)
	require.NoError(t, o.say(MessageHold, Message{}))
	o.submit(task.Task{ID: "a", Body: "x"}, task.T3)
	o.submit(task.Task{ID: "b", Body: "x"}, task.T3)
	require.ErrorIs(t, o.say(MessageSubmit, Message{Task: []byte(`{"id": "c", "body": "x"}`)}), &fault.Error{Code: fault.QueueFull})
	require.NoError(t, o.say(MessageSubmit, Message{Task: []byte(`{"id": "c", "body": "x"}`), Trigger: &task.Trigger{Name: "ci"}}))
	require.Equal(t, []string{"a", "b", "c"}, o.s.Queue)
}

func TestAnExtensionHasToLeaveSomething(t *testing.T) {
	a := answering{at: State{Tasks: []Task{{ID: "a", Cost: task.Usage{CostUSD: evidence.MustDecimal("2")}}}}}
	for limit, ok := range map[string]bool{"1": false, "2": false, "2.01": true} {
		a.Limits = []byte(`{"costUSD": ` + limit + `}`)
		_, err := a.extension("a")
		require.Equal(t, ok, err == nil, limit)
	}
}

func TestWhatWasKeptIsAskedAboutAgainWhenItIsAnother(t *testing.T) {
	o := open(t, limits())
	at := func(commit string) act.Validated {
		return act.Validated{Drift: []task.Drift{{Name: task.DriftRemote, What: "main", Theirs: commit, Text: "it is at " + commit}}}
	}
	o.validated(at("1"))
	require.NoError(t, o.say(loop.MessageAnswer, Message{Choice: Keep}))
	o.validated(at("1"))
	require.Empty(t, o.s.Gates)
	o.validated(at("2"))
	require.Len(t, o.s.Gates, 1)
	require.Equal(t, "it is at 2", o.s.Gates[0].Summary)
}

// A ledger that somebody has moved stops all tasks. If a person cancels one of them, the others continue.
func TestCancelOfADriftOfTheLedgerLetsTheOthersGoOn(t *testing.T) {
	c := limits()
	c.Limits.Parallel = 2
	o := open(t, c)
	o.submit(task.Task{ID: "a", Body: "x"}, task.T3)
	o.submit(task.Task{ID: "b", Body: "x"}, task.T3)
	o.settle()
	o.validated(act.Validated{Drift: []task.Drift{{Name: task.DriftLedger, What: "refs/pawl-ledger/s", Text: "it was moved"}}})
	o.settle()
	require.Equal(t, StopConflict, o.s.Find("a").Stop)
	require.Equal(t, StopConflict, o.s.Find("b").Stop)
	before := len(o.events)
	require.NoError(t, o.say(loop.MessageAnswer, Message{Choice: Cancel, By: "ann"}))
	for _, e := range o.events[before:] {
		require.False(t, e.Task == "a" && e.Type == loop.TaskStateChanged && e.To != task.Idle, "it is over")
	}
	o.settle()
	require.Equal(t, Cancelled, o.s.Find("a").Outcome)
	require.Equal(t, task.Executing, o.s.Find("b").State)
}

// A loop may need minutes to pause, and is told only once.
func TestALoopIsToldOnceToPause(t *testing.T) {
	o := open(t, limits())
	o.submit(task.Task{ID: "a", Body: "x"}, task.T3)
	o.settle()
	require.NoError(t, o.say(loop.MessagePause, Message{}))
	jobs := o.next(nil)
	require.Len(t, jobs, 1)
	require.Equal(t, loop.MessagePause, jobs[0].Message)
	o.emit(AfterTell(jobs[0], "")...)
	require.Equal(t, Running, o.s.Find("a").Steps[0].Status)
	require.Empty(t, o.next(nil))
}

// The loop of a plan that was given up continues until it is told to end. The steward does not end before that.
func TestAStewardThatEndsHasToldTheLoopsOfPlansThatWereGivenUp(t *testing.T) {
	o := open(t, limits())
	o.submit(task.Task{ID: "a", Body: "x"}, task.T3)
	o.settle()
	o.child(task.ChildEvent{Loop: "s-a-one", Event: task.IterationEnded, Result: &task.ChildResult{Reason: "error:agent", RateLimit: &task.RateLimit{Said: "usage limit"}}})
	o.next(nil)
	require.NoError(t, o.say(loop.MessageAnswer, Message{Task: id("a"), Choice: Replan}))
	require.NotEmpty(t, o.s.Find("a").Ending)
	require.NoError(t, o.say(loop.MessageHalt, Message{}))
	jobs := o.next(nil)
	require.Len(t, jobs, 1, "and no end yet")
	require.Equal(t, loop.MessageHalt, jobs[0].Message)
	require.Empty(t, o.next(jobs), "nor while it is being told")
	o.emit(AfterTell(jobs[0], "")...)
	require.Equal(t, []Job{{Do: End}}, o.next(nil))
}

func TestALoopThatSaysAgainUntilWhenItSleepsIsRecordedOnce(t *testing.T) {
	o := open(t, limits())
	o.submit(task.Task{ID: "a", Body: "x"}, task.T3)
	o.settle()
	sleeps := func(until time.Time) int {
		before := len(o.events)
		o.child(task.ChildEvent{Loop: "s-a-one", Event: task.ChildSleeps, Result: &task.ChildResult{RateLimit: &task.RateLimit{Until: until}}})
		limited := 0
		for _, e := range o.events[before:] {
			if e.Type == loop.RateLimited {
				limited++
			}
		}
		return limited
	}
	until := o.now.Add(time.Hour)
	require.Equal(t, 1, sleeps(until))
	require.Equal(t, 0, sleeps(until))
	require.Equal(t, 1, sleeps(until.Add(time.Hour)))
}

// A loop that has used up its share of the money has not used up a budget of its own. Its step continues with what
// other loops leave.
func TestALoopThatHasUsedUpItsShareGoesOnWithAnother(t *testing.T) {
	for cost, asks := range map[string]bool{"5": false, "4.99": true} {
		ten := evidence.MustDecimal("10")
		c := limits()
		c.Limits.Parallel, c.Limits.CostUSD = 2, &ten
		o := open(t, c)
		o.submit(task.Task{ID: "a", Body: "x"}, task.T3, task.Step{ID: "x", Kind: "deliver"}, task.Step{ID: "y", Kind: "deliver"})
		o.settle()
		require.InDelta(t, 5, o.s.Find("a").Steps[0].Cap.Float(), 0)
		o.loops["s-a-x"] = "ended"
		o.child(task.ChildEvent{Loop: "s-a-x", Event: task.ChildEnded, Result: &task.ChildResult{
			Status: "halted", ErrorCode: string(fault.BudgetExhausted), Base: "base", Head: "h1", Branch: "pawl/s-a-x", Usage: task.Usage{CostUSD: evidence.MustDecimal(cost)},
		}})
		o.settle()
		require.Equal(t, asks, len(o.s.Gates) > 0, cost)
		if !asks {
			o.end("s-a-y", "completed", "")
			o.settle()
			require.Equal(t, 1, o.started["s-a-x.2"])
			require.InDelta(t, 5, o.s.Find("a").Steps[0].Cap.Float(), 0)
		}
	}
}

// A loop that is being told to continue already has its slot.
func TestALoopThatIsBeingToldToGoOnIsCountedOnce(t *testing.T) {
	c := limits()
	c.Limits.Parallel = 2
	o := open(t, c)
	o.submit(task.Task{ID: "a", Body: "x"}, task.T3)
	o.settle()
	require.NoError(t, o.say(loop.MessagePause, Message{Task: id("a")}))
	o.settle()
	o.submit(task.Task{ID: "b", Body: "x"}, task.T3)
	require.NoError(t, o.say(loop.MessageContinue, Message{Task: id("a")}))
	jobs := o.next(nil)
	require.Len(t, jobs, 2)
	require.Equal(t, loop.MessageContinue, jobs[0].Message)
	require.Equal(t, []Job{jobs[1]}, o.next(jobs[:1]), "the other place is for b")
}
