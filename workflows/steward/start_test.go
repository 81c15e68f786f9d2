package steward

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"pawl/internal/loop"
	"pawl/internal/steward"
	"pawl/internal/steward/charter"
	"pawl/internal/steward/task"
	"pawl/test/harness/testflow"
)

// A run finds messages at its very first step: one was sent together with the start, and one came while the run
// before it continued in this one.
func TestATaskThatComesWithTheStartIsTaken(t *testing.T) {
	w := setUp(t)
	w.submit(0, `{"id":"early","body":"x"}`)
	w.run()
	require.NotNil(t, w.state().Find("early"))

	w = setUp(t)
	w.submit(0, `{"id":"early","body":"x"}`)
	w.env.RegisterDelayedCallback(func() { w.env.SetContinueAsNewSuggested(true) }, 10*time.Minute)
	w.env.ExecuteWorkflow("Steward", json.RawMessage(charterDoc), Resume{})
	resume := w.carried()
	next := setUp(t)
	next.ledger = w.ledger
	next.submit(0, `{"id":"next","body":"x"}`)
	next.say(time.Hour, "halt", func() string { return `{}` })
	next.env.ExecuteWorkflow("Steward", json.RawMessage(charterDoc), resume)
	for _, id := range []string{"early", "next"} {
		require.NotNil(t, next.state().Find(id), id)
		require.Equal(t, steward.Done, next.state().Find(id).Outcome, id)
	}
}

func TestAStewardThatAlwaysHasSomethingToRecordGoesOnInANewRun(t *testing.T) {
	w := setUp(t)
	w.submit(time.Second, `{"id":"t0","body":"x"}`)
	sent := 0
	w.while = func() { // the next task comes whenever an entry is being written
		if sent++; sent == 50 {
			w.env.RegisterDelayedCallback(func() { w.env.SetContinueAsNewSuggested(true) }, 0)
		}
		if sent < 300 {
			w.env.SignalWorkflow("submit", json.RawMessage(fmt.Sprintf(`{"task":{"id":"n%d","body":"x"}}`, sent)))
		}
	}
	w.env.ExecuteWorkflow("Steward", json.RawMessage(charterDoc), Resume{})
	resume := w.carried()
	require.Less(t, sent, 250, "it does not wait for the end of the flood")
	s := resume.Carry.State
	require.Equal(t, int64(len(w.ledger)+len(resume.Carry.Pending)), s.Seq, "what the ledger lacks goes along")
	require.Equal(t, s.TasksCount, loop.Fold(loop.Fold(steward.New("crew"), w.ledger), resume.Carry.Pending).TasksCount)
}

// carried returns the input for the next run of a run that continued as new.
func (w *world) carried() (resume Resume) {
	w.t.Helper()
	var next *workflow.ContinueAsNewError
	require.ErrorAs(w.t, w.env.GetWorkflowError(), &next)
	require.NoError(w.t, converter.GetDefaultDataConverter().FromPayload(next.Input.GetPayloads()[1], &resume))
	return resume
}

// One steward does not exist, and another one accepts no more signals.
func TestSubmitSaysWhyATaskDidNotArrive(t *testing.T) {
	for want, cause := range map[string]error{
		"no steward crew is running": &temporal.UnknownExternalWorkflowExecutionError{},
		"its signals are too many":   errors.New("its signals are too many"),
	} {
		env := testflow.Environment(nil)
		env.RegisterWorkflow(Submit)
		env.OnSignalExternalWorkflow(mock.Anything, "crew", "", steward.MessageSubmit, mock.Anything).Return(cause)
		env.ExecuteWorkflow("Submit", json.RawMessage(`{"steward":"crew","task":{"title":"x","body":"x"}}`))
		require.ErrorContains(t, env.GetWorkflowError(), want)
	}
}

func TestSubmitSaysWhatIsWrongWithItsInput(t *testing.T) {
	for in, want := range map[string]string{
		``:                                "it is empty",
		`{"steward":"crew","tsk":{}}`:     `unknown field "tsk"`,
		`{"steward":5,"task":{}}`:         "steward must be a text, and not of type number",
		`{"task":{"title":"x"}}`:          `"steward" is missing`,
		`{"steward":"crew"}`:              `"task" is missing`,
		`"crew"`:                          "it must be an object, and not of type string",
		`{"steward":"crew","task":{}} {}`: "something follows the object",
	} {
		env := testflow.Environment(nil)
		env.RegisterWorkflow(Submit)
		env.ExecuteWorkflow("Submit", converter.NewRawValue(&commonpb.Payload{Metadata: map[string][]byte{"encoding": []byte("json/plain")}, Data: []byte(in)}))
		require.ErrorContains(t, env.GetWorkflowError(), want, in)
	}
}

