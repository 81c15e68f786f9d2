package phase_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/fault"
	"pawl/internal/phase"
)

// TestL6_EveryPairIsAllowedOrRefused walks all pairs of phases of the metric protocol.
func TestL6_EveryPairIsAllowedOrRefused(t *testing.T) {
	m := phase.Improve(phase.Version)
	for from := range m {
		for to := range m {
			err := m.Check(from, to)
			if slices.Contains(m[from], to) {
				require.NoError(t, err)
			} else {
				require.Equal(t, fault.InvalidTransition, fault.CodeOf(err), "%s to %s", from, to)
			}
		}
	}
	require.Empty(t, m[phase.Complete], "complete is terminal")
	require.NotContains(t, m[phase.Modify], phase.Verify, "P4: nothing is verified that is not committed")
	require.NotContains(t, m[phase.Commit], phase.Decide, "P10: nothing is decided that was not verified")
	for from, next := range m {
		if from != phase.None && from != phase.Complete {
			require.Contains(t, next, phase.Complete, "a loop can be halted anywhere")
		}
		require.False(t, from == phase.Log && slices.Contains(next, phase.Modify), "P1: review is never skipped")
	}
}
