package world_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/test/world"
)

func TestASampleHasTheFirstAndTheLastCaseAndIsSpread(t *testing.T) {
	t.Setenv("PAWL_TEST_ALL", "")
	cases := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}
	require.Equal(t, []int{0, 4, 9}, world.Sample(3, cases))
	require.Equal(t, []int{0, 9}, world.Sample(2, cases))
	require.Equal(t, []int{0}, world.Sample(1, cases))
	require.Equal(t, cases, world.Sample(20, cases))
	t.Setenv("PAWL_TEST_ALL", "1")
	require.Equal(t, cases, world.Sample(3, cases))
}
