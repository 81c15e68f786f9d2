package steward

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/internal/steward"
	"pawl/internal/steward/task"
)

// More messages arrived while an entry was written than a run's input may contain.
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

// If people were notified of a gate, or reminded, they are not notified again as of a new gate when the steward
// continues in a new run.
func TestAGateThatWasToldOfIsNotToldOfAnewInTheNextRun(t *testing.T) {
	t.Run("told", func(t *testing.T) { goesOnWithAGate(t, time.Hour, loop.GateOpened) })
	t.Run("reminded", func(t *testing.T) { goesOnWithAGate(t, 5*time.Hour, loop.GateOpened, loop.GateEscalated) })
}

// goesOnWithAGate opens a gate in a run that continues in a new one at the end.
func goesOnWithAGate(t *testing.T, end time.Duration, want ...loop.Type) {
	t.Helper()
	doc := strings.Replace(charterDoc, `"defaults"`, `"notify":["desktop"],"defaults"`, 1)
	told := func(w *world) *[]loop.Type {
		var events []loop.Type
		w.env.RegisterActivityWithOptions(func(_ context.Context, in api.Notify) error { events = append(events, in.Notice.Event); return nil },
			activity.RegisterOptions{Name: api.NotifyName})
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

// The ledger has a gate before people are notified, so a steward that starts again from its ledger does not notify
// them again.
func TestAGateOfTheLedgerIsNotToldOfAnewAfterARestart(t *testing.T) {
	doc := strings.Replace(charterDoc, `"defaults"`, `"notify":["desktop"],"defaults"`, 1)
	run := func(w *world, id string, resume Resume) (events []loop.Type) {
		w.env.RegisterActivityWithOptions(func(_ context.Context, in api.Notify) error { events = append(events, in.Notice.Event); return nil },
			activity.RegisterOptions{Name: api.NotifyName})
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
