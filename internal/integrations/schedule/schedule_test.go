package schedule_test

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdk "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"pawl/internal/integrations/schedule"
	"pawl/internal/loop/api"
	"pawl/internal/spec"
	"pawl/internal/steward/charter"
	"pawl/internal/steward/task"
	"pawl/test/harness/world"
)

func TestMain(m *testing.M) { os.Exit(world.Main(m)) }

// patience is how long a condition may take on a busy machine. No test waits for all of it.
const patience = 60 * time.Second

// slot is the input of a slot's workflow, and what the workflow knows of its slot.
type slot struct {
	task.Submission[json.RawMessage]
	id, by string
	at     time.Time
}

var node = world.Building("node", "./test/e2e/crash/node", "-tags", "crashtest")

// service returns a client of an engine for this test, and a channel with the slots' workflows. The engine is the
// program of the crash suite, which is built anyway. Linking the server into these tests would take longer than the
// tests.
func service(t *testing.T) (sdk.Client, chan slot) {
	t.Helper()
	path, err := node()
	require.NoError(t, err)
	dir, err := os.MkdirTemp(world.Scratch, "home")
	require.NoError(t, err)
	cmd := exec.Command(path, "-engine")
	cmd.Env = world.Environ(dir, dir)
	log := filepath.Join(dir, "engine.log")
	engine, err := world.Serve(cmd, log, "engine ")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, engine.Stop(syscall.SIGTERM)) })
	_, address, _ := strings.Cut(world.ReadFile(log), "engine ")
	c, err := sdk.Dial(sdk.Options{HostPort: strings.Fields(address)[0]})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	slots := make(chan slot, 10)
	w := worker.New(c, api.TaskQueue, worker.Options{})
	w.RegisterWorkflowWithOptions(func(ctx workflow.Context, given task.Submission[json.RawMessage]) error {
		attributes, in := workflow.GetTypedSearchAttributes(ctx), slot{Submission: given}
		in.id = workflow.GetInfo(ctx).WorkflowExecution.ID
		in.at, _ = attributes.GetTime(temporal.NewSearchAttributeKeyTime("TemporalScheduledStartTime"))
		in.by, _ = attributes.GetKeyword(temporal.NewSearchAttributeKeyKeyword("TemporalScheduledById"))
		if !workflow.IsReplaying(ctx) {
			slots <- in
		}
		return nil
	}, workflow.RegisterOptions{Name: schedule.SubmitWorkflow})
	require.NoError(t, w.Start())
	t.Cleanup(w.Stop)
	return c, slots
}

func ids(t *testing.T, c sdk.Client) (out []string) {
	t.Helper()
	all, err := c.ScheduleClient().List(t.Context(), sdk.ScheduleListOptions{})
	require.NoError(t, err)
	for all.HasNext() {
		s, err := all.Next()
		require.NoError(t, err)
		out = append(out, s.ID)
	}
	slices.Sort(out)
	return out
}

func describe(t *testing.T, c sdk.Client, id string) *sdk.ScheduleDescription {
	t.Helper()
	d, err := c.ScheduleClient().GetHandle(t.Context(), id).Describe(t.Context())
	require.NoError(t, err)
	return d
}

