package trigger_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"pawl/internal/steward/charter"
)

// TestThePagesCommandsSendWork runs the commands of docs/guides/triggers.md, and reads its specs.
func TestThePagesCommandsSendWork(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "guides", "triggers.md"))
	require.NoError(t, err)
	blocks := map[string][]string{}
	for _, m := range regexp.MustCompile("(?s)```(sh|yaml)\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		blocks[m[1]] = append(blocks[m[1]], m[2])
	}
	for _, program := range []string{"curl", "openssl"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("the page's commands need " + program)
		}
	}
	b := serve(t)
	script := strings.ReplaceAll(strings.Join(blocks["sh"], "\n"), "http://127.0.0.1:8280", b.url)
	cmd := exec.CommandContext(t.Context(), "sh", "-euc", script)
	cmd.Env = append(os.Environ(), "PAWL_HOME="+b.home.Dir, "no_proxy=127.0.0.1")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Regexp(t, `^\{"result":"accepted","task":"alerts-[0-9a-f]{12}"\}\n$`, string(out))
	require.Equal(t, "Checkout is slow", b.submitted()[0].Title)
	require.NotContains(t, b.log.String(), "others may know", "the page's secret has no fault")

	specs := map[string]any{"name": "shop"}
	for _, block := range blocks["yaml"] {
		var part map[string]any
		require.NoError(t, yaml.Unmarshal([]byte(block), &part))
		for key, value := range part {
			if all, more := specs[key].([]any); more {
				value = append(all, value.([]any)...)
			}
			if key != "receivers" { // that one is Alertmanager's
				specs[key] = value
			}
		}
	}
	specs["kind"], specs["repo"] = "steward", map[string]any{"path": "."}
	c, err := charter.FromMap(specs)
	require.NoError(t, err)
	require.Len(t, c.Triggers, 3)
	require.Len(t, c.Schedules, 1)
}
