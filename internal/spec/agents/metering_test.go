package agents_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/spec/agents"
)

// TestA2_WhoIsLedToTheMeter checks environments and settings that people use.
func TestA2_WhoIsLedToTheMeter(t *testing.T) {
	const chosen = `{"security": {"auth": {"selectedType": "gemini-api-key"}}}`
	for name, c := range map[string]struct {
		use, env, args, model string
		files                 map[string]string
		keys, upstream        string
		why                   string
	}{
		"claude, a key":                    {use: "claude", env: "ANTHROPIC_API_KEY", keys: "ANTHROPIC_API_KEY", upstream: "https://api.anthropic.com"},
		"claude, both":                     {use: "claude", env: "ANTHROPIC_API_KEY ANTHROPIC_AUTH_TOKEN", keys: "ANTHROPIC_AUTH_TOKEN ANTHROPIC_API_KEY", upstream: "https://api.anthropic.com"},
		"claude, another address":          {use: "claude", env: "ANTHROPIC_API_KEY ANTHROPIC_BASE_URL", keys: "ANTHROPIC_API_KEY", upstream: "set"},
		"claude, a subscription":           {use: "claude", env: "CLAUDE_CODE_OAUTH_TOKEN", why: "signs in with an account of its own, and no key is in its environment"},
		"claude, another provider":         {use: "claude", env: "ANTHROPIC_API_KEY CLAUDE_CODE_USE_BEDROCK", why: "is told to speak to another provider (CLAUDE_CODE_USE_BEDROCK)"},
		"codex, its own key":               {use: "codex", env: "CODEX_API_KEY OPENAI_API_KEY", files: map[string]string{".codex/auth.json": "{}"}, keys: "CODEX_API_KEY OPENAI_API_KEY", upstream: "https://api.openai.com/v1"},
		"codex, a key and no account":      {use: "codex", env: "OPENAI_API_KEY", keys: "OPENAI_API_KEY", upstream: "https://api.openai.com/v1"},
		"codex, an account before the key": {use: "codex", env: "OPENAI_API_KEY", files: map[string]string{".codex/auth.json": "{}"}, why: "signs in with an account of its own, and no key is in its environment"},
		"codex, another provider":          {use: "codex", env: "CODEX_API_KEY", args: "-c model_provider=mine", why: "is told to speak to another provider (model_provider)"},
		"gemini, set to a key":             {use: "gemini", env: "GEMINI_API_KEY", files: map[string]string{".gemini/settings.json": chosen}, keys: "GEMINI_API_KEY", upstream: "https://generativelanguage.googleapis.com"},
		"gemini, as it was set before":     {use: "gemini", env: "GEMINI_API_KEY", files: map[string]string{".gemini/settings.json": `{"selectedAuthType": "gemini-api-key"}`}, keys: "GEMINI_API_KEY", upstream: "https://generativelanguage.googleapis.com"},
		"gemini, set to an account":        {use: "gemini", env: "GEMINI_API_KEY", files: map[string]string{".gemini/settings.json": strings.ReplaceAll(chosen, "gemini-api-key", "oauth-personal")}, why: "is not set to sign in with a key"},
		"gemini, not set":                  {use: "gemini", env: "GEMINI_API_KEY", why: "is not set to sign in with a key"},
		"qwen, by its arguments":           {use: "qwen", env: "OPENAI_API_KEY", args: "--auth-type openai", keys: "OPENAI_API_KEY", upstream: "https://api.openai.com/v1"},
		"qwen, by its settings":            {use: "qwen", env: "OPENAI_API_KEY OPENAI_BASE_URL", files: map[string]string{".qwen/settings.json": `{"security":{"auth":{"selectedType":"openai"}}}`}, keys: "OPENAI_API_KEY", upstream: "set"},
		"qwen, an account":                 {use: "qwen", env: "OPENAI_API_KEY", files: map[string]string{".qwen/settings.json": `{"security":{"auth":{"selectedType":"qwen-oauth"}}}`}, why: "is not set to sign in with a key"},
		"qwen, a provider in its settings": {use: "qwen", env: "OPENAI_API_KEY", args: "--auth-type openai", files: map[string]string{".qwen/settings.json": `{"modelProviders":{"openai":[{"id":"m"}]}}`}, why: "has a provider in its settings (~/.qwen/settings.json)"},
		"opencode, one that it knows":      {use: "opencode", env: "ANTHROPIC_API_KEY", model: "anthropic/claude-sonnet-4-5", keys: "ANTHROPIC_API_KEY", upstream: "https://api.anthropic.com/v1"},
		"opencode, the model in settings":  {use: "opencode", env: "OPENAI_API_KEY", files: map[string]string{".config/opencode/opencode.json": `{"model": "openai/gpt-5"} // mine`}, keys: "OPENAI_API_KEY", upstream: "https://api.openai.com/v1"},
		"opencode, no model":               {use: "opencode", env: "OPENAI_API_KEY", why: "is not told by agent.model which provider it speaks to (provider/model)"},
		"opencode, an account":             {use: "opencode", env: "ANTHROPIC_API_KEY", model: "anthropic/m", files: map[string]string{".local/share/opencode/auth.json": `{"anthropic": {"type": "oauth"}}`}, why: "signs in to anthropic with what is in ~/.local/share/opencode/auth.json"},
		"opencode, another's account":      {use: "opencode", env: "ANTHROPIC_API_KEY", model: "anthropic/m", files: map[string]string{".local/share/opencode/auth.json": `{"openai": {"type": "oauth"}}`}, keys: "ANTHROPIC_API_KEY", upstream: "https://api.anthropic.com/v1"},
		"opencode, one of its own":         {use: "opencode", env: "MY_KEY", model: "s/m", files: map[string]string{".config/opencode/opencode.json": `{"provider": {"s": {"options": {"baseURL": "http://there/v1", "apiKey": "{env:MY_KEY}"}}}}`}, keys: "MY_KEY", upstream: "http://there/v1"},
		"opencode, one that nobody knows":  {use: "opencode", env: "MY_KEY", model: "s/m", why: "speaks to s, whose address pawl does not know"},
		"opencode, a key in a file":        {use: "opencode", model: "s/m", files: map[string]string{".config/opencode/opencode.json": `{"provider": {"s": {"options": {"baseURL": "http://there/v1", "apiKey": "{file:~/key}"}}}}`}, why: "gets the key of s by its settings (options.apiKey)"},
		"opencode, other settings":         {use: "opencode", env: "ANTHROPIC_API_KEY OPENCODE_CONFIG", model: "anthropic/m", why: "is told to speak to another provider (OPENCODE_CONFIG)"},
		"pi":                               {use: "pi", env: "ANTHROPIC_API_KEY OPENAI_API_KEY", model: "anthropic/m", keys: "ANTHROPIC_API_KEY", upstream: "https://api.anthropic.com"},
		"pi, no key":                       {use: "pi", env: "OPENAI_API_KEY", model: "anthropic/m", why: "signs in with an account of its own, and no key is in its environment"},
		"pi, one of its own":               {use: "pi", env: "MY_KEY", model: "s/m", files: map[string]string{".pi/agent/models.json": `{"providers": {"s": {"baseUrl": "http://there/v1", "apiKey": "MY_KEY"}}}`}, keys: "MY_KEY", upstream: "http://there/v1"},
		"pi, a command that tells the key": {use: "pi", model: "s/m", files: map[string]string{".pi/agent/models.json": `{"providers": {"s": {"baseUrl": "http://there/v1", "apiKey": "!pass me"}}}`}, why: "gets the key of s by its settings (apiKey)"},
	} {
		t.Run(name, func(t *testing.T) {
			p, _ := agents.Lookup(c.use)
			env := map[string]string{}
			for v := range strings.FieldsSeq(c.env) {
				env[v] = "set"
			}
			r, why := p.Metering.Direction(env, strings.Fields(c.args), c.model, func(file string) []byte {
				if text, there := c.files[file]; there {
					return []byte(text)
				}
				return nil
			})
			require.Equal(t, c.why, why)
			require.Equal(t, c.keys, strings.Join(r.Keys, " "))
			require.Equal(t, c.upstream, r.Upstream)
			if c.use == "codex" && why == "" {
				require.Contains(t, strings.Join(r.Args, " "), `base_url="{base}",env_key="`+r.Keys[0]+`"`)
			}
		})
	}
}

