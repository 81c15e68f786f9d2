package steward_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/loop"
	"pawl/internal/steward"
	"pawl/internal/steward/task"
	"pawl/test/harness/world"
)

// TestEveryMessageOfAStewardThroughTheTemporalCLI takes tasks through everything that people can tell a steward, with
// Temporal's own command only.
func TestEveryMessageOfAStewardThroughTheTemporalCLI(t *testing.T) {
	world.Slow(t, "the other tests of this package say the same through pawl")
	world.NeedCLI(t)
	w := open(t, func(charter world.Doc) { charter["limits"] = world.Doc{"costUSD": 1} })
	w.Env = append(w.Env, "TEMPORAL_ADDRESS="+w.Engine().Address)
	ways := []string{"update"}
	if world.All() {
		ways = append(ways, "signal")
	}
	for _, way := range ways {
		tell := func(name, payload string, args ...any) {
			t.Helper()
			s := w.Tell(way, name, fmt.Sprintf(payload, args...))
			require.Equal(t, 0, s.Code, "%s: %s", name, s.Err)
		}
		is := func(id, what string, holds func(steward.Task) bool) (found steward.Task) {
			t.Helper()
			w.Until(id+" "+what, func() bool {
				var s steward.State
				w.Query("state", &s)
				if at := s.Find(id); at != nil {
					found = *at
				}
				return holds(found)
			})
			return found
		}
		risky, dear := "risky-"+way, "dear-"+way

		tell("hold", `{"by":"ann"}`)
		tell("submit", `{"task":{"id":%q,"body":"A delicate matter."},"by":"ann"}`, risky)
		is(risky, "is there", func(t steward.Task) bool { return t.ID == risky })
		tell("hold", `{"task":%q}`, risky)
		tell("prioritize", `{"task":%q,"priority":3}`, risky)
		tell("steer", `{"task":%q,"note":"mind the step"}`, risky)
		tell("resume", `{"task":%q}`, risky)
		is(risky, "has been prioritized and let go", func(t steward.Task) bool { return t.Priority == 3 && !t.Held && len(t.Notes) == 1 })
		tell("setMode", `{"mode":"plan"}`)
		tell("resume", `{}`)
		asks := is(risky, "asks", waiting)
		require.Equal(t, task.T1, asks.Tier)
		tell("setTier", `{"task":%q,"tier":"T2","by":"ann"}`, risky)
		is(risky, "has the tier that was set", func(t steward.Task) bool { return t.Tier == task.T2 })
		tell("answer", `{"task":%q,"gate":%q,"choice":"intervene"}`, risky, asks.WaitingFor.Gate)
		is(risky, "waits for nothing but a person", func(t steward.Task) bool { _, stands := t.Stands(); return stands })
		tell("pause", `{}`)
		tell("continue", `{}`)
		asks = is(risky, "asks again", func(t steward.Task) bool { return waiting(t) && t.WaitingFor.Gate != asks.WaitingFor.Gate })
		tell("setMode", `{"mode":"mission"}`)
		w.Write("wait", "")
		tell("approve", `{"task":%q,"hash":%q,"by":"ann"}`, risky, asks.Plan.Hash)
		is(risky, "is at work", func(t steward.Task) bool { return t.State == task.Executing && len(t.Loops) == 1 })
		tell("halt", `{"task":%q,"note":"enough"}`, risky)
		asks = is(risky, "was stopped", waiting)
		require.Equal(t, "stuck", asks.WaitingFor.Kind)
		w.Shell("rm " + w.Dir + "/wait")

		s := w.Temporal("workflow", "execute", "--type", "Submit", "--task-queue", "pawl", "--workflow-id", "hands-"+dear,
			"--input", fmt.Sprintf(`{"steward":"crew","task":{"id":%q,"body":"Write a dear line."}}`, dear))
		require.Contains(t, s, `{"steward":"crew","task":"`+dear+`"}`)
		is(dear, "is there", func(t steward.Task) bool { return t.ID == dear })
		tell("interrupt", `{"task":%q}`, dear)
		if way != ways[0] { // the task before it was expensive
			asks = is(dear, "asks", waiting)
			tell("approve", `{"task":%q,"hash":%q,"by":"ann"}`, dear, asks.Plan.Hash)
		}
		spent := is(dear, "has cost what it may", func(t steward.Task) bool { return waiting(t) && t.WaitingFor.Kind == "budget" })
		var open struct{ Gates []loop.Gate }
		w.Query("gates", &open)
		require.Len(t, open.Gates, 2)
		hash := open.Gates[1].Hash
		tell("extend", `{"task":%q,"gate":%q,"limits":{"costUSD":9},"hash":%q}`, dear, spent.WaitingFor.Gate, hash)
		is(dear, "is done", done)
		tell("answer", `{"task":%q,"choice":"cancel","by":"ann"}`, risky)
		is(risky, "is over", over)
	}
	require.Contains(t, w.Temporal("workflow", "metadata", "--workflow-id", "crew"), "| risky-update | cancelled | T2 |")
	var tasks struct{ Tasks []steward.Task }
	w.Query("tasks", &tasks)
	require.Len(t, tasks.Tasks, 2*len(ways))
	var one steward.Task
	w.Query("task", &one, `"risky-update"`)
	require.Equal(t, steward.Cancelled, one.Outcome)
	var said struct{ Events []loop.Event }
	w.Query("events", &said, "0")
	require.NotEmpty(t, said.Events)
	require.Equal(t, 0, w.Tell("update", "halt", `{"by":"ann","note":"all is done"}`).Code)
	require.Contains(t, w.Temporal("workflow", "result", "--workflow-id", "crew"), "all is done")
}

