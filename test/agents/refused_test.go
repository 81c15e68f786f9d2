package agents_test

import (
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/test/harness/world"
)

// limited is Claude Code whose subscription is used up at its first call, for that many seconds.
func limited(seconds string) string {
	return `date +%s >>"$WORLD/when"
		if [ "$(wc -l <"$WORLD/when")" = 1 ]; then
			until=$(($(date +%s) + ` + seconds + `)); echo $until >"$WORLD/until"; echo 99 >work/n
			printf '{"type":"system","subtype":"init","session_id":"s"}\n{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":%s,"rateLimitType":"five_hour"}}\n' $until
			printf '{"type":"result","subtype":"success","is_error":true,"api_error_status":429,"result":"You have hit your 5-hour limit"}\n'
			exit 1
		fi
		` + world.Raises + " >/dev/null; " + recorded("claude-2.1.330")
}

// TestARateLimitIsSleptThroughAndAKillToo kills the worker while the loop sleeps. The loop continues once when the
// limit is over, and nothing of this counts as a try.
func TestARateLimitIsSleptThroughAndAKillToo(t *testing.T) {
	world.Slow(t, "workflows has a rate limit that a timer sleeps out, and TestKilledAtEveryPoint kills")
	t.Parallel()
	w := world.Alone(t, "")
	standIn(w, "claude", limited("20"))
	run := w.Start("run", "--yes", w.SpecFile())
	st := w.Waits("sleeping")
	require.Nil(t, st.Gate)
	require.Contains(t, st.PauseReason, "rate limit five_hour")
	require.Contains(t, w.Pawl("show", w.Loop).Out, "asleep")
	require.Contains(t, w.Pawl("list").Out, "sleeping")
	require.NoError(t, run.Cmd.Process.Kill())
	<-run.Gone
	u, err := world.StartUp(w.Home, filepath.Join(w.Dir, "up"))
	require.NoError(t, err)
	st = w.Waits("completed")
	require.Equal(t, 1, st.Iteration)
	require.Equal(t, "11", w.Kept("work/n"), "what it did before it was refused is undone")
	calls := strings.Fields(w.Read("when"))
	require.Len(t, calls, 2)
	require.GreaterOrEqual(t, number(t, calls[1]), number(t, strings.TrimSpace(w.Read("until"))), "it is not called before")
	require.Equal(t, "raise the number by one", w.LastRow().Description())
	events, _ := w.Events()
	require.Equal(t, 1, strings.Count(strings.Join(world.Types(events), " "), "sleep_ended"))
	require.NoError(t, u.Stop())
}

func number(t *testing.T, text string) int {
	n, err := strconv.Atoi(text)
	require.NoError(t, err)
	return n
}

// TestASignInThatIsMissingOpensAGate has a program that would ask again for ever, with an invalid key.
func TestASignInThatIsMissingOpensAGate(t *testing.T) {
	w := streams(t, "claude", `if [ ! -e "$WORLD/signed-in" ]; then
			printf '{"type":"system","subtype":"init","session_id":"s"}\n{"type":"system","subtype":"api_retry","error_status":401,"retry_delay_ms":507,"error":"authentication_failed"}\n'
			tail -f /dev/null
		fi
		`+world.Raises+" >/dev/null; "+recorded("claude-2.1.330"))
	r := w.Run(4)
	require.Equal(t, "question", r.Gate.Kind)
	require.Contains(t, r.Gate.Summary, "401 authentication_failed")
	require.Contains(t, r.Gate.Summary, "set ANTHROPIC_API_KEY, ANTHROPIC_AUTH_TOKEN or CLAUDE_CODE_OAUTH_TOKEN")
	require.Equal(t, []string{"answer"}, r.Gate.Answers)
	w.Write("signed-in", "")
	require.Equal(t, 0, w.Pawl("answer", w.Loop, "retry").Code)
	st := w.Waits("completed")
	require.Equal(t, 1, st.Iteration)
	require.Equal(t, "11", w.Kept("work/n"))
}

// TestAProgramThatCantStartSaysWhy has a program that ends before its stream begins.
func TestAProgramThatCantStartSaysWhy(t *testing.T) {
	w := streams(t, "codex", `echo "error: unexpected argument '--json' found" >&2; exit 2`)
	r := w.Run(3)
	const why = "the agent failed (exit 2: error: unexpected argument '--json' found)"
	require.Equal(t, "error:agent: "+why, w.LastRow().Description())
	require.Contains(t, r.Result.Reason, "the agent failed in every iteration: "+why)
}

// TestAProgramThatSaysNothingIsEnded has a program that begins and then prints nothing.
func TestAProgramThatSaysNothingIsEnded(t *testing.T) {
	world.Slow(t, "activities/agentcall has the limit")
	w := streams(t, "claude", `printf '{"type":"system","subtype":"init","session_id":"s"}\n'; tail -f /dev/null`)
	w.Set(doc{"limits": doc{"silence": "1s"}})
	w.Run(3)
	require.Equal(t, "error:agent: the agent failed (it said nothing for 1s (limits.silence), and none of its tools was at work)", w.LastRow().Description())
}

// TestABudgetOfTokensIsRefusedWhereNobodyCounts has programs that do not report tokens: first without a key for pawl's
// meter, then with the meter turned off.
func TestABudgetOfTokensIsRefusedWhereNobodyCounts(t *testing.T) {
	for _, use := range world.Sample(1, []string{"codex", "gemini"}) {
		t.Run(use, func(t *testing.T) {
			w := streams(t, use, "exit 1")
			w.Set(doc{"limits": doc{"tokens": 6000}})
			s := w.Pawl("run", "--yes", w.SpecFile())
			require.Equal(t, 2, s.Code, s.Out)
			require.Contains(t, s.Out+s.Err, "limits.tokens can't be kept: "+use+" does not say what it uses while it works")
			w.Set(doc{"agent": doc{"meter": "off"}})
			s = w.Pawl("run", "--yes", w.SpecFile())
			require.Equal(t, 2, s.Code, s.Out)
			require.Contains(t, s.Out+s.Err, "limits.tokens: can't be kept, since "+use+" does not say what it uses while it works")
		})
	}
}
