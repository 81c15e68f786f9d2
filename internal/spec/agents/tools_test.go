package agents_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/spec/agents"
)

func TestA1_AProgramIsHeldToTheApprovedToolsOrRefused(t *testing.T) {
	for name, c := range map[string]struct {
		use   string
		tools []string
		what  string
	}{
		"all":                                 {agents.Codex, []string{"*"}, ""},
		"claude takes its own names":          {agents.Claude, []string{"Read", "Bash(go test:*)", "shell(go vet *)", "mcp__a__b"}, ""},
		"codex has a shell":                   {agents.Codex, []string{"read", "edit"}, "is without shell, and codex can't be kept from that"},
		"codex can be kept from editing":      {agents.Codex, []string{"read", "shell"}, ""},
		"codex runs any command or none":      {agents.Codex, []string{"read", "shell(go test *)"}, "is some commands alone, and the shell of codex can't be held to those"},
		"a shell beside some of its commands": {agents.Codex, []string{"read", "shell", "shell(go test *)"}, ""},
		"gemini has no names":                 {agents.Gemini, []string{"read", "run_shell_command"}, `has "run_shell_command", and gemini can be held to classes of tools alone`},
		"gemini runs some commands":           {agents.Gemini, []string{"read", "shell(go test *)"}, ""},
		"opencode":                            {agents.OpenCode, []string{"read", "edit", "shell(make *)"}, ""},
		"pi has no rules for its shell":       {agents.Pi, []string{"read", "shell(make *)"}, "is some commands alone, and the shell of pi can't be held to those"},
		"pi has no network":                   {agents.Pi, []string{"read", "network"}, ""},
		"qwen":                                {agents.Qwen, []string{"read", "edit"}, ""},
		"qwen's rules have a hole":            {agents.Qwen, []string{"read", "shell(make *)"}, "is some commands alone, and the shell of qwen can't be held to those"},
		"a command is held to nothing":        {agents.Command, []string{"read", "Whatever"}, ""},
	} {
		p, ok := agents.Lookup(c.use)
		require.True(t, ok)
		what, want := p.Keeps(c.tools)
		require.Equal(t, c.what, what, name)
		require.Equal(t, what == "", want == "", name)
	}
}

func TestA1_TheContractSaysWhatNothingHolds(t *testing.T) {
	unheld := func(use string, tools ...string) []string {
		p, _ := agents.Lookup(use)
		return p.Unheld(tools)
	}
	require.Empty(t, unheld(agents.Command, "*"))
	require.Equal(t, []string{"nothing holds the command to these tools but the sandbox"}, unheld(agents.Command, "read"))
	require.Empty(t, unheld(agents.Claude, "read", "edit"))
	require.Empty(t, unheld(agents.Claude, "*", "subagents"))
	for _, some := range []string{"shell(go test *)", "Bash(go test:*)"} {
		require.Equal(t, []string{"claude also runs commands that only look, such as ls, cat and git status"}, unheld(agents.Claude, "read", some))
	}
	require.Empty(t, unheld(agents.Codex, "read", "shell"), "its own sandbox holds it")
	require.Equal(t, []string{"the shell of pi does what the sandbox lets it, whatever the other tools"}, unheld(agents.Pi, "read", "shell"))
	require.Equal(t, []string{"what agents of opencode spend is counted by pawl's meter alone"}, unheld(agents.OpenCode, "*", "subagents"))
}

func TestEntriesOfApprovedTools(t *testing.T) {
	for entry, c := range map[string]struct {
		class         agents.Class
		commands, err string
	}{
		"read":               {agents.Looks, "", ""},
		"shell":              {agents.Shell, "", ""},
		"shell(go test *)":   {agents.Shell, "go test", ""},
		"shell( go  test *)": {agents.Shell, "go test", ""},
		"Bash(go test:*)":    {"", "", ""},
		"shell(*)":           {"", "", "names no commands by the words that they begin with"},
		"shell( *)":          {"", "", "names no commands by the words that they begin with"},
		"shell(ls)":          {"", "", "names no commands by the words that they begin with"},
		"shell(a * b *)":     {"", "", "names no commands by the words that they begin with"},
		"shell(a; b *)":      {"", "", "names no commands by the words that they begin with"},
		"shell(go test *":    {"", "", "names no commands by the words that they begin with"},
		"edit(docs/**)":      {"", "", "has brackets, which only shell takes"},
	} {
		class, commands, err := agents.ReadEntry(entry)
		require.Equal(t, c.class, class, entry)
		require.Equal(t, c.commands, commands, entry)
		if c.err == "" {
			require.NoError(t, err, entry)
		} else {
			require.EqualError(t, err, c.err, entry)
		}
	}
	require.True(t, agents.Approve([]string{"*"}).May(agents.Shell))
	require.False(t, agents.Approve([]string{"*"}).May(agents.Subagents), "what those spend is not all told")
	require.True(t, agents.Approve([]string{"*", "subagents"}).May(agents.Subagents))
	require.Empty(t, agents.Approve([]string{"shell", "shell(ls *)"}).Commands, "it has every command")
}

func TestMCPServersAreApprovedByName(t *testing.T) {
	names, other := agents.Servers([]string{"--mcp-config", `{"mcpServers":{"b":{},"a":{}}}`, "--effort", "low", `--mcp-config={"mcpServers":{"a":{}}}`})
	require.Equal(t, []string{"a", "b"}, names)
	require.False(t, other)
	_, other = agents.Servers([]string{"--mcp-config", "servers.json"})
	require.True(t, other, "what is in a file nobody knows before")
	names, other = agents.Servers([]string{"--effort", "low"})
	require.Empty(t, names)
	require.False(t, other)
}