// A steward that somebody starts with Temporal's own command has the schedules of its spec, until it ends.
func TestS5_AStewardStartedWithTheTemporalCLIHasItsSchedules(t *testing.T) {
	world.NeedCLI(t)
	w := raise(t, func(charter world.Doc) {
		charter["schedules"] = []world.Doc{{"name": "nightly", "cron": "0 2 * * *", "timeZone": "Europe/Berlin", "task": world.Doc{"title": "Update"}}}
	})
	w.serve()
	w.Env = append(w.Env, "TEMPORAL_ADDRESS="+w.Engine().Address)
	w.Temporal("workflow", "start", "--type", "Steward", "--workflow-id", "crew", "--task-queue", "pawl", "--input-file", filepath.Join(w.Dir, "crew.json"))
	w.Until("it has its schedule", func() bool { return strings.Contains(w.Temporal("schedule", "list"), "crew/nightly") })
	require.Contains(t, w.Temporal("schedule", "describe", "--schedule-id", "crew/nightly", "--output", "json"), "Europe/Berlin")
	w.Until("it runs", func() bool { return w.state().Status == loop.Running })
	require.Equal(t, 0, w.Tell("update", "halt", `{"by":"ann"}`).Code)
	w.Until("the schedule is gone", func() bool { return !strings.Contains(w.Temporal("schedule", "list"), "crew/nightly") })
}

// TestSubmitThatIsResetHandsInTheSameTask: after a reset, Temporal runs Submit again under another run ID.
func TestSubmitThatIsResetHandsInTheSameTask(t *testing.T) {
	world.NeedCLI(t)
	w := open(t, func(charter world.Doc) { charter["mode"] = "answer" })
	w.Env = append(w.Env, "TEMPORAL_ADDRESS="+w.Engine().Address)
	said := w.Temporal("workflow", "execute", "--type", "Submit", "--task-queue", "pawl", "--workflow-id", "by-hand",
		"--input", `{"steward":"crew","task":{"title":"Say when we are open"}}`)
	name := regexp.MustCompile(`"task":"(say-when-we-are-open-[0-9a-f]{12})"`).FindStringSubmatch(said)
	require.NotEmpty(t, name, said)
	first := w.Temporal("workflow", "describe", "--workflow-id", "by-hand", "--output", "json")
	w.Temporal("workflow", "reset", "--workflow-id", "by-hand", "--type", "FirstWorkflowTask", "--reason", "once more")
	require.Contains(t, w.Temporal("workflow", "result", "--workflow-id", "by-hand"), name[0])
	require.NotEqual(t, runOf(t, first), runOf(t, w.Temporal("workflow", "describe", "--workflow-id", "by-hand", "--output", "json")))
	w.Until("the steward has heard of it twice", func() bool {
		var said struct{ Events []loop.Event }
		w.Query("events", &said, "0")
		var results []string
		for _, e := range said.Events {
			if e.Trigger != nil {
				results = append(results, e.Trigger.Result+" "+e.Trigger.Task)
			}
		}
		return slices.Equal([]string{"accepted " + name[1], "duplicate " + name[1]}, results)
	})
	var s steward.State
	w.Query("state", &s)
	require.Equal(t, []string{name[1]}, s.Queue)
}

func runOf(t *testing.T, described string) string {
	t.Helper()
	var d struct {
		WorkflowExecutionInfo struct{ Execution struct{ RunID string } }
	}
	require.NoError(t, json.Unmarshal([]byte(described), &d))
	require.NotEmpty(t, d.WorkflowExecutionInfo.Execution.RunID)
	return d.WorkflowExecutionInfo.Execution.RunID
}
