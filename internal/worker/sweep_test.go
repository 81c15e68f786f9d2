package worker_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"

	"pawl/activities"
	"pawl/internal/home/hostrecord"
	"pawl/internal/loop"
	"pawl/internal/loop/api"
	hostworker "pawl/internal/worker"
)

// A loop that the embedded engine has lost while this worker ran continues from its ledger.
func TestALoopThatTheEngineLosesMeanwhileGoesOn(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.runs("x", "first", running)
	hostworker.Sweep(t.Context(), m.o, m.a)
	require.Empty(t, m.started, "the engine has it")
	delete(m.known, "x")
	hostworker.Sweep(t.Context(), m.o, m.a)
	require.Len(t, m.started, 1)
	require.Equal(t, m.ledger, m.resumed[0].Ledger)
}

// A loop that failed behind its ledger could not record that. People see it while no engine runs, too.
func TestHowALoopEndedThatCouldNotRecordItIsNoted(t *testing.T) {
	t.Parallel()
	behind := temporal.NewNonRetryableApplicationError("the ledger is ahead", "LEDGER_AHEAD", nil)
	for name, look := range map[string]func(*machine){
		"when the next worker starts":     (*machine).recover,
		"when the worker that runs looks": func(m *machine) { hostworker.Sweep(context.Background(), m.o, m.a) },
		"when its worker leaves":          func(m *machine) { hostworker.LastLook(context.Background(), m.o, m.a) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			m.runs("x", "first", running)
			look(m)
			_, ended := hostrecord.NotedEnd(m.o.Home, m.workspace())
			require.False(t, ended, "it runs")
			require.False(t, hostrecord.Over(m.o.Home, m.workspace()))

			m.runs("x", "first", enumspb.WORKFLOW_EXECUTION_STATUS_FAILED)
			m.endings = map[string]error{"x": errors.Join(&temporal.WorkflowExecutionError{}, behind)}
			look(m)
			end, ended := hostrecord.NotedEnd(m.o.Home, m.workspace())
			require.True(t, ended)
			require.Equal(t, []string{"failed", "LEDGER_AHEAD", "the ledger is ahead"}, []string{end.Status, string(end.Code), end.Reason})
			require.True(t, m.workspace().Closed)
		})
	}
}

// A halt that came while no worker ran is still to be recorded, so its note stays until then. A loop that the engine has
// lost does not start again after it.
func TestALoopThatWasHaltedWithoutAWorkerStaysHalted(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.runs("x", "first", running)
	require.NoError(t, hostrecord.NoteEnd(m.o.Home, m.workspace(), hostrecord.End{Run: "earlier", Status: "halted", Time: time.Now()}))
	m.recover()
	require.False(t, hostrecord.Over(m.o.Home, m.workspace()), "another run goes on after a reset")

	require.NoError(t, hostrecord.NoteEnd(m.o.Home, m.workspace(), hostrecord.End{Run: "run", Status: "halted", Time: time.Now()}))
	m.recover()
	require.True(t, hostrecord.Awaits(m.o.Home, m.workspace()))

	delete(m.known, "x")
	m.recover()
	require.Empty(t, m.started)
	require.True(t, m.workspace().Closed)
}

// Nothing else pushes what a loop that is over has: while its repository is away, the worker tries again.
func TestALoopThatEndedWhileItsRepositoryWasAwayIsPushedLater(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	user := m.workspace().Repo
	require.NoError(t, os.Rename(user, user+"-away"))
	out, err := m.a.Close(t.Context(), api.Close{Entry: api.Entry{Ref: m.ref, Ledger: m.ledger, Events: []loop.Event{
		{Seq: 3, Loop: "x", Time: time.Date(2026, 11, 20, 12, 1, 0, 0, time.UTC), Type: loop.AutonomyCompleted, Status: loop.Completed},
	}}})
	require.NoError(t, err)
	require.NotEmpty(t, out.PushRefused)
	r := m.workspace()
	require.True(t, r.Unpushed)
	require.NoError(t, os.Rename(user+"-away", user))
	hostworker.Sweep(t.Context(), m.o, m.a)
	m.a.Stop()
	require.True(t, m.workspace().Unpushed, "it was tried at its end, so not at once again")
	require.NoError(t, os.Rename(user, user+"-away"))
	r.ClosedAt = r.ClosedAt.Add(-time.Hour)
	require.NoError(t, hostrecord.Write(m.o.Home, r))
	hostworker.Sweep(t.Context(), m.o, m.a)
	m.a.Stop()
	require.True(t, m.workspace().Unpushed, "it is still away")

	require.NoError(t, os.Rename(user+"-away", user))
	m.a = activities.New(m.o.Home, "here", "pawl", "default", false) // another worker tries at once
	t.Cleanup(m.a.Stop)
	hostworker.Sweep(t.Context(), m.o, m.a)
	m.a.Stop()
	require.False(t, m.workspace().Unpushed)
	for ref, want := range map[string]string{"refs/pawl-ledger/x": out.Ledger, "refs/heads/pawl/x": ""} {
		got, err := exec.Command("git", "-C", user, "rev-parse", "--verify", ref).Output()
		require.NoError(t, err, ref)
		require.Contains(t, string(got), want)
	}
}

// An engine that is stopping may not know a loop that it knew a moment before, and will know again.
func TestALoopIsLostWhereTheServiceSaysSoTwice(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.runs("x", "first", running)
	m.doubts = 1
	hostworker.Sweep(t.Context(), m.o, m.a)
	m.doubts = 1
	m.recover()
	require.Empty(t, m.started)
}

func TestARecordThatIsTornWhileTheWorkerRunsIsWrittenAgain(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.runs("x", "first", running)
	before := m.workspace()
	m.damage("")
	hostworker.Sweep(t.Context(), m.o, m.a)
	require.Equal(t, before, m.workspace())
}

// A lost run may still write to the ledger. The next run begins from the ledger when nothing writes to it any more.
func TestALostLoopGoesOnWhenNothingOfItIsAtWorkAnyMore(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	_, env := activitiesOf(t, m, m.a.Interceptors()...)
	env.RegisterActivityWithOptions(func(context.Context) error {
		hostworker.Sweep(t.Context(), m.o, m.a)
		require.Empty(t, m.started, "its ledger may still grow")
		return nil
	}, activity.RegisterOptions{Name: "append"})
	_, err := env.ExecuteActivity("append")
	require.NoError(t, err)
	hostworker.Sweep(t.Context(), m.o, m.a)
	require.Len(t, m.started, 1)
}

// activitiesOf returns the record of the machine's loop, and an environment in which activities run for that loop.
func activitiesOf(t *testing.T, m *machine, interceptors ...interceptor.WorkerInterceptor) (hostrecord.Record, *testsuite.TestActivityEnvironment) {
	t.Helper()
	r := m.workspace()
	r.Loop = "default-test-workflow-id" // the workflow ID of the SDK's test environment
	require.NoError(t, hostrecord.Write(m.o.Home, r))
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	env.SetWorkerOptions(worker.Options{Interceptors: interceptors})
	return r, env
}
