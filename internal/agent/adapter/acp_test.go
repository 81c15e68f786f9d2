package adapter_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/agent/adapter"
	"pawl/internal/spec"
	"pawl/internal/spec/agents"
)

func TestA1_OpencodeIsHeldToItsToolsByACPToo(t *testing.T) {
	a, ok := adapter.Lookup(agents.ACP)
	require.True(t, ok)
	c := adapter.Call{Agent: spec.Agent{Use: agents.ACP, Command: spec.Argv{List: []string{"/opt/bin/opencode", "acp"}}}, MayEdit: true, Tools: []string{"read", "edit"}, Self: "/bin/pawl"}
	require.Equal(t, []string{`OPENCODE_PERMISSION={"bash":"deny","task":"deny","webfetch":"deny","websearch":"deny"}`}, a.Env(c))
	require.Equal(t, "/bin/pawl acp-client --approve read --approve edit -- /opt/bin/opencode acp", strings.Join(a.Argv(c), " "))
	c.MayEdit, c.Tools = false, []string{"*"}
	require.Equal(t, "/bin/pawl acp-client --approve read --approve network -- /opt/bin/opencode acp", strings.Join(a.Argv(c), " "))
	c.Agent.Command.List = []string{"gemini", "--acp"}
	require.Empty(t, a.Env(c))
}
