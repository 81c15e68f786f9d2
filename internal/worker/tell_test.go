package worker_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"

	"pawl/internal/home/hostrecord"
	hostworker "pawl/internal/worker"
)

// haltedHere notes that a person halted the loop x while its engine did not answer.
func (m *machine) haltedHere() {
	m.Helper()
	require.NoError(m, hostrecord.NoteEnd(m.o.Home, m.workspace(), hostrecord.End{
		Status: "halted", Reason: "halted by ann", Time: time.Now(),
		Untold: &hostrecord.Untold{Name: "halt", Payload: []byte(`{"by":"ann"}`)},
	}))
}

// A halt that came while the engine did not answer is sent once, when it answers again.
func TestAHaltThatWasLeftOnThisHostIsSentOnce(t *testing.T) {
	t.Parallel()
	for name, look := range map[string]func(*machine){
		"when the next worker starts":     (*machine).recover,
		"when the worker that runs looks": func(m *machine) { hostworker.TellEnds(context.Background(), m.o, "here") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			m.runs("x", "first", running)
			m.haltedHere()
			look(m)
			look(m)
			require.Equal(t, []string{`x run halt {"by":"ann"}`}, m.signals)
			end, noted := hostrecord.NotedEnd(m.o.Home, m.workspace())
			require.True(t, noted)
			require.Equal(t, "run", end.Run)
			require.True(t, hostrecord.Awaits(m.o.Home, m.workspace()), "the loop records its end")
		})
	}
}

// An engine that does not answer yet, or whose disk is still full, is asked again.
func TestAHaltThatWasLeftOnThisHostWaitsForTheEngine(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.runs("x", "first", running)
	m.haltedHere()
	m.away = serviceerror.NewUnavailable("its disk is full")
	hostworker.TellEnds(t.Context(), m.o, "here")
	require.Empty(t, m.signals)
	require.True(t, hostrecord.Over(m.o.Home, m.workspace()))
	m.away = nil
	hostworker.TellEnds(t.Context(), m.o, "here")
	require.Len(t, m.signals, 1)
}

// A step whose program a halt has ended reports that the program failed. The loop knows of the halt before it gets that,
// and before it begins anything else.
func TestALoopThatWasHaltedHereKnowsItBeforeItGoesOn(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	r, env := activitiesOf(t, m, hostworker.Interceptors(m.o, m.a)...)
	m.runs(r.Loop, "first", running)
	sent := 0
	env.RegisterActivityWithOptions(func(context.Context) error {
		sent = len(m.signals)
		m.haltedHere() // while the agent works
		return nil
	}, activity.RegisterOptions{Name: "call"})

	_, err := env.ExecuteActivity("call")
	require.NoError(t, err)
	require.Zero(t, sent)
	require.Len(t, m.signals, 1, "before it gets the result")
	m.haltedHere()
	_, err = env.ExecuteActivity("call")
	require.NoError(t, err)
	require.Equal(t, 2, sent, "before anything begins")

	m.haltedHere()
	m.away = serviceerror.NewUnavailable("not yet")
	_, err = env.ExecuteActivity("call")
	require.Error(t, err, "it is tried again")
}

// A loop that was halted before a worker had opened it is ended, and its note goes.
func TestALoopThatWasHaltedBeforeItBeganIsEnded(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.runs("x", "first", running)
	m.runs("new", "fresh", running)
	note := hostrecord.Record{Loop: "new", FirstRun: "fresh", Namespace: "default", Closed: true}
	require.NoError(t, hostrecord.Announce(m.o.Home, note))
	hostrecord.RetractOpened(m.o.Home, note)
	hostworker.TellEnds(t.Context(), m.o, "here")
	hostworker.TellEnds(t.Context(), m.o, "here")
	require.Equal(t, []string{"new"}, m.ended)
	left, err := hostrecord.Announced(m.o.Home)
	require.NoError(t, err)
	require.Empty(t, left)
}