// A signal has no reply, so the caller and the steward both have to know the ID.
func TestSubmitNamesTheTaskBeforeTheStewardHasIt(t *testing.T) {
	hand := func(in, want string) (of Submitted, sent task.Task) {
		env := testflow.Environment(nil)
		env.RegisterWorkflow(Submit)
		env.OnSignalExternalWorkflow(mock.Anything, "crew", "", steward.MessageSubmit, mock.MatchedBy(func(m steward.Message) bool {
			return json.Unmarshal(m.Task, &sent) == nil
		})).Return(nil)
		env.ExecuteWorkflow("Submit", json.RawMessage(in))
		require.NoError(t, env.GetWorkflowResult(&of))
		require.Regexp(t, want, of.Task, in)
		reply, err := steward.Answer(steward.New("crew"), charter.Charter{Limits: charter.Limits{Queue: 9}}, steward.MessageSubmit, steward.Message{Task: must(json.Marshal(sent))})
		require.NoError(t, err)
		if of.Task != "" {
			require.Equal(t, of.Task, reply.Events[0].Task, "the steward calls it so, too")
		}
		return of, sent
	}
	hand(`{"steward":"crew","task":{"id":"bread","title":"x"}}`, `^bread$`)
	hand(`{"steward":"crew","task":{"title":"Say when we are open"}}`, `^say-when-we-are-open-[0-9a-f]{12}$`)
	hand(`{"steward":"crew","task":{"body":"# Bake bread\n\nPlease."}}`, `^bake-bread-[0-9a-f]{12}$`)
	hand(`{"steward":"crew","task":{"title":"…"}}`, `^task-[0-9a-f]{12}$`)
	hand(`{"steward":"crew","task":{"title":"`+strings.Repeat("1234567 ", 20)+`"}}`, `^(1234567-){6}[0-9a-f]{12}$`)
	_, sent := hand(`{"steward":"crew","task":{"title":"x","dedupe":"d"}}`, `^$`)
	require.Equal(t, "d", sent.Dedupe, "it may be that of another task")
	require.NotEqual(t, task.IDOf(task.Task{Title: "x"}, "one"), task.IDOf(task.Task{Title: "x"}, "two"))
}

// The schedules are due at the same time. A schedule that somebody made in Temporal has no source by which its tasks
// differ.
func TestTwoSchedulesOfTemporalsHandInTwoTasks(t *testing.T) {
	s := steward.New("crew")
	slot := time.Date(2026, 3, 2, 3, 0, 0, 0, time.UTC)
	hand := func(in string, attributes ...temporal.SearchAttributeUpdate) (of Submitted, sent steward.Message) {
		env := testflow.Environment(nil)
		env.RegisterWorkflow(Submit)
		require.NoError(t, env.SetTypedSearchAttributesOnStart(temporal.NewSearchAttributes(append(attributes, scheduledFor.ValueSet(slot))...)))
		env.OnUpsertTypedSearchAttributes(mock.Anything).Return(nil)
		env.OnSignalExternalWorkflow(mock.Anything, "crew", "", steward.MessageSubmit, mock.MatchedBy(func(m steward.Message) bool { sent = m; return true })).Return(nil)
		env.ExecuteWorkflow("Submit", json.RawMessage(in))
		require.NoError(t, env.GetWorkflowResult(&of))
		reply, err := steward.Answer(s, charter.Charter{Limits: charter.Limits{Queue: 9}}, steward.MessageSubmit, sent)
		require.NoError(t, err)
		s = loop.Fold(s, reply.Events)
		return of, sent
	}
	for i, name := range []string{"one", "two"} {
		of, sent := hand(`{"steward":"crew","task":{"title":"Do `+name+`"}}`, scheduledBy.ValueSet(name))
		require.Len(t, s.Tasks, i+1)
		require.Equal(t, s.Tasks[i].ID, of.Task)
		require.Equal(t, task.Trigger{Name: name, From: "schedule", Delivery: sent.Trigger.Delivery}, *sent.Trigger)
		require.Equal(t, "the Temporal schedule "+name, s.Tasks[i].Source)
	}
	ours := `{"steward":"crew","task":{"title":"Nightly","source":"schedule nightly"},"by":"schedule nightly","trigger":{"name":"nightly","from":"schedule","result":""}}`
	for range 2 { // a slot of pawl's own schedule is one task, however often it is tried
		of, sent := hand(ours, scheduledBy.ValueSet("crew/nightly"))
		require.Empty(t, of.Task)
		require.Equal(t, "2026-03-02T03:00:00Z", sent.Trigger.Delivery)
		require.Len(t, s.Tasks, 3)
	}
}

func must(doc []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return doc
}
