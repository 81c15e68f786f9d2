package agents_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/loop/api"
	"pawl/test/harness/world"
)

// TestTranscriptsAreKeptAndShown has an agent that prints a credential. The test reads the transcript of an iteration,
// and checks that a changed file is reported as changed.
func TestTranscriptsAreKeptAndShown(t *testing.T) {
	world.Slow(t, "internal/agent/transcript writes them")
	token := "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"
	w := streams(t, "claude", world.Raises+` >/dev/null; echo "warning: `+token+`" >&2
		printf '{"type":"assistant","message":{"content":[{"type":"tool_use","id":"a","name":"Bash","input":{"command":"echo `+token+`"}}]}}\n'; `+recorded("claude-2.1.330"))
	w.Run(0)
	s := w.Pawl("log", "--transcript", "1", w.Loop)
	require.Equal(t, 0, s.Code, s.Err)
	for _, part := range []string{
		"(writer)\niteration 1, attempt 1, phase modify: writer, called as ", "prompt; all of it is in ", "tool 1: Bash\n   command: echo [a GitHub token]\n",
		"tool 3: Edit\n", "new_string: 11\n", "the agent\n   raise the number by one\n", "the end of what it wrote to stderr\n   warning: [a GitHub token]\n",
		"ended: ok (done)\nusage: tool calls 3, tokens in 3600, out 240, $0.0144, ",
	} {
		require.Contains(t, s.Out, part)
	}
	require.NotContains(t, s.Out, "16C7e42F")

	var calls []struct{ File, SHA256, Role, Trouble string }
	require.NoError(t, json.Unmarshal([]byte(w.Pawl("log", "--transcript", "1", "--json", w.Loop).Out), &calls))
	require.Len(t, calls, 1)
	require.Equal(t, "writer", calls[0].Role+calls[0].Trouble)
	file := calls[0].File
	require.Equal(t, 3, strings.Count(w.Pawl("log", "--json", w.Loop).Out, `"`+api.Transcript(filepath.Dir(file), calls[0].SHA256)+`"`), "the call, the iteration and its row name it")
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NotContains(t, string(b), "16C7e42F")

	require.NoError(t, os.WriteFile(file, []byte(strings.Replace(string(b), "echo", "rm -r", 1)+"\x1b[2J"), 0o600))
	s = w.Pawl("log", "--transcript", "1", w.Loop)
	require.Equal(t, 1, s.Code)
	require.Contains(t, s.Out, "!! it is NOT the one that was recorded: its SHA-256 is ")
	require.Contains(t, s.Out, `\u{1b}[2J`)
	require.NoError(t, os.Remove(file))
	s = w.Pawl("log", "--transcript", "1", w.Loop)
	require.Equal(t, 2, s.Code)
	require.Contains(t, s.Err, "no transcript of iteration 1 of "+w.Loop+" is on this host")
	s = w.Pawl("log", "--transcript", "7", w.Loop)
	require.Equal(t, 2, s.Code)
	require.Contains(t, s.Err, w.Loop+" has no iteration 7")
	s = w.Pawl("log", "--transcript", "0", w.Loop)
	require.Equal(t, 2, s.Code)
	require.Contains(t, s.Err, "no agent was called in iteration 0")
}
