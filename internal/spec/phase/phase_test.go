package phase_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/fault"
	"pawl/internal/spec/phase"
)

// table is a machine whose iterations begin in write and are recorded in log. It may leave out test.
var table = phase.Machine{
	{At: phase.None, Next: []phase.Phase{phase.Precheck}},
	{At: phase.Precheck, Next: []phase.Phase{phase.Write}},
	{At: phase.Write, Next: []phase.Phase{phase.Test}, Untested: []phase.Phase{phase.Log}, Begins: true, Role: "writer"},
	{At: phase.Test, Next: []phase.Phase{phase.Log}},
	{At: phase.Log, Next: []phase.Phase{phase.Write, phase.Complete}, Records: true, Between: true},
	{At: phase.Complete},
}

func TestOnlyTheTableSaysWhatMayFollow(t *testing.T) {
	untested := table.WithoutTests()
	for _, from := range table {
		for _, to := range table {
			err := table.Check(from.At, to.At)
			if err != nil {
				require.Equal(t, fault.InvalidTransition, fault.CodeOf(err))
			}
			require.Equal(t, err == nil || from.At == phase.Write && to.At == phase.Log, untested.Check(from.At, to.At) == nil, "%s to %s", from.At, to.At)
		}
	}
	require.NoError(t, table.Check(phase.Log, phase.Write))
	require.Error(t, table.Check(phase.Write, phase.Log))
	require.Error(t, table.Check(phase.Fix, phase.Write), "the machine has no such phase")
	require.Equal(t, []phase.Phase{phase.Test}, table.Row(phase.Write).Next, "WithoutTests leaves the machine as it was")
}

func TestAMachineKnowsWhereItsIterationsAre(t *testing.T) {
	require.Equal(t, []phase.Phase{phase.Precheck, phase.Write, phase.Test, phase.Log, phase.Complete}, table.Phases())
	require.Equal(t, phase.Log, table.Between())
	require.Equal(t, phase.Log, table.Records())
	require.Equal(t, phase.None, phase.Machine{{At: phase.Plan}}.Between())
	require.Equal(t, "writer", table.Row(phase.Write).Role)
	require.Zero(t, table.Row(phase.Fix))
}

func TestALoopThatWasAboutToBeginAnIterationEntersItsFirstPhaseAgain(t *testing.T) {
	require.Equal(t, phase.Precheck, table.Unbegun(phase.Write))
	require.Equal(t, phase.Test, table.Unbegun(phase.Test))
	require.Equal(t, phase.Fix, table.Unbegun(phase.Fix))
}

func TestALoopCompletesFromWhereTheTableLetsIt(t *testing.T) {
	require.True(t, table.Completes(phase.Log, true))
	require.False(t, table.Completes(phase.Log, false), "it keeps the phase that it failed in")
	require.False(t, table.Completes(phase.Write, true))
	always := append(phase.Machine{}, table...)
	always[len(always)-1].EveryEnd = true
	require.True(t, always.Completes(phase.Log, false))
}
