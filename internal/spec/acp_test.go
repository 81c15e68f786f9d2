package spec_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/spec"
	"pawl/internal/spec/agents"
)

func acpSpec(t *testing.T, more string) (spec.Spec, error) {
	t.Helper()
	return spec.Parse([]byte(`{"goal":"faster","scope":["src/**"],"repo":{"path":"/r"},"verify":{"command":"./bench"},"approvals":{"tools":["*"]},` + more + `}`))
}

func TestA2_BudgetsOfAgentsByTheProtocolAreKeptOrRefused(t *testing.T) {
	for more, want := range map[string]string{
		`"agent":{"use":"acp"}`:                                                                               "agent.command: is missing",
		`"agent":{"use":"acp","command":"gemini --acp"}`:                                                      "agent.command: is one string for the shell",
		`"agent":{"use":"acp","command":["gemini","--acp"]},"limits":{"costUSD":1}`:                           "",
		`"agent":{"use":"acp","command":["gemini","--acp"],"meter":"off"},"limits":{"costUSD":1}`:             "limits.costUSD: can't be kept",
		`"agent":{"use":"acp","command":["codex-acp"]},"limits":{"costUSD":1}`:                                "",
		`"agent":{"use":"acp","command":["codex-acp"],"meter":"off"},"limits":{"costUSD":1}`:                  "limits.costUSD: can't be kept",
		`"agent":{"use":"acp","command":["claude-agent-acp"]},"limits":{"costUSD":1}`:                         "",
		`"agent":{"use":"acp","command":["codex-acp"]},"limits":{"tokens":1000}`:                              "",
		`"agent":{"use":"acp","command":["gemini","--acp"]},"limits":{"tokens":1000}`:                         "",
		`"agent":{"use":"acp","command":["gemini","--acp"],"meter":"off"},"limits":{"tokens":1000}`:           "limits.tokens: can't be kept, since acp",
		`"agent":{"use":"acp","command":["nobody"]},"limits":{"tokens":1000}`:                                 "limits.tokens: can't be kept",
		`"agent":{"use":"command","command":"claude -p","roles":{}},"sandbox":{"agents":["claude","gemini"]}`: "",
		`"agent":{"use":"command","command":"x"},"sandbox":{"agents":["nobody"]}`:                             "sandbox.agents[0]: is \"nobody\"; want: one of claude, codex, gemini, opencode, pi, qwen",
		`"agent":{"use":"claude"},"sandbox":{"agents":["codex"]}`:                                             "sandbox.agents: has no effect, since no agent of the loop is a command; want: agent.command with a command that starts them, or no agents here",
		`"agent":{"use":"acp","command":["x"],"roles":{"reviewer":{"use":"codex"}}},"limits":{"tokens":1000}`: "limits.tokens: can't be kept, since acp",
	} {
		s, err := acpSpec(t, more)
		if err == nil {
			err = s.Kept()
		}
		if want == "" {
			require.NoError(t, err, more)
		} else {
			require.ErrorContains(t, err, want, more)
		}
	}
}

func TestTheVendorBehindTheProtocolIsKnown(t *testing.T) {
	require.Equal(t, spec.Agent{Use: agents.Codex}.Maker(), spec.Agent{Use: agents.ACP, Command: spec.Argv{List: []string{"codex-acp"}}}.Maker())
	require.Empty(t, spec.Agent{Use: agents.ACP, Command: spec.Argv{List: []string{"mine"}}}.Maker())
}

func TestWhoseSignInsAnAgentsCommandGets(t *testing.T) {
	names := func(a spec.Agent, named ...string) (all []string) {
		for _, p := range a.Programs(named) {
			all = append(all, p.Name)
		}
		return all
	}
	require.Equal(t, []string{"claude"}, names(spec.Agent{Use: agents.Claude}, "gemini"), "it is not a command")
	require.Empty(t, names(spec.Agent{Use: agents.Command, Command: spec.Argv{Shell: "claude -p"}}))
	require.Equal(t, []string{"claude", "gemini"}, names(spec.Agent{Use: agents.Command}, "claude", "gemini", "claude"))
	require.Equal(t, []string{"codex", "pi"}, names(spec.Agent{Use: agents.ACP, Command: spec.Argv{List: []string{"codex-acp"}}}, "pi", "codex"))
	require.Empty(t, names(spec.Agent{Use: agents.ACP, Command: spec.Argv{List: []string{"mine"}}}))
}
