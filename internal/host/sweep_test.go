package host_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/host"
)

// A loop that the host's own engine has lost while this worker ran goes on from its ledger.
func TestALoopThatTheEngineLosesMeanwhileGoesOn(t *testing.T) {
	m := newMachine(t)
	m.runs("x", "first", running)
	host.Sweep(t.Context(), m.o, m.a)
	require.Empty(t, m.started, "the engine has it")
	delete(m.known, "x")
	host.Sweep(t.Context(), m.o, m.a)
	require.Len(t, m.started, 1)
	require.Equal(t, m.ledger, m.resumed[0].Ledger)
}

func TestARecordThatIsTornWhileTheWorkerRunsIsWrittenAgain(t *testing.T) {
	m := newMachine(t)
	m.runs("x", "first", running)
	before := m.workspace()
	m.damage("")
	host.Sweep(t.Context(), m.o, m.a)
	require.Equal(t, before, m.workspace())
}
