package program_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/program"
)

// TestA2_WhoIsLedToTheMeter has the environments and settings that people have.
func TestA2_WhoIsLedToTheMeter(t *testing.T) {
	const chosen = `{"security": {"auth": {"selectedType": "gemini-api-key"}}}`
	for name, c := range map[string]struct {
		use, env, args string
		files          map[string]string
		keys, upstream string
		why            string
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
		"opencode":                         {use: "opencode", env: "OPENCODE_API_KEY", why: "can't be led to pawl's meter"},
	} {
		t.Run(name, func(t *testing.T) {
			p, _ := program.Lookup(c.use)
			env := map[string]string{}
			for v := range strings.FieldsSeq(c.env) {
				env[v] = "set"
			}
			r, why := p.Metering.Direction(env, strings.Fields(c.args), func(file string) []byte {
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
