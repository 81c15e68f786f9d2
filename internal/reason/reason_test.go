package reason_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/reason"
)

// TestEveryReasonIsReadAsItWasWritten also holds the table to meanings for all of them.
func TestEveryReasonIsReadAsItWasWritten(t *testing.T) {
	for _, row := range reason.Table {
		word := row.Reason
		if word == reason.Policy {
			word += "max-files"
		}
		require.Equal(t, row.Meaning, reason.Meaning(word))
		require.NotEmpty(t, row.Meaning)
		for description, text := range map[string]string{"": word, "it was: so": word + ": it was: so"} {
			got, rest := reason.Cut(text)
			require.Equal(t, word, got)
			require.Equal(t, description, rest)
		}
	}
	for _, text := range []string{"", "make it faster", "error: no", "policy:: x", "not-atomic:x", "guard-failed: x"} {
		got, rest := reason.Cut(text)
		require.Empty(t, got, text)
		require.Equal(t, text, rest)
	}
	require.Empty(t, reason.Meaning("the tests fail"))
	require.True(t, reason.Failed(reason.AgentFailed))
	require.False(t, reason.Failed(reason.GuardFailed))
}
