package list_test

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/lib/list"
)

func odd(n int) bool { return n%2 == 1 }

func TestWhatIsEmptyIsNil(t *testing.T) {
	require.Nil(t, list.Map([]int{}, strconv.Itoa))
	require.Nil(t, list.Filter([]int{}, odd))
	require.Nil(t, list.Filter([]int{2, 4}, odd))
}

func TestTheOrderStays(t *testing.T) {
	require.Equal(t, []string{"3", "1", "2"}, list.Map([]int{3, 1, 2}, strconv.Itoa))
	require.Equal(t, []int{3, 1}, list.Filter([]int{3, 2, 1}, odd))
}

func TestFilterLeavesItsValuesAlone(t *testing.T) {
	values := []int{2, 1}
	require.Equal(t, []int{1}, list.Filter(values, odd))
	require.Equal(t, []int{2, 1}, values)
}

func TestTheFirstIsTheZeroValueIfThereIsNone(t *testing.T) {
	first, found := list.First([]int{2, 3, 1}, odd)
	require.True(t, found)
	require.Equal(t, 3, first)
	first, found = list.First([]int{2, 4}, odd)
	require.False(t, found)
	require.Zero(t, first)
}

func TestASetHasEachValueOnce(t *testing.T) {
	require.Equal(t, map[string]bool{"a": true, "b": true}, list.Set([]string{"a", "b", "a"}))
	require.Equal(t, map[string]bool{}, list.Set[string](nil))
}

func TestLastAreAtMostAllValues(t *testing.T) {
	require.Equal(t, []int{2, 3}, list.Last([]int{1, 2, 3}, 2))
	require.Equal(t, []int{1}, list.Last([]int{1}, 2))
	require.Empty(t, list.Last([]int{1}, 0))
}
