package spec_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/spec"
)

func TestP0_SeveralCandidatesAtOnceAreForAMetric(t *testing.T) {
	of := func(kind, limits string) (spec.Spec, error) {
		return spec.Parse(fmt.Appendf(nil, `{"kind": %q, "goal": "g", "scope": ["a"], "verify": {"command": "x"}, "test": {"command": "y"},
			"agent": {"command": ["z"]}, "approvals": {"tools": ["*"]}, "limits": {%s}}`, kind, limits))
	}
	s, err := of("improve", "")
	require.NoError(t, err)
	require.Equal(t, 1, s.AtOnce())
	s, err = of("improve", `"parallel": 16`)
	require.NoError(t, err)
	require.Equal(t, 16, s.AtOnce())
	_, err = of("deliver", `"parallel": 1`)
	require.NoError(t, err)
	for limits, want := range map[string]string{
		`"parallel": 17`: "limits.parallel: is 17; want: at most 16", `"parallel": 0`: "limits.parallel: is 0; want: 1 or more",
		`"backtrack": true, "discards": 5`: "limits.backtrack: has no effect, since the loop ends after 5 discards in a row (limits.discards), before a plateau (limits.shiftAfter: 5); want: limits.discards above limits.shiftAfter",
		`"backtrack": true, "discards": 1`: "the loop ends after 1 discard in a row",
	} {
		_, err = of("improve", limits)
		require.ErrorContains(t, err, want)
	}
	s, err = of("improve", `"backtrack": true`)
	require.NoError(t, err)
	require.True(t, s.Backtracks())
	_, err = of("deliver", `"backtrack": true`)
	require.ErrorContains(t, err, "limits.backtrack: is true, but a loop of kind deliver keeps one change after the other; want: false, or kind: improve")
	_, err = of("deliver", `"backtrack": false`)
	require.NoError(t, err)
	_, err = of("deliver", `"parallel": 2`)
	require.ErrorContains(t, err, "limits.parallel: is 2, but a loop of kind deliver makes one change at a time; want: 1, or kind: improve")
}
