package agentcall_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/loop/api"
	"pawl/internal/loop/result"
	"pawl/internal/spec"
	"pawl/test/harness/actest"
)

// TestACommandThatSaysNothingIsEnded has agents of `use: command`. They say nothing while neither stdout nor stderr gets
// more, also where more is printed than is kept.
func TestACommandThatSaysNothingIsEnded(t *testing.T) {
	t.Parallel()
	const talks = `i=0; while [ $i -lt 45 ]; do echo still at work >&2; sleep 0.1; i=$((i+1)); done`
	for name, c := range map[string]struct {
		script  string
		limitMs int64
		class   result.Class
		failure string
	}{
		"it stops talking":     {"echo working; tail -f /dev/null", 300, result.Silent, "it said nothing for 300ms (limits.silence)"},
		"it goes on talking":   {"head -c 9000000 /dev/zero | tr '\\0' x >&2; " + talks, 3000, result.Done, ""},
		"no limit was set":     {"sleep 1", 0, result.Done, ""},
		"it fails before that": {"echo no >&2; exit 3", 60000, result.Failed, "exit 3: no"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "agent.sh")
			require.NoError(t, os.WriteFile(file, []byte(c.script), 0o600))
			l := actest.BeginWith(t, spec.Deny, func(_ string, doc map[string]any) {
				doc["agent"] = map[string]any{"command": []any{"sh", file}}
			})
			l.Iterate()

			out, err := callBy(l, api.Call{Attempt: 1, SilenceMs: c.limitMs})
			require.NoError(t, err)
			require.Equal(t, c.class, out.Class)
			require.Equal(t, c.failure, out.Failure)
			require.False(t, out.Interrupted, "it is not to run again")
		})
	}
}
