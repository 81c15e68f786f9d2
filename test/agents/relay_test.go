package agents_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/test/harness/world"
)

// TestAnAgentStandsInForOneThatIsRefused has Claude Code without a sign-in, and Codex in reserve. The same iteration
// calls both, and Codex starts from unchanged files.
func TestAnAgentStandsInForOneThatIsRefused(t *testing.T) {
	world.Slow(t, "workflows has the decision")
	w := streams(t, "claude", `echo 99 >work/n
		printf '{"type":"system","subtype":"init","session_id":"s"}\n{"type":"system","subtype":"api_retry","error_status":401,"retry_delay_ms":507,"error":"authentication_failed"}\n'
		tail -f /dev/null`)
	w.Write("other.sh", `cat >/dev/null; cat work/n >"$WORLD/found"; `+world.Raises+" >/dev/null; "+recorded("codex-0.169.0")+"\n")
	w.Set(doc{"agent": doc{"fallback": []doc{{"use": "codex", "command": []string{"sh", filepath.Join(w.Dir, "other.sh")}}}}})
	r := w.Run(0)
	require.Equal(t, 1, r.Result.KeptCount)
	require.Equal(t, "11", w.Kept("work/n"))
	require.Equal(t, "10\n", w.Read("found"))
	require.Equal(t, 1, r.Result.Usage.AgentCalls, "the other call counts as none")
	who := "sh " + filepath.Join(w.Dir, "other.sh")
	require.Contains(t, w.Pawl("show", w.Loop).Out, "raise the number by one by "+who)
	log := w.Pawl("log", w.Loop).Out
	require.Contains(t, log, "refuses work (auth-missing): 401 authentication_failed; "+who+" makes the call instead")
	told := w.Pawl("log", "--transcript", "1", w.Loop)
	require.Equal(t, 0, told.Code, told.Err)
	require.Contains(t, told.Out, "ended: 401 authentication_failed (auth-missing)\n")
	require.Contains(t, told.Out, "called as "+who)
}

// TestAReviewerOfTheSameVendorIsRefused has a spec that requires a reviewer of another vendor.
func TestAReviewerOfTheSameVendorIsRefused(t *testing.T) {
	w := streams(t, "claude", "exit 1")
	w.Set(doc{"agent": doc{"roles": doc{"reviewer": doc{"model": "opus"}}}, "reviewer": doc{"otherVendor": true}})
	s := w.Pawl("run", "--yes", w.SpecFile())
	require.Equal(t, 2, s.Code, s.Out)
	require.Contains(t, s.Out+s.Err, "reviewer.otherVendor: can't be kept, since anthropic may have written what it reviews")
}
