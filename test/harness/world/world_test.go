package world_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/test/harness/tier"
	"pawl/test/harness/world"
)

func TestASampleHasTheFirstAndTheLastCaseAndIsSpread(t *testing.T) {
	cases := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}
	require.Equal(t, cases, world.Sample(20, cases))
	if tier.Nightly {
		require.Equal(t, cases, world.Sample(1, cases))
		return
	}
	require.Equal(t, []int{0, 4, 9}, world.Sample(3, cases))
	require.Equal(t, []int{0, 9}, world.Sample(2, cases))
	require.Equal(t, []int{0}, world.Sample(1, cases))
}

func TestTheEndToEndTierHasAllCasesOfItsKind(t *testing.T) {
	cases := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}
	if tier.EndToEnd {
		require.Equal(t, cases, world.EndToEnd(2, cases))
		return
	}
	require.Equal(t, []int{0, 9}, world.EndToEnd(2, cases))
}
