package agentcall

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAProgramThatWaitsForItsProviderHasTwoMinutes(t *testing.T) {
	var p patience
	begin := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	require.False(t, p.ends(true, begin))
	require.False(t, p.ends(true, begin.Add(longestWait-time.Second)))
	require.True(t, p.ends(true, begin.Add(longestWait)))
	require.False(t, p.ends(false, begin.Add(longestWait)), "it has reached its provider")
	require.False(t, p.ends(true, begin.Add(longestWait+time.Minute)), "it waits anew")
}
