package acp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/agent/adapter"
	"pawl/internal/spec/agents"
)

// everything is a contract that approves every tool.
var everything = Rules{agents.Approved{Classes: []agents.Class{agents.Looks, agents.Edits, agents.Shell, agents.Network}, All: true}}

// told lets an agent take a turn, and returns what the client reports, as the adapter reads it.
func told(t *testing.T, ctx context.Context, o Options, agent func(in io.Reader, out io.Writer)) (*adapter.Stream, string) {
	t.Helper()
	o.Dir = "/desk"
	fromClient, toAgent := io.Pipe()
	fromAgent, toClient := io.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		agent(fromClient, toClient)
		_ = toClient.Close()
		_, _ = io.Copy(io.Discard, fromClient)
	}()
	var lines bytes.Buffer
	talk(ctx, o, toAgent, fromAgent, &lines)
	_ = toAgent.Close()
	_ = fromAgent.Close()
	<-ended
	a, ok := adapter.Lookup(agents.ACP)
	require.True(t, ok)
	s, text := a.Stream(), lines.String()
	s.Feed(lines.Bytes())
	return s, text
}

// replay returns an agent that repeats what a real one said. To each request of the client it sends the messages up
// to the answer. When it asks something, it waits for the answer.
func replay(t *testing.T, name string) func(in io.Reader, out io.Writer) {
	text, err := os.ReadFile(filepath.Join("testdata", name+".jsonl"))
	require.NoError(t, err)
	var said []map[string]any
	for line := range bytes.Lines(text) {
		var m map[string]any
		require.NoError(t, json.Unmarshal(line, &m))
		said = append(said, m)
	}
	return func(in io.Reader, out io.Writer) {
		send := json.NewEncoder(out)
		requests, at := bufio.NewScanner(in), 0
		requests.Buffer(nil, 1<<20)
		for requests.Scan() {
			var m map[string]any
			if json.Unmarshal(requests.Bytes(), &m) != nil {
				return
			}
			if m["method"] == "session/set_mode" {
				_ = send.Encode(map[string]any{"jsonrpc": "2.0", "id": m["id"], "result": map[string]any{}})
				continue
			}
			for at < len(said) {
				next := said[at]
				at++
				if _, asks := next["method"]; !asks { // the answer
					if m["method"] == "session/new" && next["result"].(map[string]any)["sessionId"] == nil { // Codex's session ID is not recorded
						_ = send.Encode(map[string]any{"jsonrpc": "2.0", "id": m["id"], "result": map[string]any{"sessionId": "s"}})
						at--
						break
					}
					next["id"] = m["id"]
					_ = send.Encode(next)
					break
				}
				if _, asks := next["id"]; asks { // waits until it is answered
					_ = send.Encode(next)
					if !requests.Scan() {
						return
					}
					continue
				}
				_ = send.Encode(next)
			}
		}
	}
}

// TestRealAgentsByTheirRecordedTurns has recorded turns of five agents: their tool calls and the usage that they
// report are counted.
func TestRealAgentsByTheirRecordedTurns(t *testing.T) {
	for name, want := range map[string]struct {
		in, out int64
		cost    string
	}{
		"claude":   {3600, 300, "0.0096"},
		"codex":    {3600, 300, "0"},
		"gemini":   {3600, 240, "0"},
		"opencode": {1200, 100, "0.0072"}, // only the last request
		"qwen24":   {0, 0, "0"},           // it reports nothing
	} {
		t.Run(name, func(t *testing.T) {
			s, text := told(t, t.Context(), Options{Rules: everything, Tools: -1}, replay(t, name))
			require.True(t, s.Begun(), text)
			require.True(t, s.Ended(), text)
			end, u := s.End(), s.Usage()
			require.Empty(t, end.Failure)
			require.Empty(t, end.Denied)
			require.Contains(t, end.Text, "raise the number by one")
			require.Equal(t, int64(2), u.ToolCalls, text)
			require.Equal(t, []int64{want.in, want.out}, []int64{u.InputTokens, u.OutputTokens})
			require.Equal(t, want.cost, u.CostUSD.String())
			session, agent, version := s.Session()
			require.NotEmpty(t, session)
			if name != "gemini" {
				require.NotEmpty(t, agent)
				require.NotEmpty(t, version)
			}
			require.False(t, s.Busy())
		})
	}
}

func TestA1_ARealAgentsEditThatIsNotApprovedIsDenied(t *testing.T) {
	for _, name := range []string{"claude", "gemini", "opencode"} {
		s, text := told(t, t.Context(), Options{Rules: Rules{agents.Approved{Classes: []agents.Class{agents.Looks}}}, Tools: -1}, replay(t, name))
		require.Equal(t, []string{"edit"}, s.End().Denied, "%s: %s", name, text)
	}
}
