package render

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"pawl/internal/client/launch"
	"pawl/internal/loop"
	"pawl/internal/steward"
	"pawl/internal/steward/task"
)

func TestAStewardIsListedWithoutAnIteration(t *testing.T) {
	lines := strings.Split(Style{}.List([]launch.Row{{Loop: "shop", Kind: "steward", Status: "running"}, {Loop: "fast", Kind: "improve", Status: "running"}}, time.Now()), "\n")
	require.NotContains(t, lines[1], "0")
	require.Contains(t, lines[2], "0")
}

func TestAListHasNoEmptyColumns(t *testing.T) {
	text := Style{}.List([]launch.Row{{Loop: "shop", Kind: "steward", Status: "running"}}, time.Now())
	require.Equal(t, "LOOP  STATUS   STARTED  GOAL\nshop  running", text)
}

func TestAStewardIsListedWithItsTasks(t *testing.T) {
	for want, r := range map[string]launch.Row{
		"supervises":       {Goal: "supervises"}, // its ledger is on another host
		"no tasks yet":     {Tasks: &launch.Tasks{}, Mode: "mission"},
		"1 of 1 task done": {Tasks: &launch.Tasks{All: 1, Done: 1}},
		"2 of 5 tasks done, 1 cancelled, mode plan": {Tasks: &launch.Tasks{All: 5, Done: 2, Cancelled: 1}, Mode: "plan"},
	} {
		r.Loop, r.Kind, r.Status = "shop", "steward", "running"
		require.Regexp(t, " +"+want+"$", Style{Width: 120}.List([]launch.Row{r}, time.Now()))
	}
}

func TestAStewardThatHasEndedAsksNobodyAnything(t *testing.T) {
	st := steward.State{Steward: "shop", Status: loop.Running, Gates: []loop.Gate{{ID: "drift-4", Kind: steward.GateDrift, Choices: []string{steward.Keep}}}, GatesCount: 2}
	require.Contains(t, Style{}.Steward(st, time.Now()), "pawl steward answer shop --gate drift-4")
	st.Status = loop.Halted
	require.NotContains(t, Style{}.Steward(st, time.Now()), "drift-4")
	require.NotContains(t, Style{}.Steward(st, time.Now()), "pawl inbox")
	asks := steward.Task{ID: "a", State: task.Waiting, WaitingFor: &steward.WaitingFor{Loop: "shop-a-one", Gate: "diff-2"}}
	st.Gates[0].Task, st.Tasks = "a", []steward.Task{asks}
	for status, ask := range map[loop.Status]bool{loop.Running: true, loop.Halted: false} {
		st.Status = status
		for _, page := range []string{Style{}.Task(st, asks, time.Now()), Style{}.Steward(st, time.Now())} {
			require.Equal(t, ask, strings.Contains(page, "drift-4"))
			require.Equal(t, ask, strings.Contains(page, "pawl show shop-a-one"))
		}
	}
}

// TestTheTasksOfAStewardThatHasEndedWereNotDone: whatever their state, nobody plans them or is asked.
func TestTheTasksOfAStewardThatHasEndedWereNotDone(t *testing.T) {
	st := steward.State{Steward: "shop", Status: loop.Halted, State: task.Planning, Mode: "mission", TasksCount: 6, QueueCount: 2, Queue: []string{"d"}, Indicators: steward.Indicators{Done: 1}, Tasks: []steward.Task{
		{ID: "a", State: task.Planning}, {ID: "b", State: task.Waiting, Until: time.Now(), Steps: []steward.Step{{ID: "one", Status: steward.Asking, Told: loop.MessageHalt}, {ID: "two", Status: steward.Pending}}},
		{ID: "c", State: task.Idle, Outcome: steward.Done, Steps: []steward.Step{{ID: "one", Status: steward.Over, Told: loop.MessageHalt}}},
	}}
	page := Style{}.Steward(st, time.Now())
	for _, want := range []string{"not done, was PLANNING", "not done, was WAITING_FOR_HUMAN ", "  done ", "and 1 more begun, but not finished", "and 2 more not begun"} {
		require.Contains(t, page, want)
	}
	for _, untrue := range []string{"state  ", "mode  ", "queue  ", "sleeps"} {
		require.NotContains(t, page, untrue)
	}
	require.Regexp(t, "(?s)one +told to halt.*two +pending", Style{}.Task(st, st.Tasks[1], time.Now()))
	require.Regexp(t, "one +done", Style{}.Task(st, st.Tasks[2], time.Now()))
	st.Status = loop.Running
	require.Regexp(t, "(?s)state +PLANNING.*queue +d.*in the queue", Style{}.Steward(st, time.Now()))
}

