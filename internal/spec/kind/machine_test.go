package kind_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/fault"
	"pawl/internal/spec/kind"
	"pawl/internal/spec/phase"
)

// TestL6_EveryPairIsAllowedOrRefused tries all pairs of phases of the metric protocol.
func TestL6_EveryPairIsAllowedOrRefused(t *testing.T) {
	m := kind.Improve.Machine(kind.Version(), true)
	for _, from := range m.Phases() {
		for _, to := range m.Phases() {
			err := m.Check(from, to)
			if slices.Contains(m.Row(from).Next, to) {
				require.NoError(t, err)
			} else {
				require.Equal(t, fault.InvalidTransition, fault.CodeOf(err), "%s to %s", from, to)
			}
		}
	}
	require.Equal(t, []phase.Phase{phase.Precheck}, m.Row(phase.None).Next)
	require.Empty(t, m.Row(phase.Complete).Next, "complete is terminal")
	require.NotContains(t, m.Row(phase.Modify).Next, phase.Verify, "P4: nothing is verified that is not committed")
	require.NotContains(t, m.Row(phase.Commit).Next, phase.Decide, "P10: nothing is decided that was not verified")
	for _, from := range m.Phases() {
		if from != phase.Complete {
			require.Contains(t, m.Row(from).Next, phase.Complete, "a loop can be halted anywhere")
			require.True(t, m.Completes(from, false))
		}
		require.False(t, from == phase.Log && slices.Contains(m.Row(from).Next, phase.Modify), "P1: review is never skipped")
	}
}

// TestL6_DeliverTakesOnlyTheTransitionsOfTheSource compares the machine with the source's table, pair by pair, over
// the phases of both machines and one that does not exist.
func TestL6_DeliverTakesOnlyTheTransitionsOfTheSource(t *testing.T) {
	source := map[[2]phase.Phase]bool{
		{phase.None, phase.Plan}:       true, // the beginning
		{phase.Plan, phase.Write}:      true,
		{phase.Write, phase.Test}:      true,
		{phase.Test, phase.Fix}:        true,
		{phase.Test, phase.Verify}:     true,
		{phase.Fix, phase.Test}:        true,
		{phase.Fix, phase.Write}:       true,
		{phase.Verify, phase.Complete}: true,
		{phase.Verify, phase.Write}:    true,
	}
	all := append([]phase.Phase{phase.None, "deploy"}, kind.Improve.Machine(kind.Version(), true).Phases()...)
	all = append(all, kind.Deliver.Machine(kind.Version(), true).Phases()...)
	for _, required := range []bool{true, false} {
		m := kind.Deliver.Machine(kind.Version(), required)
		for _, from := range all {
			for _, to := range all {
				pair := [2]phase.Phase{from, to}
				want := source[pair] || !required && pair == [2]phase.Phase{phase.Write, phase.Verify}
				err := m.Check(from, to)
				if want {
					require.NoError(t, err, "%s to %s, required %v", from, to, required)
				} else {
					require.Equal(t, fault.InvalidTransition, fault.CodeOf(err), "%s to %s, required %v", from, to, required)
				}
			}
		}
		require.Empty(t, m.Row(phase.Complete).Next, "complete is terminal")
	}
}

// TestL6_AnEndOfDeliverIsNoTransition checks which loops go to complete when they end.
func TestL6_AnEndOfDeliverIsNoTransition(t *testing.T) {
	m := kind.Deliver.Machine(kind.Version(), true)
	for _, from := range m.Phases() {
		require.False(t, m.Completes(from, false), "a loop that fails or is halted in %s stays there", from)
		require.Equal(t, from == phase.Verify, m.Completes(from, true), from)
	}
}
