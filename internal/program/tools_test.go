package program_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/program"
)

func TestA1_AProgramIsHeldToTheApprovedToolsOrRefused(t *testing.T) {
	for name, c := range map[string]struct {
		use   string
		tools []string
		what  string
	}{
		"all":                                 {program.Codex, []string{"*"}, ""},
		"claude takes its own names":          {program.Claude, []string{"Read", "Bash(go test:*)", "shell(go vet *)", "mcp__a__b"}, ""},
		"codex has a shell":                   {program.Codex, []string{"read", "edit"}, "is without shell, and codex can't be kept from that"},
		"codex can be kept from editing":      {program.Codex, []string{"read", "shell"}, ""},
		"codex runs any command or none":      {program.Codex, []string{"read", "shell(go test *)"}, "is some commands alone, and the shell of codex can't be held to those"},
		"a shell beside some of its commands": {program.Codex, []string{"read", "shell", "shell(go test *)"}, ""},
		"gemini has no names":                 {program.Gemini, []string{"read", "run_shell_command"}, `has "run_shell_command", and gemini can be held to classes of tools alone`},
		"gemini runs some commands":           {program.Gemini, []string{"read", "shell(go test *)"}, ""},
		"opencode":                            {program.OpenCode, []string{"read", "edit", "shell(make *)"}, ""},
		"pi has no rules for its shell":       {program.Pi, []string{"read", "shell(make *)"}, "is some commands alone, and the shell of pi can't be held to those"},
		"pi has no network":                   {program.Pi, []string{"read", "network"}, ""},
		"qwen":                                {program.Qwen, []string{"read", "edit"}, ""},
		"qwen's rules have a hole":            {program.Qwen, []string{"read", "shell(make *)"}, "is some commands alone, and the shell of qwen can't be held to those"},
		"a command is held to nothing":        {program.Command, []string{"read", "Whatever"}, ""},
	} {
		p, ok := program.Lookup(c.use)
		require.True(t, ok)
		what, want := p.Keeps(c.tools)
		require.Equal(t, c.what, what, name)
		require.Equal(t, what == "", want == "", name)
	}
}

func TestA1_TheContractSaysWhatNothingHolds(t *testing.T) {
	unheld := func(use string, tools ...string) []string {
		p, _ := program.Lookup(use)
		return p.Unheld(tools)
	}
	require.Empty(t, unheld(program.Command, "*"))
	require.Equal(t, []string{"nothing holds the command to these tools but the sandbox"}, unheld(program.Command, "read"))
	require.Empty(t, unheld(program.Claude, "read", "edit"))
	require.Empty(t, unheld(program.Claude, "*", "subagents"))
	for _, some := range []string{"shell(go test *)", "Bash(go test:*)"} {
		require.Equal(t, []string{"claude also runs commands that only look, such as ls, cat and git status"}, unheld(program.Claude, "read", some))
	}
	require.Empty(t, unheld(program.Codex, "read", "shell"), "its own sandbox holds it")
	require.Equal(t, []string{"the shell of pi does what the sandbox lets it, whatever the other tools"}, unheld(program.Pi, "read", "shell"))
	require.Equal(t, []string{"what agents of opencode spend is counted by pawl's meter alone"}, unheld(program.OpenCode, "*", "subagents"))
}

func TestEntriesOfApprovedTools(t *testing.T) {
	for entry, c := range map[string]struct {
		class         program.Class
		commands, err string
	}{
		"read":               {program.Looks, "", ""},
		"shell":              {program.Shell, "", ""},
		"shell(go test *)":   {program.Shell, "go test", ""},
		"shell( go  test *)": {program.Shell, "go test", ""},
		"Bash(go test:*)":    {"", "", ""},
		"shell(*)":           {"", "", "names no commands by the words that they begin with"},
		"shell( *)":          {"", "", "names no commands by the words that they begin with"},
		"shell(ls)":          {"", "", "names no commands by the words that they begin with"},
		"shell(a * b *)":     {"", "", "names no commands by the words that they begin with"},
		"shell(a; b *)":      {"", "", "names no commands by the words that they begin with"},
		"shell(go test *":    {"", "", "names no commands by the words that they begin with"},
		"edit(docs/**)":      {"", "", "has brackets, which only shell takes"},
	} {
		class, commands, err := program.ReadEntry(entry)
		require.Equal(t, c.class, class, entry)
		require.Equal(t, c.commands, commands, entry)
		if c.err == "" {
			require.NoError(t, err, entry)
		} else {
			require.EqualError(t, err, c.err, entry)
		}
	}
	require.True(t, program.Approve([]string{"*"}).May(program.Shell))
	require.False(t, program.Approve([]string{"*"}).May(program.Subagents), "what those spend is not all told")
	require.True(t, program.Approve([]string{"*", "subagents"}).May(program.Subagents))
	require.Empty(t, program.Approve([]string{"shell", "shell(ls *)"}).Commands, "it has every command")
}

func TestMCPServersAreApprovedByName(t *testing.T) {
	names, other := program.Servers([]string{"--mcp-config", `{"mcpServers":{"b":{},"a":{}}}`, "--effort", "low", `--mcp-config={"mcpServers":{"a":{}}}`})
	require.Equal(t, []string{"a", "b"}, names)
	require.False(t, other)
	_, other = program.Servers([]string{"--mcp-config", "servers.json"})
	require.True(t, other, "what is in a file nobody knows before")
	names, other = program.Servers([]string{"--effort", "low"})
	require.Empty(t, names)
	require.False(t, other)
}
