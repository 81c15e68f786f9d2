package agentcall_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"pawl/activities/agentcall"
	"pawl/internal/exec/sandbox"
	"pawl/internal/exec/supervisor"
	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/internal/loop/result"
	"pawl/internal/metric"
	"pawl/test/harness/actest"
)

func TestMain(m *testing.M) {
	os.Setenv("REAL_KEY", "the-real-key") // what agents of the metered loops sign in with
	actest.Main(m)
}

const (
	tool = `printf '{"type":"tool_use","tool_name":"edit","tool_id":"%d"}\n' `
	done = `printf '{"type":"message","role":"assistant","content":"done"}\n{"type":"result","status":"success","stats":{"input_tokens":100,"output_tokens":10}}\n'`
)

// attempts makes calls of one step, one after the other, like the attempts of an activity.
type attempts struct {
	t   *testing.T
	s   *supervisor.Supervisor
	dir string
}

func newCalls(t *testing.T) attempts {
	s, err := supervisor.Start("call-"+filepath.Base(t.TempDir()), sandbox.ByNothing)
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	return attempts{t, s, t.TempDir()}
}

func (c attempts) make(ctx context.Context, script string, left int64, tell func(loop.Usage, string)) api.Called {
	c.t.Helper()
	out, err := agentcall.Call(ctx, c.s, "gemini", api.Call{Budget: map[loop.Resource]metric.Decimal{loop.ToolCalls: loop.Count(left)}},
		supervisor.Command{Argv: []string{"sh", "-c", script}, Dir: c.dir, Env: os.Environ(), Stdout: filepath.Join(c.dir, "stdout"), Stderr: filepath.Join(c.dir, "stderr")}, tell)
	require.NoError(c.t, err)
	return out
}

func TestA2_ACallIsFollowedWhileItRuns(t *testing.T) {
	t.Parallel()
	c := newCalls(t)
	var last atomic.Pointer[loop.Usage]
	out := c.make(t.Context(), tool+"1; "+tool+"2; "+tool+"3; tail -f /dev/null", 2, func(u loop.Usage, tool string) {
		require.Equal(t, "edit", tool)
		last.Store(&u)
	})
	require.Equal(t, loop.ToolCalls, out.Exhausted)
	require.False(t, out.Interrupted, "it is not to run again")
	require.False(t, out.OK())
	require.Equal(t, int64(3), out.Usage.ToolCalls)
	require.Equal(t, out.Usage, *last.Load())
}

func TestWhatUsesABudgetUpIsStillJudged(t *testing.T) {
	t.Parallel()
	c := newCalls(t)
	out := c.make(t.Context(), tool+"1; "+tool+"2; "+done, 2, nil)
	require.True(t, out.OK(), out)
	require.Equal(t, loop.Usage{AgentCalls: 1, ToolCalls: 2, InputTokens: 100, OutputTokens: 10}, out.Usage)
	require.Equal(t, "done", out.Description)
}

func TestHowACallFailed(t *testing.T) {
	t.Parallel()
	c := newCalls(t)
	failed := func(script string) string {
		out := c.make(t.Context(), script, 1000, nil)
		require.False(t, out.OK(), script)
		return out.Failure
	}
	require.Equal(t, "it ended without saying how", failed("true"))
	require.Empty(t, failed("exit 3"), "the exit code says more")
	require.Equal(t, "no stream", failed(`printf '{"type":"result","status":"error","error":{"message":"no stream"}}\n'; exit 3`))
	require.Empty(t, failed(done+"; exit 3"))

	const complains = "printf 'usage\\na\\n\\n b\\nlibfoo.so is missing\\n' >&2; exit "
	require.Equal(t, "exit 127: a; b; libfoo.so is missing", failed(complains+"127"), "its last lines say why")
	require.Equal(t, "it ended without saying how: a; b; libfoo.so is missing", failed(complains+"0"))
	require.Equal(t, "exit 9: a; b; libfoo.so is missing", agentcall.Collect(c.dir, 9).Failure, "of an agent that has no stream, too")
	require.Empty(t, agentcall.Collect(c.dir, 0).Failure)
}

func TestA2_ACallThatEndsOverItsBudgetIsOverIt(t *testing.T) {
	t.Parallel()
	c := newCalls(t)
	out := c.make(t.Context(), tool+"1; "+tool+"2; "+done, 1, nil)
	require.Equal(t, loop.ToolCalls, out.Exhausted, "however fast it was")
	require.Empty(t, out.Description)
}

func TestA6_AnInterruptedCallRunsAgainAndCounts(t *testing.T) {
	t.Parallel()
	c := newCalls(t)
	ctx, interrupt := context.WithCancel(t.Context())
	out := c.make(ctx, tool+"1; tail -f /dev/null", 9, func(loop.Usage, string) { interrupt() })
	require.True(t, out.Interrupted)
	require.Empty(t, out.Exhausted)
	require.Empty(t, out.Failure)
	require.Equal(t, int64(1), out.Usage.ToolCalls)

	// The next attempts find the output of the lost ones, and each counts once.
	out = c.make(t.Context(), tool+"1; "+done, 9, nil)
	require.True(t, out.OK())
	require.Equal(t, loop.Usage{AgentCalls: 1, ToolCalls: 2, InputTokens: 100, OutputTokens: 10}, out.Usage)
	out = c.make(t.Context(), "touch ran; "+done, 1, nil)
	require.Equal(t, loop.ToolCalls, out.Exhausted, "lost attempts have used it up")
	require.NoFileExists(t, filepath.Join(c.dir, "ran"))
}