// TestAFailedStepIsNoRetry: the last failure is followed by a question, not by another try.
func TestAFailedStepIsNoRetry(t *testing.T) {
	page := Style{}.Task(steward.State{}, steward.Task{ID: "a", Actions: 5, Retries: 2}, time.Now())
	require.Regexp(t, "actions +5, 2 failed attempts", page)
}

func TestAStewardWithSeveralGatesSaysHowManyWait(t *testing.T) {
	list := func(gates int) string {
		return Style{}.List([]launch.Row{{Loop: "shop", Kind: "steward", Status: "running", Gate: "drift", Gates: gates}}, time.Now())
	}
	require.NotContains(t, list(1), "more")
	require.Contains(t, list(6), "waits: drift and 5 more")
}

func TestAPersonIsToldHowToAnswerThePlanner(t *testing.T) {
	asks := loop.Gate{ID: "question-1", Kind: loop.GateQuestion, Task: "a", Choices: []string{steward.Replan, steward.Cancel}}
	require.Contains(t, Style{}.StewardGate("shop", asks, time.Now()), "With --note TEXT, replan tells the planner what you want. A task that brings its own plan keeps it.")
	asks.Summary, asks.Points = "it is blocked: one; two", []string{"one", "two"}
	require.Contains(t, Style{}.StewardGate("shop", asks, time.Now()), "Waiting: it is blocked:\n  - one\n  - two\ngate question-1")
	asks.Kind, asks.Choices = steward.GateDrift, []string{steward.Keep}
	require.NotContains(t, Style{}.StewardGate("shop", asks, time.Now()), "--note")
	require.Contains(t, Style{}.StewardGate("shop", asks, time.Now()), steward.AsFound)
}

func TestABodyIsShownOnceAndCleaned(t *testing.T) {
	const body = "Mend it.\n\x1b[2JNow.\n"
	shown := Style{}.Submitted("Mend it.", body, "# Another text\n")
	require.True(t, strings.HasPrefix(shown, "What was submitted\n  Mend it.\n  "), shown)
	require.NotContains(t, shown, "\x1b")
	require.Empty(t, Style{}.Submitted("Mend it.", body, "# Mend\n\nMend it.\n\x1b[2JNow.\n"), "the plan has it")
	require.Empty(t, Style{}.Submitted("Mend it.", "Mend it.\n", ""), "the title has it")
	require.Empty(t, Style{}.Submitted("", " \n", ""))
}

func TestATasksOwnScreenNamesItsTierAndPlanOnce(t *testing.T) {
	asks := steward.Task{ID: "a", State: task.Waiting, Tier: task.T2, TierBy: "a person", TierNote: "ann"}
	st := steward.State{Steward: "shop", Status: loop.Running, Gates: []loop.Gate{{ID: "tier-4", Kind: steward.GateTier, Task: "a"}}, GatesCount: 1, Tasks: []steward.Task{asks}}
	page := Style{}.Task(st, asks, time.Now())
	require.Regexp(t, "tier +T2, set by a person: ann\n", page)
	ruled := steward.Task{ID: "b", Tier: task.T3, TierBy: "rules", TierReasons: []task.TierReason{{Tier: task.T3, Rule: "otherwise", Text: "no rule matched"}}}
	require.Regexp(t, "tier +T3, set by rules: no rule matched \\(otherwise\\)\n", Style{}.Task(st, ruled, time.Now()))
	require.Contains(t, page, "The plan is below.")
	require.NotContains(t, page, "pawl steward show shop a", "that is this screen")
	require.Contains(t, Style{}.Steward(st, time.Now()), "The plan: pawl steward show shop a")
}
