package steward

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"pawl/internal/fault"
	"pawl/internal/loop"
	"pawl/internal/metric"
	stewardapi "pawl/internal/steward/api"
	"pawl/internal/steward/task"
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
	a := answering{at: State{Tasks: []Task{{ID: "a", Cost: task.Usage{CostUSD: metric.MustDecimal("2")}}}}}
	for limit, ok := range map[string]bool{"1": false, "2": false, "2.01": true} {
		a.Limits = []byte(`{"costUSD": ` + limit + `}`)
		_, err := a.extension("a")
		require.Equal(t, ok, err == nil, limit)
	}
}

// TestS2_ATaskWhoseLoopsKeptNothingSaysSo when it is done.
func TestS2_ATaskWhoseLoopsKeptNothingSaysSo(t *testing.T) {
	o := open(t, limits())
	o.submit(task.Task{ID: "a", Body: "x"}, task.T3)
	o.settle()
	o.loops["s-a-one"] = "ended"
	o.child(task.ChildEvent{Loop: "s-a-one", Event: task.ChildEnded, Result: &task.ChildResult{Status: "completed", Head: "h"}})
	o.settle()
	a := o.s.Find("a")
	require.Equal(t, Done, a.Outcome)
	require.Equal(t, "all steps are done, but no loop has kept a change: there is nothing to apply", a.Reason)
	require.Empty(t, a.Proposal)
}

// TestS5_AnInterruptOfNothingSaysWhatHappens, and why the task does not start yet.
func TestS5_AnInterruptOfNothingSaysWhatHappens(t *testing.T) {
	c := limits()
	o := open(t, c)
	says := func(id_ string) string {
		t.Helper()
		reply, err := Answer(o.s, o.c, MessageInterrupt, Message{Task: id(id_)})
		require.NoError(t, err)
		return reply.Text
	}
	for _, name := range []string{"a", "b", "c"} {
		o.submit(task.Task{ID: name, Body: "x"}, task.T3)
	}
	const stays = "no other task at work has the priority 0 or a higher one, so %s keeps its own"
	require.Equal(t, fmt.Sprintf(stays, "a")+"; it starts as soon as a slot is free", says("a"))
	require.Equal(t, fmt.Sprintf(stays, "b")+"; the task a of the queue comes before it", says("b"))
	require.Equal(t, fmt.Sprintf(stays, "c")+"; 2 tasks of the queue come before it", says("c"))
	for name, c := range map[string]struct {
		change func(*State, *Task)
		says   string
	}{
		"paused":   {func(s *State, _ *Task) { s.Paused = true }, "; nothing goes on until you continue the steward"},
		"held":     {func(s *State, _ *Task) { s.Held = true }, "; no task starts until you resume the steward"},
		"mode":     {func(s *State, _ *Task) { s.Mode = "answer" }, "; no task starts in mode answer"},
		"waits":    {func(_ *State, t *Task) { t.State = task.Waiting }, "; it waits for a person"},
		"task":     {func(_ *State, t *Task) { t.Paused = true }, "; it is paused until you continue it"},
		"planning": {func(_ *State, t *Task) { t.State = task.Planning }, ""},
		"after":    {func(_ *State, t *Task) { t.After = []string{"b"} }, "; it waits until b is done"},
	} {
		was := o.s
		o.s.Tasks = slices.Clone(o.s.Tasks)
		c.change(&o.s, &o.s.Tasks[0])
		require.Equal(t, fmt.Sprintf(stays, "a")+c.says, says("a"), name)
		o.s = was
	}
	o.settle() // a is at work
	require.Equal(t, "b has the priority 1", says("b"))
}

