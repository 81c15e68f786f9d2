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
		`"backtrack": true`: "limits.backtrack: is not a key of a spec",
	} {
		_, err = of("improve", limits)
		require.ErrorContains(t, err, want)
	}
	_, err = of("deliver", `"parallel": 2`)
	require.ErrorContains(t, err, "limits.parallel: is 2, and a loop of kind deliver makes one change at a time; want: 1, or kind: improve")
}