// TestA2_CodexFindsTheMeterByVariablesWhereItsArgumentsAreAnothers checks codex-acp, which accepts none of Codex's
// arguments.
func TestA2_CodexFindsTheMeterByVariablesWhereItsArgumentsAreAnothers(t *testing.T) {
	p, _ := agents.Lookup(agents.Codex)
	none := func(string) []byte { return nil }
	r, why := p.MeteringByACP().Direction(map[string]string{"OPENAI_API_KEY": "k"}, nil, "", none)
	require.Empty(t, why)
	require.Empty(t, r.Args)
	require.Equal(t, []string{
		"OPENAI_BASE_URL={base}", "MODEL_PROVIDER=pawl",
		`CODEX_CONFIG={"model_providers":{"pawl":{"name":"OpenAI","base_url":"{base}","env_key":"OPENAI_API_KEY","wire_api":"responses"}}}`,
	}, r.Env)
	_, why = p.MeteringByACP().Direction(map[string]string{"OPENAI_API_KEY": "k", "MODEL_PROVIDER": "mine"}, nil, "", none)
	require.Equal(t, "is told to speak to another provider (MODEL_PROVIDER)", why)
	p.ByACP.Leads = nil
	require.False(t, p.MeteringByACP().Meterable())
	p, _ = agents.Lookup(agents.Claude)
	require.Equal(t, p.Metering, p.MeteringByACP())
}

