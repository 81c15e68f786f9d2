package steward

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/fault"
	"pawl/internal/loop"
	"pawl/internal/loop/rules"
	"pawl/internal/steward/charter"
	"pawl/internal/steward/task"
)

func TestS5_ASpecThatATaskBringsIsReadAsStrictlyAsALoops(t *testing.T) {
	o := open(t, limits())
	for doc, wants := range map[string][]string{
		`{"id":"a","spec":{"verfy":{"command":"x"},"limits":{"iterations":0},"name":"x"},"colour":1}`: {"spec.verfy: is not a key of a spec", "spec.limits.iterations: is 0", "spec.name: can't be set", "colour: is not a key of a task"},
		`{"id":"a","plan":[{"id":"x","kind":"deliver","spec":{"kind":"improve","nope":1}}]}`:          {"plan[0].spec.kind: can't be set", "plan[0].spec.nope: is not a key of a spec"},
	} {
		err := o.say(MessageSubmit, Message{Task: []byte(doc)})
		require.Equal(t, fault.InvalidMessage, fault.CodeOf(err))
		for _, want := range wants {
			require.ErrorContains(t, err, want)
		}
	}
	require.Empty(t, o.s.Tasks)
}

func TestS5_TheReplyToATaskSaysHowManyComeBefore(t *testing.T) {
	o := open(t, limits())
	require.NoError(t, o.say(MessageHold, Message{}))
	for _, c := range []struct{ doc, says string }{
		{`{"id":"a","body":"x"}`, "task a, 0 before it in the queue"},
		{`{"id":"b","body":"x"}`, "task b, 1 before it in the queue"},
		{`{"id":"c","body":"x","priority":5}`, "task c, 0 before it in the queue"},
		{`{"id":"d","body":"x","priority":1}`, "task d, 1 before it in the queue"},
		{`{"id":"e","body":"x","priority":9,"after":["a"]}`, "task e, 0 before it in the queue; it waits until a is done"},
		{`{"id":"f","body":"x","after":["a","b","c","d","e","a"]}`, "task f, 5 before it in the queue; it waits until a, b, c, d, e are done"},
	} {
		reply, err := Answer(o.s, o.c, MessageSubmit, Message{Task: []byte(c.doc)})
		require.NoError(t, err)
		require.Equal(t, c.says, reply.Text)
		o.emit(reply.Events...)
	}
	require.Equal(t, []string{"e", "c", "d", "a", "b", "f"}, o.s.Queue)
	reply, err := Answer(o.s, o.c, loop.MessagePause, Message{Task: id("a")})
	require.NoError(t, err)
	require.Contains(t, reply.Text, "it does not start", "no loop of it runs")
}

func TestS5_ATaskThatComesAgainIsToldHowTheFirstOneEnded(t *testing.T) {
	o := open(t, limits())
	o.submit(task.Task{ID: "a", Body: "x", Dedupe: "k"}, task.T3)
	says := func(doc string) string {
		reply, err := Answer(o.s, o.c, MessageSubmit, Message{Task: []byte(doc)})
		require.NoError(t, err)
		require.Empty(t, reply.Events)
		return reply.Text
	}
	require.Equal(t, "the task a is there already: IDLE", says(`{"id":"a","body":"x"}`))
	require.NoError(t, o.say(loop.MessageHalt, Message{Task: id("a"), Note: "not now"}))
	require.Equal(t, Cancelled, o.s.Find("a").Outcome)
	require.Equal(t, "the task a was submitted before and has ended: cancelled (not now). It does not start again; to do it once more, submit it with another ID", says(`{"id":"a","body":"x"}`))
	require.Contains(t, says(`{"id":"b","body":"x","dedupe":"k"}`), "submit it with another dedupe key")
	o.s.Tasks = nil // the tasks ended long ago
	require.Contains(t, says(`{"id":"a","body":"x"}`), "has ended: cancelled.")
}

func TestS3_AnEmptyPlanIsNoMissingOne(t *testing.T) {
	o := open(t, limits())
	doc := []byte(`{"id":"a","title":"x","plan":[ ]}`)
	require.ErrorContains(t, o.say(MessageSubmit, Message{Task: doc}), "plan: has no steps")
	require.NotContains(t, o.say(MessageSubmit, Message{Task: []byte(`{"plan":[]}`)}).Error(), "missing")
}