func TestS5_TheSchedulesOfACharterAreTemporals(t *testing.T) {
	c, slots := service(t)
	ctx, schedules := t.Context(), c.ScheduleClient()
	ch := charter.Charter{Name: "shop", Schedules: []charter.Schedule{
		{Name: "nightly", Cron: "0 2 * * *", TimeZone: "Europe/Berlin", Task: task.Task{Title: "Update dependencies", Priority: 2}},
		{Name: "hourly", Every: spec.Duration(time.Hour), CatchUp: spec.Duration(time.Minute), Overlap: "buffer", Task: task.Task{Title: "Look"}},
	}}
	require.NoError(t, schedule.Ensure(ctx, schedules, ch))
	require.NoError(t, schedule.Ensure(ctx, schedules, charter.Charter{Name: "shop/eu", Schedules: ch.Schedules[:1]}))
	require.Eventually(t, func() bool {
		return slices.Equal([]string{"shop/eu/nightly", "shop/hourly", "shop/nightly"}, ids(t, c))
	}, patience, 20*time.Millisecond)
	nightly := describe(t, c, "shop/nightly")
	require.Equal(t, "Europe/Berlin", nightly.Schedule.Spec.TimeZoneName)
	require.Equal(t, schedule.CatchUp, nightly.Schedule.Policy.CatchupWindow)
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	require.Equal(t, 2, nightly.Info.NextActionTimes[0].In(berlin).Hour())
	require.Equal(t, time.Minute, describe(t, c, "shop/hourly").Schedule.Policy.CatchupWindow)

	// Triggered once, the workflow runs at once and knows its slot.
	require.NoError(t, schedules.GetHandle(ctx, "shop/nightly").Trigger(ctx, sdk.ScheduleTriggerOptions{}))
	got := next(t, slots)
	require.Equal(t, "shop", got.Steward)
	require.Equal(t, task.Trigger{Name: "nightly", From: "schedule"}, *got.Trigger)
	handed, err := task.DecodeTask(got.Task, nil)
	require.NoError(t, err)
	require.Equal(t, "Update dependencies", handed.Title)
	require.Equal(t, "schedule nightly", handed.Source)
	require.Equal(t, handed.Source, got.Submission.By)
	require.Equal(t, "shop/nightly", got.by)
	require.WithinDuration(t, time.Now(), got.at, patience)
	require.Equal(t, "submit-shop/nightly-"+got.at.UTC().Truncate(time.Second).Format(time.RFC3339), got.id)

	// The same charter changes nothing. Another one does, but a manual pause stays.
	require.NoError(t, schedules.GetHandle(ctx, "shop/nightly").Pause(ctx, sdk.SchedulePauseOptions{Note: "holidays"}))
	before := describe(t, c, "shop/nightly").Info.LastUpdateAt
	require.NoError(t, schedule.Ensure(ctx, schedules, ch))
	require.Equal(t, before, describe(t, c, "shop/nightly").Info.LastUpdateAt)
	ch.Schedules[0].Cron, ch.Schedules[0].Task.Title, ch.Schedules[0].CatchUp = "0 5 * * *", "Update", spec.Duration(2*time.Hour)
	ch.Schedules[1].Task.Spec = json.RawMessage(`{"goal":"look"}`)
	require.NoError(t, schedule.Ensure(ctx, schedules, ch))
	require.NoError(t, schedule.Ensure(ctx, schedules, ch), "and once only")
	changed := describe(t, c, "shop/nightly")
	require.True(t, changed.Schedule.State.Paused)
	require.Equal(t, "holidays", changed.Schedule.State.Note)
	require.Equal(t, 2*time.Hour, changed.Schedule.Policy.CatchupWindow)
	require.NoError(t, schedules.GetHandle(ctx, "shop/nightly").Trigger(ctx, sdk.ScheduleTriggerOptions{}))
	require.Contains(t, string(next(t, slots).Task), `"title":"Update"`)
	require.NoError(t, schedules.GetHandle(ctx, "shop/hourly").Trigger(ctx, sdk.ScheduleTriggerOptions{}))
	require.NotContains(t, string(next(t, slots).Task), `"body"`, "a task has a body or a spec")

	reader := schedule.Reader{Client: c, Namespace: "default", Now: time.Now}
	missed, upTo, err := reader.Missed(ctx, ch, map[string]int{"hourly": 3}, nil)
	require.NoError(t, err)
	require.Equal(t, map[string]int{"nightly": 0, "hourly": 3}, missed)
	require.Equal(t, []string{"hourly", "nightly"}, slices.Sorted(maps.Keys(upTo)))
	// Temporal's count has grown by two, so two of the slots of a day were missed. A schedule whose count did not grow
	// has missed none.
	past := map[string]task.Slots{"hourly": {Counted: -2, Until: time.Now().Add(-time.Hour - time.Minute)}}
	missed, _, err = schedule.Reader{Client: c, Namespace: "default", Now: func() time.Time { return time.Now().Add(24 * time.Hour) }}.Missed(ctx, ch, nil, past)
	require.NoError(t, err)
	require.Equal(t, map[string]int{"nightly": 0, "hourly": 2}, missed)

	ch.Schedules = ch.Schedules[1:]
	require.NoError(t, schedule.Ensure(ctx, schedules, ch))
	require.Eventually(t, func() bool { return slices.Equal([]string{"shop/eu/nightly", "shop/hourly"}, ids(t, c)) }, patience, 20*time.Millisecond)
	require.NoError(t, schedule.Remove(ctx, schedules, ch))
	require.NoError(t, schedule.Remove(ctx, schedules, ch), "what is gone is gone")
	require.Eventually(t, func() bool { return slices.Equal([]string{"shop/eu/nightly"}, ids(t, c)) }, patience, 20*time.Millisecond)
	missed, _, err = reader.Missed(ctx, ch, nil, upTo)
	require.NoError(t, err)
	require.Empty(t, missed)
}

