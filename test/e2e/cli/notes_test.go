package cli_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/test/harness/world"
)

// The agent is told every note that was accepted. A note that it can't be told any more is refused.
func TestNotesAreToldOrRefused(t *testing.T) {
	world.Slow(t, "workflows has the bound")
	w := world.New(t, world.WaitsFor("go-$PAWL_ITERATION")+`; cp "$PAWL_PROMPT" "$WORLD/prompt-$PAWL_ITERATION"`).Set(doc{"limits": doc{"iterations": 3}})
	require.Equal(t, 0, w.Pawl("start", "--yes", w.SpecFile()).Code)
	w.At(1)
	const many = 10
	for i := range many {
		s := w.Pawl("steer", w.Loop, fmt.Sprintf("mind number %d.", i))
		require.Equal(t, 0, s.Code, s.Err)
	}
	s := w.Refused("TOO_MANY_NOTES", "steer", w.Loop, "one more")
	require.Contains(t, s.Err, "10 notes wait for the next agent call already")
	w.Write("go-1", "")
	w.At(2)
	w.Write("go-2", "")
	w.At(3)
	require.Equal(t, 0, w.Pawl("steer", w.Loop, "that was taken").Code, "there is room again")
	w.Write("go-3", "")
	w.Waits("completed")
	prompt := w.Read("prompt-2")
	for i := range many {
		require.Equal(t, 1, strings.Count(prompt, fmt.Sprintf("mind number %d.", i)), prompt)
	}
	require.NotContains(t, prompt, "one more")
}