func TestAScheduleSkipsItsSlotWhileTheTaskOfThePreviousOneIsNotOver(t *testing.T) {
	for overlap, skips := range map[string]bool{"": true, charter.Skip: true, charter.Buffer: false, charter.Allow: false} {
		o := open(t, limits())
		o.c.Schedules = []charter.Schedule{{Name: "nightly", Overlap: overlap}}
		slot := func(id, source string) rules.Reply {
			reply, err := Answer(o.s, o.c, MessageSubmit, Message{Task: fmt.Appendf(nil, `{"id":%q,"body":"x","source":%q}`, id, source), Trigger: &task.Trigger{Name: "nightly", From: "schedule"}})
			require.NoError(t, err)
			o.emit(reply.Events...)
			return reply
		}
		slot("a", task.Scheduled+"nightly")
		reply := slot("b", task.Scheduled+"nightly")
		require.Equal(t, skips, o.s.Find("b") == nil, overlap)
		if skips {
			require.Equal(t, "the task a of the previous slot is not over", reply.Text)
			require.Equal(t, "missed: "+reply.Text, reply.Events[0].Trigger.Result)
		}
		slot("c", task.Scheduled+"weekly")
		require.NotNil(t, o.s.Find("c"), "of another schedule")
		require.NoError(t, o.say(loop.MessageHalt, Message{Task: id("a")}))
		slot("d", task.Scheduled+"nightly")
		require.NotNil(t, o.s.Find("d"), overlap)
	}
}

func TestToContinueATaskIsToContinueNoOther(t *testing.T) {
	o := open(t, limits())
	o.c.Limits.Parallel = 2
	for _, name := range []string{"a", "b"} {
		o.submit(task.Task{ID: name, Body: "x"}, task.T3)
		o.settle()
		o.answer(name, loop.MessagePause, Message{})
		o.settle()
	}
	reply, err := Answer(o.s, o.c, loop.MessageContinue, Message{Task: id("a")})
	require.NoError(t, err)
	for _, e := range reply.Events {
		require.Equal(t, "a", e.Task)
	}
	o.emit(reply.Events...)
	o.settle()
	require.Equal(t, task.Executing, o.s.Find("a").State)
	require.Equal(t, task.Waiting, o.s.Find("b").State)
	require.Equal(t, "paused", o.loops["s-b-one"])
}

func TestAStewardThatIsPausedStandsForItsTasks(t *testing.T) {
	o := open(t, limits())
	o.submit(task.Task{ID: "a", Body: "x"}, task.T3)
	o.settle()
	require.Empty(t, o.s.Open())
	require.NoError(t, o.say(loop.MessagePause, Message{}))
	o.settle()
	waits := o.s.Open()
	require.Len(t, waits, 1)
	ways := Ways("s", waits[0])
	require.Equal(t, "pawl steward continue s", ways[0].Command)
	require.Empty(t, ways[0].Payload)

	err := o.say(loop.MessageContinue, Message{Task: id("a")})
	require.Equal(t, fault.LoopNotPaused, fault.CodeOf(err), "it would not go on")
	require.Contains(t, err.(*fault.Error).Do, "pawl steward continue s")
	o.answer("a", loop.MessagePause, Message{})
	require.Len(t, o.s.Open(), 2, "a task that is paused by itself, too")
	o.answer("a", loop.MessageContinue, Message{})
	o.settle()
	require.Equal(t, task.Waiting, o.s.Find("a").State)
	require.NoError(t, o.say(loop.MessageContinue, Message{}))
	o.settle()
	require.Equal(t, task.Executing, o.s.Find("a").State)
	require.Empty(t, o.s.Open())
}

func TestAnAnswerToAGateThatIsClosedIsToldWhoClosedIt(t *testing.T) {
	o := open(t, limits())
	o.submit(task.Task{ID: "a", Body: "x"}, task.T1)
	o.submit(task.Task{ID: "b", Body: "x"}, task.T1)
	o.settle()
	first := o.s.Gates[0]
	require.NoError(t, o.say(loop.MessageAnswer, Message{Gate: first.ID, Choice: Intervene, By: "ann"}))
	err := o.say(loop.MessageApprove, Message{Gate: first.ID, Hash: first.Hash})
	require.Equal(t, fault.GateClosed, fault.CodeOf(err))
	require.ErrorContains(t, err, "the gate "+first.ID+" is closed: answer intervene by ann")
	require.ErrorContains(t, o.say(loop.MessageAnswer, Message{Gate: first.ID, Choice: Cancel}), "the gate "+first.ID+" is closed: answer intervene by ann", "another choice is another answer")
	require.Equal(t, fault.GateMismatch, fault.CodeOf(o.say(loop.MessageApprove, Message{Gate: "tier-999", Hash: first.Hash})), "there never was such a gate")
}