func TestPrioritiesHaveAnEnd(t *testing.T) {
	o := open(t, limits())
	o.submit(task.Task{ID: "a", Body: "x", Priority: maxPriority}, task.T3)
	o.submit(task.Task{ID: "b", Body: "x"}, task.T3)
	o.settle()
	for name, c := range map[string]struct {
		message string
		p       *int
		says    string
	}{
		"beyond the end":   {MessagePrioritize, new(maxPriority + 1), "needs a priority from -1000 to 1000"},
		"beyond the start": {MessagePrioritize, new(-maxPriority - 1), "needs a priority from -1000 to 1000"},
		"none":             {MessagePrioritize, nil, "needs a priority from -1000 to 1000"},
		"the end":          {MessagePrioritize, new(maxPriority), ""},
		"the start":        {MessagePrioritize, new(-maxPriority), ""},
		"above the end":    {MessageInterrupt, nil, "a task at work has the highest priority, 1000, already"},
	} {
		_, err := Answer(o.s, o.c, c.message, Message{Task: id("b"), Priority: c.p})
		if c.says == "" {
			require.NoError(t, err, name)
		} else {
			require.ErrorContains(t, err, c.says, name)
		}
	}
	for _, m := range []Message{{Priority: new(7)}, {Choice: "7"}} { // people have only one field in some clients
		require.NoError(t, o.say(MessagePrioritize, Message{Task: id("b"), Priority: m.Priority, Choice: m.Choice}))
		require.Equal(t, 7, o.s.Find("b").Priority)
		o.emit(loop.Event{Type: loop.TaskPrioritized, Task: "b", Priority: new(0)})
	}
}

func TestWhatWasKeptIsAskedAboutAgainWhenItIsAnother(t *testing.T) {
	o := open(t, limits())
	movedTo := func(commit string) stewardapi.Validated {
		return stewardapi.Validated{Drift: []task.Drift{{Name: task.DriftRemote, What: "main", Theirs: commit, Text: "it is at " + commit}}}
	}
	o.validated(movedTo("1"))
	require.NoError(t, o.say(loop.MessageAnswer, Message{Choice: Keep}))
	o.validated(movedTo("1"))
	require.Empty(t, o.s.Gates)
	o.validated(movedTo("2"))
	require.Len(t, o.s.Gates, 1)
	require.Equal(t, "it is at 2", o.s.Gates[0].Summary)
}

// TestS11_DriftThatWasAcceptedIsAskedAboutAgainOnceItHasPassed, whether an answer or nobody put it right.
func TestS11_DriftThatWasAcceptedIsAskedAboutAgainOnceItHasPassed(t *testing.T) {
	const file = "STATUS_LEDGER.md"
	differing := func(theirs string) stewardapi.Validated {
		return stewardapi.Validated{Drift: []task.Drift{{Name: task.DriftArtifact, What: file, Theirs: theirs, Text: "it differs"}}}
	}
	for _, second := range []string{Keep, Restore} {
		o := open(t, limits())
		for range 2 {
			o.validated(differing(""))
			require.Len(t, o.s.Gates, 1, second)
			require.NoError(t, o.say(loop.MessageAnswer, Message{Choice: Keep}))
			o.validated(differing(""))
			require.Empty(t, o.s.Gates, "it is as they want it")
			o.validated(differing("edited"))
			require.NoError(t, o.say(loop.MessageAnswer, Message{Choice: second}))
		}
		require.Equal(t, loop.Fold(New("s"), o.events).At(o.s.Ledger), o.s)
	}
	o := open(t, limits())
	for range 2 {
		o.validated(differing(""))
		require.NoError(t, o.say(loop.MessageAnswer, Message{Choice: Keep}))
		v := stewardapi.Validated{Well: []task.Drift{{Name: task.DriftArtifact, What: file, Text: "it is there again"}, {Name: task.DriftCI, What: "main", Text: "CI of main is well again"}}}
		o.validated(v)
		require.Empty(t, o.s.Accepted)
		require.Empty(t, o.s.Drift)
		require.Empty(t, o.s.forgotten(v.Well), "once")
	}
}