// TestA2_SettingsThatLeadToTheMeter checks the programs that find their provider by its name: the settings from pawl
// name the meter instead, with a placeholder for the key.
func TestA2_SettingsThatLeadToTheMeter(t *testing.T) {
	own := map[string]string{
		".config/opencode/opencode.json": `{"provider": {"s": {"npm": "x", "options": {"baseURL": "http://there/v1", "apiKey": "literal", "timeout": 7}}}}`,
		".pi/agent/models.json":          `{"providers": {"s": {"baseUrl": "http://there/v1", "api": "openai-completions", "apiKey": "literal", "models": [{"id": "m"}]}, "t": {"baseUrl": "u"}}}`,
	}
	direct := func(use string) agents.Route {
		p, _ := agents.Lookup(use)
		r, why := p.Metering.Direction(nil, nil, "s/m", func(file string) []byte {
			if text, there := own[file]; there {
				return []byte(text)
			}
			return nil
		})
		require.Empty(t, why)
		require.Equal(t, "literal", r.Secret)
		require.Empty(t, r.Keys)
		return r
	}
	r := direct(agents.OpenCode)
	require.Equal(t, []string{`OPENCODE_CONFIG_CONTENT={"provider":{"s":{"options":{"apiKey":"{key}","baseURL":"{base}"}}}}`}, r.Env, "it is merged with the user's own")
	require.Empty(t, r.Files)
	r = direct(agents.Pi)
	require.Equal(t, []string{"PI_CODING_AGENT_DIR={dir}"}, r.Env)
	require.Equal(t, map[string]string{"models.json": `{"providers":{"s":{"api":"openai-completions","apiKey":"{key}","baseUrl":"{base}","models":[{"id":"m"}]}}}`}, r.Files)
}
