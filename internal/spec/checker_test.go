package spec_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/spec"
)

// A wrong value's message says what to write instead, not what type it should have.
func TestP0_AMessageSaysWhatToWrite(t *testing.T) {
	t.Parallel()
	for key, test := range map[string]struct {
		value any
		want  string
	}{
		"guard":   {"go test", `guard: is "go test"; want: guard: {command: "go test"}`},
		"verify":  {"wc -l a", `want: verify: {command: "wc -l a"}`},
		"agent":   {"claude", `want: agent: {use: claude}`},
		"repo":    {"..", `want: repo: {path: ".."}`},
		"protect": {"go.mod", `want: protect: ["go.mod"]`},
		"golas":   {"x", "golas: is not a key of a spec; want: goal (did you mean it?)"},
		"mode":    {"mision", "want: mission (did you mean it?)"},
		"limits":  {"many", "want: an object with keys of its own"},
	} {
		doc := map[string]any{}
		require.NoError(t, json.Unmarshal([]byte(minimal), &doc))
		doc[key] = test.value
		_, err := spec.FromMap(doc)
		require.ErrorContains(t, err, test.want, key)
	}
	for agent, want := range map[string]string{
		"cluade":     "agent: {use: claude}",
		"./agent.sh": `agent: {command: "./agent.sh"}`,
	} {
		doc := map[string]any{}
		require.NoError(t, json.Unmarshal([]byte(minimal), &doc))
		doc["agent"] = agent
		_, err := spec.FromMap(doc)
		require.ErrorContains(t, err, "want: "+want)
		doc["agent"] = map[string]any{"use": "cluade"}
		_, err = spec.FromMap(doc)
		require.ErrorContains(t, err, `agent.use: is "cluade"; want: claude (did you mean it?)`)
	}
}