// TestE3_AnApprovalThatIsSentTwiceDoesNotApproveAnotherPlan: two plans with the same text have the same hash.
func TestE3_AnApprovalThatIsSentTwiceDoesNotApproveAnotherPlan(t *testing.T) {
	c := limits()
	c.Limits.Parallel = 2
	o := open(t, c)
	o.submit(task.Task{ID: "a", Body: "x"}, task.T1)
	o.settle()
	first := o.s.Gates[0]
	approval := Message{Hash: first.Hash, By: "ann"}
	require.NoError(t, o.say(loop.MessageApprove, approval))
	o.settle()
	err := o.say(loop.MessageApprove, approval)
	require.Equal(t, fault.GateClosed, fault.CodeOf(err), "nothing waits")
	require.ErrorContains(t, err, "the gate "+first.ID+" was answered like this already: approve by ann")

	o.submit(task.Task{ID: "b", Body: "x"}, task.T1)
	o.settle()
	o.s.Gates[0].Hash = first.Hash
	second := o.s.Gates[0]
	err = o.say(loop.MessageApprove, approval)
	require.Equal(t, fault.GateClosed, fault.CodeOf(err), "the other plan waits")
	require.ErrorContains(t, err, `{"gate": "`+second.ID+`"}`)
	require.NotNil(t, o.s.Waits(second.ID))

	named := approval
	named.Gate = second.ID
	_, err = Answer(o.s, o.c, loop.MessageApprove, named)
	require.NoError(t, err, "the gate is named")
	other := approval
	other.Task = json.RawMessage(`"b"`)
	_, err = Answer(o.s, o.c, loop.MessageApprove, other)
	require.NoError(t, err, "the other task is named")
}

func TestAnAnswerThatFitsSeveralGatesIsToldWhich(t *testing.T) {
	c := limits()
	c.Limits.Parallel = 3
	o := open(t, c)
	for _, id := range []string{"a", "b", "c"} {
		o.submit(task.Task{ID: id, Body: "x"}, task.T1)
	}
	o.settle()
	require.Len(t, o.s.Gates, 3)
	err := o.say(loop.MessageApprove, Message{Hash: o.s.Gates[1].Hash})
	require.ErrorContains(t, err, `3 gates wait: say which one`)
	require.ErrorContains(t, err, "Name it, with --gate or as the message's `gate`: "+o.s.Gates[1].ID+".", "only one has that hash")
	err = o.say(loop.MessageAnswer, Message{Choice: Cancel})
	require.ErrorContains(t, err, o.s.Gates[0].ID+" or "+o.s.Gates[1].ID+" or "+o.s.Gates[2].ID+".")
}

func TestASubmissionWithoutATaskIsToldWhatIsMissing(t *testing.T) {
	o := open(t, limits())
	for _, doc := range []string{"", "null"} {
		err := o.say(MessageSubmit, Message{Task: json.RawMessage(doc)})
		require.Equal(t, fault.InvalidMessage, fault.CodeOf(err))
		require.ErrorContains(t, err, "submit needs a task\nGive it: {\"task\": ")
	}
}

func TestTheModeOfATaskIsRefused(t *testing.T) {
	o := open(t, limits())
	o.submit(task.Task{ID: "a", Body: "x"}, task.T3)
	of := Message{Task: json.RawMessage(`"a"`), Mode: "plan"}
	require.ErrorContains(t, o.say(loop.MessageSetMode, of), "the mode is that of the whole steward, not of the task a")
	require.NoError(t, o.say(loop.MessageSetMode, Message{Mode: "plan"}))
}

func TestAnEmptyTaskIsNotTheWholeSteward(t *testing.T) {
	o := open(t, limits())
	for _, name := range []string{loop.MessageHalt, loop.MessagePause, MessageHold} {
		none := Message{Task: json.RawMessage(`""`)}
		require.ErrorContains(t, o.say(name, none), "task is empty")
	}
	require.Empty(t, o.s.HaltRequested)
	require.False(t, o.s.Paused)
}

func TestS6_TheQuestionAboutATaskThatWasHaltedSaysWhoWhereAndWhy(t *testing.T) {
	o := open(t, limits())
	o.submit(task.Task{ID: "a", Body: "x"}, task.T3)
	o.settle()
	require.NoError(t, o.say(loop.MessageHalt, Message{Task: id("a"), Note: "not needed", By: "ann"}))
	require.Equal(t, `"a": halted by ann at the step one: not needed`, o.s.Gates[0].Summary)
}

func TestS6_TheQuestionAboutATaskThatCannotStartSaysWhatReplanDoes(t *testing.T) {
	const rest = "; replan does a without it"
	for want, known := range map[string]bool{
		"the task first, which has to be done first, was cancelled" + rest: true,
		"the task first, which has to be done first, is not known" + rest:  false,
	} {
		o := open(t, limits())
		o.submit(task.Task{ID: "first", Body: "x"}, task.T3)
		o.submit(task.Task{ID: "a", Body: "x", After: []string{"first"}}, task.T3)
		require.NoError(t, o.say(loop.MessageHalt, Message{Task: id("first")}))
		if !known {
			o.s.Tasks = slices.DeleteFunc(o.s.Tasks, func(t Task) bool { return t.ID == "first" })
		}
		o.next(nil)
		require.Equal(t, want, o.s.Gates[len(o.s.Gates)-1].Summary)
	}
}
