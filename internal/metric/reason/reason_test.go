package reason_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/metric/reason"
)

func TestEveryReasonHasAMeaning(t *testing.T) {
	for _, row := range reason.Table {
		word := row.Reason
		if word == reason.Policy {
			word += "max-files"
		}
		require.Equal(t, row.Meaning, reason.Meaning(word))
		require.NotEmpty(t, row.Meaning)
	}
	require.Empty(t, reason.Meaning("the tests fail"))
	require.True(t, reason.Failed(reason.AgentFailed))
	require.False(t, reason.Failed(reason.GuardFailed))
}