// TestACallThatSaysNothingIsEnded has two programs that never end: one prints nothing any more, the other has a tool
// that runs.
func TestACallThatSaysNothingIsEnded(t *testing.T) {
	t.Parallel()
	c := newCalls(t)
	call := func(script string, limit time.Duration) api.Called {
		out, err := agentcall.Call(t.Context(), c.s, "gemini", api.Call{SilenceMs: 300}, supervisor.Command{
			Argv: []string{"sh", "-c", script}, Dir: c.dir, Env: os.Environ(), Limit: limit, Stdout: filepath.Join(c.dir, "stdout"), Stderr: filepath.Join(c.dir, "stderr"),
		}, nil)
		require.NoError(t, err)
		return out
	}
	out := call(`printf '{"type":"init"}\n'; tail -f /dev/null`, time.Minute)
	require.Equal(t, result.Silent, out.Class)
	require.Equal(t, "it said nothing for 300ms (limits.silence), and none of its tools was at work", out.Failure)
	require.False(t, out.Interrupted, "it is not to run again")
	if runtime.GOOS == "linux" { // only there it is known what processes use
		out = call(`printf '{"type":"init"}\n'; cat /dev/zero >/dev/null`, time.Minute) // moves enough also on a busy machine
		require.Equal(t, result.Silent, out.Class)
		require.Equal(t, "it said nothing for more than 300ms (limits.silence; work of its processes extends that at most threefold)", out.Failure)
	}
	out = call(tool+"1; tail -f /dev/null", 2*time.Second)
	require.Equal(t, result.TimedOut, out.Class, "a tool may take its time")
}

// TestAFloodIsEnded has a program that prints without an end. The limit of a real call takes minutes to reach.
func TestAFloodIsEnded(t *testing.T) {
	t.Parallel()
	c := newCalls(t)
	out, err := agentcall.Call(t.Context(), c.s, "claude", api.Call{}, supervisor.Command{
		Argv: []string{"sh", "-c", `yes '{"type":"text","text":"xxxxxxxxxxxxxxxxxxxxxxxx"}'`}, OutputLimit: 1 << 20,
		Dir: c.dir, Env: os.Environ(), Stdout: filepath.Join(c.dir, "stdout"), Stderr: filepath.Join(c.dir, "stderr"),
	}, nil)
	require.NoError(t, err)
	require.Equal(t, "it printed more than 1 MiB, which pawl does not keep; have it print less", out.Failure)
	require.False(t, out.Interrupted, "it is not to run again")
}

// TestAProgramThatAsksInVainIsEnded has a program that would ask its provider again and again, with a wrong
// credential.
func TestAProgramThatAsksInVainIsEnded(t *testing.T) {
	t.Parallel()
	c := newCalls(t)
	out, err := agentcall.Call(t.Context(), c.s, "claude", api.Call{}, supervisor.Command{
		Argv: []string{"sh", "-c", `printf '{"type":"system","subtype":"init"}\n{"type":"system","subtype":"api_retry","error_status":401,"error":"authentication_failed"}\n'; tail -f /dev/null`},
		Dir:  c.dir, Env: os.Environ(), Stdout: filepath.Join(c.dir, "stdout"), Stderr: filepath.Join(c.dir, "stderr"),
	}, nil)
	require.NoError(t, err)
	require.Equal(t, result.AuthMissing, out.Class)
	require.Equal(t, api.Refused{Status: 401, Said: "401 authentication_failed"}, *out.Refused)
	require.Nil(t, out.RateLimit)
}

// The transcript of a long output has its end.
func TestATranscriptEndsWithTheOutput(t *testing.T) {
	file := filepath.Join(t.TempDir(), "stdout")
	last := `{"type":"message","role":"assistant","content":"the last words"}` + "\n"
	text := bytes.Repeat([]byte("\n"), 64<<20)
	require.NoError(t, os.WriteFile(file, append(text, last...), 0o600))
	transcript, err := agentcall.Retold("gemini", file)
	require.NoError(t, err)
	require.Contains(t, transcript, "the last words")
	require.NotContains(t, transcript, "the call was made again")
}

func TestATranscriptSaysWhereTheWorkerDied(t *testing.T) {
	said := func(words string) string {
		file := filepath.Join(t.TempDir(), "stdout")
		require.NoError(t, os.WriteFile(file, []byte(`{"type":"message","role":"assistant","content":"`+words+`"}`+"\n"), 0o600))
		return file
	}
	transcript, err := agentcall.Retold("gemini", said("the second attempt"), said("the first attempt"))
	require.NoError(t, err)
	require.Regexp(t, `(?s)the first attempt.*the call was made again.*the second attempt`, transcript)
}