// TestS5_AScheduleThatSomebodyElseHasMadeIsLeftAlone: whatever its name is. A schedule that pawl made before schedules
// had a memo is recognised by the memo of its workflows.
func TestS5_AScheduleThatSomebodyElseHasMadeIsLeftAlone(t *testing.T) {
	c, _ := service(t)
	ctx, schedules := t.Context(), c.ScheduleClient()
	make := func(id string, memo map[string]any) {
		_, err := schedules.Create(ctx, sdk.ScheduleOptions{ID: id, Spec: sdk.ScheduleSpec{CronExpressions: []string{"0 3 * * *"}},
			Action: &sdk.ScheduleWorkflowAction{ID: "by-hand", Workflow: schedule.SubmitWorkflow, TaskQueue: "elsewhere", Memo: memo}})
		require.NoError(t, err)
	}
	make("shop/backup", nil)
	make("shop/early", map[string]any{"pawl": "a digest"})
	ch := charter.Charter{Name: "shop", Schedules: []charter.Schedule{{Name: "nightly", Cron: "0 2 * * *", Task: task.Task{Title: "Update"}}}}
	all := func(want ...string) func() bool { return func() bool { return slices.Equal(want, ids(t, c)) } }
	require.Eventually(t, all("shop/backup", "shop/early"), patience, 20*time.Millisecond)
	require.NoError(t, schedule.Ensure(ctx, schedules, ch))
	require.Eventually(t, all("shop/backup", "shop/nightly"), patience, 20*time.Millisecond)

	taken := charter.Charter{Name: "shop", Schedules: []charter.Schedule{{Name: "backup", Cron: "0 2 * * *", Task: task.Task{Title: "Update"}}}}
	require.ErrorContains(t, schedule.Ensure(ctx, schedules, taken), "shop/backup that pawl has not made")
	require.Equal(t, "elsewhere", describe(t, c, "shop/backup").Schedule.Action.(*sdk.ScheduleWorkflowAction).TaskQueue)
	missed, _, err := schedule.Reader{Client: c, Namespace: "default", Now: time.Now}.Missed(ctx, taken, nil, nil)
	require.NoError(t, err)
	require.Empty(t, missed, "of another's schedule none is missed")

	require.NoError(t, schedule.Remove(ctx, schedules, taken))
	require.Eventually(t, all("shop/backup"), patience, 20*time.Millisecond)
}

func next(t *testing.T, slots chan slot) slot {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	select {
	case s := <-slots:
		return s
	case <-ctx.Done():
		require.FailNow(t, "no slot's workflow has run")
		return slot{}
	}
}