// A ledger that somebody has moved stops all tasks. Gates that an earlier version opened offer to cancel one of them:
// then the others continue.
func TestCancelOfADriftOfTheLedgerLetsTheOthersGoOn(t *testing.T) {
	c := limits()
	c.Limits.Parallel = 2
	o := open(t, c)
	o.submit(task.Task{ID: "a", Body: "x"}, task.T3)
	o.submit(task.Task{ID: "b", Body: "x"}, task.T3)
	o.settle()
	moved := task.Drift{Name: task.DriftLedger, What: "refs/pawl-ledger/s", Text: "it was moved", Task: "a"}
	o.emit(loop.Event{Type: loop.DriftFound, Drift: &moved}, loop.Event{Type: loop.GateOpened, Drift: &moved, Gate: &loop.Gate{
		Kind: GateDrift, Choices: []string{Keep, Cancel}, Summary: "it was moved", About: about(moved),
	}})
	o.settle()
	require.Equal(t, StopConflict, o.s.Find("a").Stop)
	require.Equal(t, StopConflict, o.s.Find("b").Stop)
	require.Equal(t, o.s.Gates, o.s.Open(), "only the question about the ledger: its tasks can't be continued")
	require.Error(t, o.say(loop.MessageContinue, Message{Task: id("b")}))
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
		ten := metric.MustDecimal("10")
		c := limits()
		c.Limits.Parallel, c.Limits.CostUSD = 2, &ten
		o := open(t, c)
		o.submit(task.Task{ID: "a", Body: "x"}, task.T3, task.Step{ID: "x", Kind: "deliver"}, task.Step{ID: "y", Kind: "deliver"})
		o.settle()
		require.InDelta(t, 5, o.s.Find("a").Steps[0].Cap.Float(), 0)
		o.loops["s-a-x"] = "ended"
		o.child(task.ChildEvent{Loop: "s-a-x", Event: task.ChildEnded, Result: &task.ChildResult{
			Status: "halted", ErrorCode: string(fault.BudgetExhausted), Base: "base", Head: "h1", Branch: "pawl/s-a-x", Usage: task.Usage{CostUSD: metric.MustDecimal(cost)},
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

func TestS5_AHeldStewardStartsNothingUntilItResumes(t *testing.T) {
	o := open(t, limits())
	require.NoError(t, o.say(MessageHold, Message{}))
	o.submit(task.Task{ID: "a", Body: "x"}, task.T3)
	o.settle()
	require.Equal(t, task.Idle, o.s.Find("a").State)
	require.NoError(t, o.say(MessageResume, Message{}))
	o.settle()
	require.Equal(t, task.Executing, o.s.Find("a").State)
	require.NoError(t, o.say(loop.MessageHalt, Message{Note: "enough"}))
	require.Equal(t, "enough", o.s.HaltRequested)
}

// A task that an earlier steward of the project has done does not run again without a word; one that was not may.
func TestG19_ATaskThatAnEarlierStewardHasDoneDoesNotRunAgain(t *testing.T) {
	first := open(t, limits())
	first.submit(task.Task{ID: "done", Body: "x", Dedupe: "key"}, task.T3)
	first.submit(task.Task{ID: "open", Body: "x"}, task.T1)
	first.submit(task.Task{ID: "cancelled", Body: "x"}, task.T1)
	first.settle()
	first.end("s-done-one", "completed", "")
	first.settle()
	first.answer("cancelled", loop.MessageHalt, Message{})
	first.settle()
	require.Equal(t, Done, first.s.Find("done").Outcome)

	known := DoneBefore(append(slices.Clone(first.s.Known), first.s.Known...))
	require.Len(t, known, 2, "its ID and its dedupe key, each once")
	o := open(t, limits())
	o.emit(loop.Event{Type: loop.StewardOpened, Opened: &loop.Opened{Kind: "steward", Known: known}})
	says := func(doc string) string {
		reply, err := Answer(o.s, o.c, MessageSubmit, Message{Task: json.RawMessage(doc)})
		require.NoError(t, err)
		return reply.Text
	}
	require.Contains(t, says(`{"id": "done", "title": "d", "body": "x"}`), "has ended: done. It does not start again; to do it once more, submit it with another ID")
	require.Contains(t, says(`{"id": "other", "title": "d", "body": "x", "dedupe": "key"}`), "another dedupe key")
	require.Contains(t, says(`{"id": "open", "title": "d", "body": "x"}`), "task open, 0 before it")
	require.Contains(t, says(`{"id": "cancelled", "title": "d", "body": "x"}`), "task cancelled, 0 before it")
	require.Contains(t, says(`{"title": "done", "body": "x"}`), "task done-2, ")
}
