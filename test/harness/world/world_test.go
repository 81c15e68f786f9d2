package world_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/test/harness/world"
)

func TestASampleHasTheFirstAndTheLastCaseAndIsSpread(t *testing.T) {
	t.Setenv("PAWL_TEST_ALL", "")
	t.Setenv("PAWL_TEST_SHARE", "") // CI sets it
	cases := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}
	require.Equal(t, []int{0, 4, 9}, world.Sample(3, cases))
	require.Equal(t, []int{0, 9}, world.Sample(2, cases))
	require.Equal(t, []int{0}, world.Sample(1, cases))
	require.Equal(t, cases, world.Sample(20, cases))
	t.Setenv("PAWL_TEST_ALL", "1")
	require.Equal(t, cases, world.Sample(3, cases))
}

func TestSharesHaveEveryCaseOnce(t *testing.T) {
	cases := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}
	t.Setenv("PAWL_TEST_ALL", "1")
	t.Setenv("PAWL_TEST_SHARE", "")
	require.Equal(t, cases, world.Sample(2, cases))
	var all []int
	for _, turn := range []string{"0/4", "1/4", "2/4", "3/4"} {
		t.Setenv("PAWL_TEST_SHARE", turn)
		all = append(all, world.Sample(2, cases)...)
	}
	require.ElementsMatch(t, cases, all)
	require.Equal(t, []int{0, 2}, world.Sample(2, cases[:3]), "never fewer than a sample")
	t.Setenv("PAWL_TEST_ALL", "")
	require.Equal(t, []int{0, 9}, world.Sample(2, cases))
}

// named is a test with that name.
type named struct {
	testing.TB
	name string
}

func (n named) Name() string { return n.name }

func (named) Skip(...any) { panic("skipped") }

func TestSlowTestsTakeTurns(t *testing.T) {
	t.Setenv("PAWL_TEST_ALL", "1")
	runs := func(name string) (yes bool) {
		defer func() { _ = recover() }()
		world.Slow(named{t, name}, "it is one of five")
		return true
	}
	ran, names := map[string]int{}, []string{"one", "two", "three", "four", "five"}
	for _, turn := range []string{"0/4", "1/4", "2/4", "3/4"} {
		t.Setenv("PAWL_TEST_SHARE", turn)
		for _, name := range names {
			if runs(name) {
				ran[name]++
				require.True(t, runs(name+"/x/within"), "it runs whenever the one around it does")
			}
		}
	}
	for _, name := range names {
		require.Equal(t, 1, ran[name], name)
	}
}
