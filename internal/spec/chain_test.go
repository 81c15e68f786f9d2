package spec_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/spec"
)

func agentOf(t *testing.T, agent, reviewer map[string]any, more ...map[string]any) (spec.Spec, error) {
	t.Helper()
	doc := map[string]any{
		"kind": "deliver", "goal": "g", "scope": []any{"**"}, "agent": agent, "test": map[string]any{"command": "true"},
		"approvals": map[string]any{"tools": []any{"*"}},
	}
	if reviewer != nil {
		doc["reviewer"] = reviewer
	}
	for _, m := range more {
		for key, value := range m {
			doc[key] = value
		}
	}
	return spec.FromMap(doc)
}

func TestAChainIsTheRolesOwnAgentAndWhatStandsInForIt(t *testing.T) {
	s, err := agentOf(t, map[string]any{
		"use": "claude", "model": "sonnet", "args": []any{"--x"}, "env": map[string]any{"A": "1"},
		"fallback": []any{map[string]any{"model": "haiku"}, map[string]any{"use": "codex", "env": map[string]any{"B": "2"}}},
		"roles": map[string]any{
			"reviewer": map[string]any{"use": "gemini"},
			"fixer":    map[string]any{"model": "opus", "fallback": []any{map[string]any{"use": "command", "command": "./fix"}}},
		},
	}, nil)
	require.NoError(t, err)
	label := func(role string) (all []string) {
		for _, a := range s.Agent.Chain(role) {
			require.Empty(t, a.Fallback)
			text := a.Use
			for _, word := range a.Label() {
				text += " " + word
			}
			all = append(all, text)
		}
		return all
	}
	require.Equal(t, []string{"claude claude --model sonnet", "claude claude --model haiku", "codex codex"}, label("writer"))
	require.Equal(t, []string{"gemini gemini", "gemini gemini --model haiku", "codex codex"}, label("reviewer"), "the loop's, on top of its own agent")
	require.Equal(t, []string{"claude claude --model opus", "command sh -c ./fix"}, label("fixer"), "one of its own in its place")
	writer := s.Agent.Chain("writer")
	require.Equal(t, []string{"--x"}, writer[1].Args)
	require.Empty(t, writer[2].Args, "they mean another program's")
	require.Equal(t, map[string]string{"A": "1", "B": "2"}, writer[2].Env)
	var keys []string
	for _, a := range s.Agent.All() {
		keys = append(keys, a.Key)
	}
	require.Equal(t, []string{
		"agent", "agent.fallback[0]", "agent.fallback[1]", "agent.roles.fixer", "agent.roles.fixer.fallback[0]",
		"agent.roles.reviewer", "agent.fallback[0]", "agent.fallback[1]",
	}, keys)
}

func TestWhatStandsInIsHeldToTheSameAsTheAgent(t *testing.T) {
	_, err := agentOf(t, map[string]any{"use": "claude", "fallback": []any{map[string]any{"use": "oracle"}, map[string]any{"use": "command"}}}, nil)
	require.ErrorContains(t, err, `agent.fallback[0].use: is "oracle"; want: one of command, claude`)
	require.ErrorContains(t, err, "agent.fallback[1].command: is missing")
	codex := map[string]any{"use": "claude", "fallback": []any{map[string]any{"use": "codex"}}}
	capped := map[string]any{"limits": map[string]any{"costUSD": 5}}
	_, err = agentOf(t, codex, nil, capped)
	require.NoError(t, err, "pawl's meter may know its price")
	codex["meter"] = "off"
	_, err = agentOf(t, codex, nil, capped)
	require.ErrorContains(t, err, "limits.costUSD: can't be kept, since codex does not say what it costs")
	s, err := agentOf(t, codex, nil, map[string]any{"limits": map[string]any{"tokens": 1000}})
	require.NoError(t, err)
	require.ErrorContains(t, s.Kept(), "limits.tokens: can't be kept, since codex does not say what it uses while it works")
}

func TestWhoseModelsAnAgentCalls(t *testing.T) {
	for want, a := range map[string]spec.Agent{
		"anthropic": {Use: "claude"}, "openai": {Use: "codex"}, "google": {Use: "gemini"},
		"mistral": {Use: "opencode", Model: "mistral/large"}, "xai": {Use: "pi", Model: "xai/grok"}, "moonshot": {Use: "command", Vendor: "Moonshot"},
	} {
		require.Equal(t, want, a.Maker())
	}
	for _, a := range []spec.Agent{{Use: "command"}, {Use: "qwen", Model: "openai/x"}, {Use: "opencode"}, {Use: "opencode", Model: "openrouter/x"}, {Use: "claude", Vendor: "z"}} {
		require.NotContains(t, []string{"anthropic", "openai", "openrouter"}, a.Maker())
	}
	s := spec.Agent{Use: "opencode", Model: "openai/gpt", Vendor: "azure", Roles: map[string]spec.Override{"writer": {Model: "xai/grok"}}}
	require.Equal(t, "azure", s.For("fixer").Maker())
	require.Equal(t, "xai", s.For("writer").Maker(), "what was said of another model does not hold for it")
}

func TestAReviewerOfAnotherVendor(t *testing.T) {
	other := map[string]any{"otherVendor": true}
	with := func(fallback, reviewer map[string]any) map[string]any {
		a := map[string]any{"use": "claude"}
		if fallback != nil {
			a["fallback"] = []any{fallback}
		}
		if reviewer != nil {
			a["roles"] = map[string]any{"reviewer": reviewer}
		}
		return a
	}
	use := func(name string) map[string]any { return map[string]any{"use": name} }
	for name, c := range map[string]struct {
		agent map[string]any
		want  string // "" if the spec is valid
	}{
		"another":                   {with(nil, use("codex")), ""},
		"another, as the spec says": {with(nil, map[string]any{"use": "command", "command": "./r", "vendor": "mistral"}), ""},
		"no reviewer":               {with(nil, nil), "reviewer.otherVendor: has no effect where no reviewer is asked; want: agent.roles.reviewer"},
		"the same":                  {with(nil, map[string]any{"model": "opus"}), "can't be kept, since anthropic may have written what it reviews; want: an agent of another vendor in agent.roles.reviewer, or in its fallback"},
		"an unknown vendor":         {with(nil, use("qwen")), "can't be kept, since the vendor of the models that the reviewer calls is unknown (qwen); want: agent.vendor beside the agent"},
		"the reviewer's vendor as the writer's substitute": {with(use("codex"), use("codex")), "can't be kept, since openai may have written"},
		"another stands in for the writer":                 {with(use("codex"), use("gemini")), ""},
		"an unknown vendor of a substitute writer":         {with(use("qwen"), use("gemini")), "can't be kept, since the vendor of the models that the writer calls is unknown (qwen)"},
		"another stands in for the reviewer":               {with(nil, map[string]any{"model": "opus", "fallback": []any{use("gemini")}}), ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := agentOf(t, c.agent, other)
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.want)
			_, err = agentOf(t, c.agent, nil)
			require.NoError(t, err, "nobody has asked for it")
		})
	}
}
