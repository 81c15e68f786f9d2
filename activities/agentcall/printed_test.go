package agentcall_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/loop/api"
	"pawl/internal/loop/result"
	"pawl/internal/spec"
	"pawl/test/harness/actest"
)

// TestAnErrorOfTheAPIIsNoSuccess has agents of `use: command` that exit 0.
func TestAnErrorOfTheAPIIsNoSuccess(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, script string
		class        result.Class
	}{
		{"the last line", `echo working; echo "API Error: Rate limit reached"`, result.RateLimited},
		{"the first line", `echo "API Error: 529 Overloaded"; echo "{"; echo "}"`, result.ProviderDown},
		{"stderr", `echo "Not logged in · Please run /login" >&2`, result.AuthMissing},
		{"the result file", `echo '{"description": "You have hit your limit · resets 3pm (UTC)"}' >"$PAWL_RESULT"`, result.RateLimited},
		{"with a change", `echo x >>words.txt; echo "API Error: Rate limit reached"`, result.Done},
		{"a test that speaks of it", `echo "TestLimiter: got API Error: Rate limit reached, want 200"`, result.Done},
		{"the server of its model", `echo "connect ECONNREFUSED 127.0.0.1:11434"`, result.ProviderDown},
		{"a server of its tests", `echo "connect ECONNREFUSED 127.0.0.1:5432"`, result.Done},
		{"an error of its tests", `echo "Error: connect ECONNREFUSED 10.0.0.5:5432" >&2; echo "503 Service Unavailable"`, result.Done},
		{"in the middle", `echo a; echo "API Error: Rate limit reached"; echo "then it worked: nothing to do"`, result.Done},
		{"rules that doubt no success", `echo "API Error: Rate limit reached"`, result.Done},
		{"the server of its model, and exit 1", `echo "connect ECONNREFUSED 127.0.0.1:11434" >&2; exit 1`, result.ProviderDown},
		{"a server of its tests, and exit 1", `echo "connect ECONNREFUSED 127.0.0.1:5432" >&2; exit 1`, result.Failed},
		{"exit 1", `echo "API Error: Rate limit reached"; exit 1`, result.Failed},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "agent.sh")
			require.NoError(t, os.WriteFile(file, []byte(c.script), 0o600))
			l := actest.BeginWith(t, spec.Deny, func(_ string, doc map[string]any) {
				doc["agent"] = map[string]any{"command": []any{"sh", file}, "env": map[string]any{"OLLAMA_HOST": "localhost"}}
			})
			l.Iterate()
			doubt := c.name != "rules that doubt no success"
			out, err := callBy(l, api.Call{Attempt: 1, Doubt: doubt})
			require.NoError(t, err)
			require.Equal(t, c.class, out.Class, fmt.Sprintf("%+v", out))
			require.Equal(t, c.class.Refused(), out.Refused != nil)
			if out.Refused != nil {
				require.Equal(t, out.ExitCode == 0, out.Refused.Printed)
			}
		})
	}
}
