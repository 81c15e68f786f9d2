package agents_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/spec/agents"
)

func TestOfAUsersSettingsALoopGetsTheSignInAlone(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"hooks and servers stay":     {`{"security":{"auth":{"selectedType":"gemini-api-key"},"x":1},"hooks":{"SessionStart":[]},"mcpServers":{"a":{}},"model":{"name":"m"}}`, `{"model":{"name":"m"},"security":{"auth":{"selectedType":"gemini-api-key"}}}`},
		"nothing of it is there":     {`{"hooks":{}}`, ""},
		"it is something else there": {`{"security":7}`, ""},
		"it is no JSON":              {`// mine`, ""},
		"with comments in it":        {"// mine\n{\n  /* of\n work */ \"model\": {\"name\": \"a//b \\\" /* c\",}, // last\n}\n", `{"model":{"name":"a//b \" /* c"}}`},
		"a comment without an end":   {`{"model":1} /* x`, `{"model":1}`},
		"a text without an end":      {`{"model":"x\`, ""},
		"it is a list":               {`[]`, ""},
	} {
		p, ok := agents.Lookup(agents.Gemini)
		require.True(t, ok)
		require.Equal(t, c.want, p.Settings[0].Of([]byte(c.text)), name)
	}
}

func TestSettingsForTheMeterHaveNoKey(t *testing.T) {
	opencode, _ := agents.Lookup(agents.OpenCode)
	require.JSONEq(t, `{"model": "a/m", "provider": {"a": {"options": {"baseURL": "u"}}, "b": {"npm": "x"}, "c": 1}}`,
		opencode.Metering.Public(`{"model": "a/m", "provider": {"a": {"options": {"baseURL": "u", "apiKey": "k"}}, "b": {"npm": "x"}, "c": 1}}`))
	require.Empty(t, opencode.Metering.Public(""))
}

func TestEveryProgramSaysWhatIsIts(t *testing.T) {
	for _, name := range agents.Uses() {
		p, ok := agents.Lookup(name)
		require.True(t, ok)
		if name == agents.Command || name == agents.ACP {
			continue
		}
		require.NotEmpty(t, p.Keys, name)
		require.NotEmpty(t, p.Login, name)
		require.NotEmpty(t, p.SignIn, name)
		require.NotEmpty(t, p.Writes, name)
		require.NotEmpty(t, p.Version, name)
	}
}

func TestAgentsAreKnownByTheCommandsThatSpeakTheProtocol(t *testing.T) {
	for command, want := range map[string]string{
		"codex-acp": agents.Codex, "/opt/bin/claude-agent-acp --x": agents.Claude, "gemini --acp": agents.Gemini,
		"npx -y @agentclientprotocol/codex-acp@2.6.0": agents.Codex, "qwen --acp": agents.Qwen, "goose acp": "", "acp command": "",
	} {
		p, ok := agents.OfACP(strings.Fields(command))
		require.Equal(t, want, p.Name, command)
		require.Equal(t, want != "", ok, command)
	}
}
