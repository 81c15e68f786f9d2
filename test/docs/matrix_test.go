package docs_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/spec/agents"
)

// cases are those of test/agents/matrix_test.go, in words for people. Each of its results belongs to one of them.
var cases = []struct{ key, says string }{
	{"version", "version"},
	{"improve", "`Improve`: a change in the sandbox, in a hostile repository, counted by the meter (cached and thinking tokens too)"},
	{"stream", "the same with three tool calls at once, counted from the program's own output (`agent.meter: off`)"},
	{"acp", "the same by `agent.use: acp`, counted by the meter"},
	{"agents of its own", "it starts a subagent, with `subagents` approved, counted by the meter"},
	{"deliver", "`Deliver`: write, test, fix"},
	{"tool calls", "an endless loop, `limits.toolCalls`"},
	{"tokens", "`limits.tokens`"},
	{"dollars", "`limits.costUSD`"},
	{"denied", "its model calls the shell, which is not approved"},
	{"kill", "kill -9 while its shell works, with processes that have left their session"},
	{"limit", "a rate limit whose end the provider names"},
	{"401", "401"},
	{"500", "500"},
	{"529", "529"},
	{"cut", "an answer is cut off"},
	{"hang", "no answer comes"},
	{"drip", "an answer never ends"},
	{"repository's settings", "hooks, servers and plugins of the repository, its `.env`"},
	{"planted settings", "settings that its shell writes"},
}

// TestTheMatrixOfAgentsIsInStep compares the table in docs/reference/agents-tested.md with the results of the tests with real
// programs.
func TestTheMatrixOfAgentsIsInStep(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "agents", "testdata", "matrix.json"))
	require.NoError(t, err)
	var cells map[string]map[string]string
	require.NoError(t, json.Unmarshal(b, &cells))
	var names []string
	for _, p := range agents.Table {
		if p.Package != "" {
			names = append(names, p.Name)
			require.Contains(t, []string{"", p.Version}, cells[p.Name]["version"], "%s was run in another version: .ci/agents, then PAWL_MATRIX=test/agents/testdata/matrix.json go test -tags nightly ./test/agents -run Matrix", p.Name)
		}
	}
	var w strings.Builder
	fmt.Fprintf(&w, "| | %s |\n|---|%s\n", strings.Join(names, " | "), strings.Repeat("---|", len(names)))
	shown := 0
	for _, c := range cases {
		w.WriteString("| " + c.says + " |")
		for _, name := range names {
			cell, ran := cells[name][c.key]
			if !ran {
				cell = "**not run**"
			} else {
				shown++
			}
			w.WriteString(" " + strings.ReplaceAll(cell, "|", "\\|") + " |")
		}
		w.WriteString("\n")
	}
	all := 0
	for _, name := range names {
		all += len(cells[name])
	}
	require.Equal(t, all, shown, "the page has no row for some case")
	before, rest, found := strings.Cut(page(t, "reference/agents-tested.md"), "<!-- matrix -->\n")
	require.True(t, found)
	_, after, found := strings.Cut(rest, "<!-- /matrix -->")
	require.True(t, found)
	text := before + "<!-- matrix -->\n" + w.String() + "<!-- /matrix -->" + after
	if *update {
		require.NoError(t, os.WriteFile(filepath.Join("..", "..", "docs", "reference", "agents-tested.md"), []byte(text), 0o644))
	}
	require.Equal(t, text, page(t, "reference/agents-tested.md"), "docs/reference/agents-tested.md is out of step: go test ./test/docs -update")
}
