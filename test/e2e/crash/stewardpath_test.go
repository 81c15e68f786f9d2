package crash_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/steward"
	"pawl/internal/steward/task"
	"pawl/test/harness/world"
)

// TestAStewardsHistory keeps the histories of a steward for the replay test of the workflows: tasks of three tiers, one
// that is approved, one that is cancelled, one that goes in circles, one of higher priority for which another gives
// way; a worker that is killed; and a steward that continues in new runs. Without -update it proves nothing more than
// the tests that kill stewards, which replay their histories, too.
func TestAStewardsHistory(t *testing.T) {
	if !*world.Update {
		t.Skip("it keeps histories, with -update")
	}
	w := pathMachine(t, stewardCourse)
	w.Write("repo/work/today.md", "open\n")
	w.Git("add", "-A")
	w.Git("commit", "-qm", "what is on today")
	w.base = w.Git("rev-parse", "HEAD")
	w.tasks = append(slices.Clone(crewTasks), `{"id":"urgent","body":"Say that we are closed.","priority":5,"plan":[{"id":"x","kind":"deliver","spec":{"scope":["work/*.md"]}}]}`)
	spec := w.crewSpec()
	w.start([]string{"-engine", "-long", "250"})
	n := w.start(workerRole, "PAWL_CRASH=tasks.before#30")
	require.False(t, w.supervise(n, spec), "the worker is killed on the way")
	require.True(t, w.supervise(w.start(workerRole), spec))

	s, err := w.crew(w.T.Context())
	require.NoError(t, err)
	tiers := map[task.Tier]bool{}
	for _, task := range s.Tasks {
		tiers[task.Tier] = true
	}
	require.Equal(t, map[task.Tier]bool{task.T0: true, task.T3: true, task.T1: true}, tiers)
	require.Equal(t, int64(3), s.Indicators.Done)
	require.Equal(t, steward.Cancelled, s.Find("circle").Outcome)
	var runs []string
	for run := w.run(); run != ""; {
		runs = append(runs, run)
		run = w.history(run).GetEvents()[0].GetWorkflowExecutionStartedEventAttributes().GetContinuedExecutionRunId()
	}
	require.Greater(t, len(runs), 2)
	slices.Reverse(runs)
	for i, run := range runs {
		w.keepHistory(t, fmt.Sprintf("steward-%d", i+1), run)
	}
}
