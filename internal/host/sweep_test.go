package host_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"

	"pawl/internal/host"
	"pawl/internal/workspace"
)

// A loop that the embedded engine has lost while this worker ran continues from its ledger.
func TestALoopThatTheEngineLosesMeanwhileGoesOn(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.runs("x", "first", running)
	host.Sweep(t.Context(), m.o, m.a)
	require.Empty(t, m.started, "the engine has it")
	delete(m.known, "x")
	host.Sweep(t.Context(), m.o, m.a)
	require.Len(t, m.started, 1)
	require.Equal(t, m.ledger, m.resumed[0].Ledger)
}

// An engine that is stopping may not know a loop that it knew a moment before, and will know again.
func TestALoopIsLostWhereTheServiceSaysSoTwice(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.runs("x", "first", running)
	m.doubts = 1
	host.Sweep(t.Context(), m.o, m.a)
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
	host.Sweep(t.Context(), m.o, m.a)
	require.Equal(t, before, m.workspace())
}

// A lost run may still write to the ledger. The next run begins from the ledger when nothing writes to it any more.
func TestALostLoopGoesOnWhenNothingOfItIsAtWorkAnyMore(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	r := m.workspace()
	r.Loop = "default-test-workflow-id" // the workflow ID of the SDK's test environment
	require.NoError(t, workspace.Write(m.o.Home, r))
	var env testsuite.WorkflowTestSuite
	at := env.NewTestActivityEnvironment()
	at.SetWorkerOptions(worker.Options{Interceptors: m.a.Interceptors()})
	at.RegisterActivityWithOptions(func(context.Context) error {
		host.Sweep(t.Context(), m.o, m.a)
		require.Empty(t, m.started, "its ledger may still grow")
		return nil
	}, activity.RegisterOptions{Name: "append"})
	_, err := at.ExecuteActivity("append")
	require.NoError(t, err)
	host.Sweep(t.Context(), m.o, m.a)
	require.Len(t, m.started, 1)
}
