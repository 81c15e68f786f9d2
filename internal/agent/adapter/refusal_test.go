package adapter_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"pawl/internal/agent/adapter"
	"pawl/internal/loop/result"
)

func TestARateLimitIsToldFromOtherFailures(t *testing.T) {
	end := time.Unix(1778565600, 0).UTC()
	const rejected = `{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1778565600,"rateLimitType":"five_hour"}}` + "\n"
	limited := func(said string) *result.Refusal {
		return &result.Refusal{Class: result.RateLimited, Said: said}
	}
	until := func(r *result.Refusal, status int) *result.Refusal { r.Until, r.Status = end, status; return r }
	for name, c := range map[string]struct {
		use, out string
		want     *result.Refusal
	}{
		"claude says when":               {"claude", rejected + `{"type":"result","subtype":"success","is_error":true,"result":"You've hit your limit"}`, until(limited("rate limit five_hour"), 429)},
		"claude goes on after a warning": {"claude", `{"type":"rate_limit_event","rate_limit_info":{"status":"allowed_warning","resetsAt":1778565600}}` + "\n" + `{"type":"result","subtype":"error_during_execution","is_error":true,"result":"it broke"}`, nil},
		"claude is let in again":         {"claude", rejected + `{"type":"rate_limit_event","rate_limit_info":{"status":"allowed"}}` + "\n" + `{"type":"result","subtype":"error_during_execution","is_error":true,"result":"it broke"}`, nil},
		"claude ends well":               {"claude", rejected + `{"type":"result","subtype":"success","result":"done"}`, nil},
		"an older claude":                {"claude", `{"type":"result","subtype":"success","is_error":true,"result":"Claude AI usage limit reached|1778565600"}`, until(limited("Claude AI usage limit reached|1778565600"), 0)},
		"codex says a time of day":       {"codex", `{"type":"turn.failed","error":{"message":"You've hit your usage limit. Try again at 7:58 PM."}}`, limited("You've hit your usage limit. Try again at 7:58 PM.")},
		"codex says when":                {"codex", `{"type":"turn.failed","error":{"message":"usage limit: \"resets_at\":1778565600"}}`, until(limited(`usage limit: "resets_at":1778565600`), 0)},
		"a model that speaks of limits":  {"codex", `{"type":"item.completed","item":{"type":"agent_message","text":"the rate limit was reached"}}` + "\n" + `{"type":"turn.failed","error":{"message":"the patch does not apply"}}`, nil},
		"codex names the kind":           {"codex", `{"type":"turn.failed","error":{"message":"No more today.","code":"usage_limit_reached"}}`, limited("No more today.")},
		"codex, tests that dial":         {"codex", `{"type":"turn.failed","error":{"message":"tests failed: dial tcp 127.0.0.1:5432: connection refused"}}`, nil},
		"codex, a test of a limiter":     {"codex", `{"type":"turn.failed","error":{"message":"TestLimiter: got status 429 too many requests, want 200"}}`, nil},
		"codex, a test of a sign-in":     {"codex", `{"type":"turn.failed","error":{"message":"TestLogin: expected error 401, got 200"}}`, nil},
		"claude, a test that uploads":    {"claude", `{"type":"result","subtype":"success","is_error":true,"result":"the test server answers status 500 in TestUpload"}`, nil},
		"gemini, a test of a quota":      {"gemini", `{"type":"result","status":"error","error":{"type":"unknown","message":"TestApi failed: expected quota exceeded error"}}`, nil},
		"gemini names the kind":          {"gemini", `{"type":"result","status":"error","error":{"type":"TerminalQuotaError","message":"No more today."}}`, limited("No more today.")},
		"opencode, a test that dials":    {"opencode", `{"type":"error","error":{"name":"UnknownError","data":{"message":"tests failed: connection refused"}}}`, nil},
		"pi, a test of a sign-in":        {"pi", `{"type":"message_end","message":{"role":"assistant","stopReason":"error","errorMessage":"TestLogin: please log in"}}` + "\n" + `{"type":"agent_end"}`, nil},
		"qwen, a test of a limiter":      {"qwen", `{"type":"result","subtype":"error_during_execution","is_error":true,"error":{"message":"TestRate: no rate limit header"}}`, nil},
		"gemini":                         {"gemini", `{"type":"result","status":"error","error":{"message":"Quota exceeded for requests"}}`, limited("Quota exceeded for requests")},
	} {
		adapter, ok := adapter.Lookup(c.use)
		require.True(t, ok)
		s := adapter.Stream()
		s.Feed([]byte(c.out + "\n"))
		require.Equal(t, c.want, s.End().Refusal, name)
	}
}

// TestClassesOfRecordedStreams reads the recorded output of the programs for different answers of their provider.
func TestClassesOfRecordedStreams(t *testing.T) {
	resets := time.Unix(1795314275, 0).UTC()
	at := time.Date(2026, 11, 22, 1, 10, 0, 0, time.UTC)
	for _, c := range []struct {
		use, file string
		more      string
		facts     result.Facts // facts besides the stream
		want      result.Class
		until     time.Time
	}{
		{"claude", "claude-2.1.330", "", result.Facts{}, result.Done, time.Time{}},
		{"claude", "claude-2.1.330-subscription-limit", "", result.Facts{Exit: 1}, result.RateLimited, resets},
		{"claude", "claude-2.1.330-401-retries", "", result.Facts{Exit: 1}, result.AuthMissing, time.Time{}},
		{"claude", "claude-interrupted-waiting", "", result.Facts{}, result.Crashed, time.Time{}},
		{"claude", "claude-interrupted-waiting", "", result.Facts{TimedOut: true}, result.TimedOut, time.Time{}},
		{"claude", "claude-interrupted-waiting", "", result.Facts{Silent: true, Signal: true}, result.Silent, time.Time{}},
		{"claude", "claude-interrupted-waiting", `{"type":"system","subtype":"api_retry","retry_delay_ms":500,"error_status":529,"error":"overloaded"}`, result.Facts{TimedOut: true}, result.ProviderDown, time.Time{}},
		{"claude", "claude-interrupted-waiting", `{"type":"system","subtype":"api_retry","retry_delay_ms":500,"error_status":null,"error":"unknown"}`, result.Facts{TimedOut: true}, result.ProviderDown, time.Time{}},
		{"claude", "claude-interrupted-waiting", `{"type":"system","subtype":"api_retry","retry_delay_ms":90000,"error_status":429,"error":"rate_limit"}`, result.Facts{TimedOut: true}, result.RateLimited, at.Add(90 * time.Second)},
		{"claude", "claude-interrupted-waiting", `{"type":"system","subtype":"api_retry","retry_delay_ms":500,"error_status":529}` + "\n" + `{"type":"stream_event","event":{"type":"message_start","message":{"id":"m"}}}`, result.Facts{TimedOut: true}, result.TimedOut, time.Time{}},
		{"claude", "claude-error", "", result.Facts{Exit: 1}, result.Failed, time.Time{}},
		{"codex", "codex-0.169.0", "", result.Facts{}, result.Done, time.Time{}},
		{"codex", "codex-0.169.0-usage-limit", "", result.Facts{Exit: 1}, result.RateLimited, time.Date(2026, 11, 22, 1, 25, 0, 0, time.UTC)},
		{"gemini", "gemini-0.61.0", "", result.Facts{}, result.Done, time.Time{}},
		{"gemini", "gemini-0.61.0-quota", "", result.Facts{Exit: 1}, result.RateLimited, time.Time{}},
		{"gemini", "gemini-0.61.0-cut", "", result.Facts{}, result.ProviderDown, time.Time{}},
		{"opencode", "opencode-1.18.33", "", result.Facts{}, result.Done, time.Time{}},
		{"opencode", "opencode-1.18.33", `{"type":"step_start"}`, result.Facts{}, result.Crashed, time.Time{}},
		{"opencode", "opencode-1.18.33", `{"type":"error","error":{"name":"APIError","data":{"message":"No.","statusCode":401}}}`, result.Facts{Exit: 1}, result.AuthMissing, time.Time{}},
		{"pi", "pi-0.73.1", "", result.Facts{}, result.Done, time.Time{}},
		{"pi", "pi-0.73.1", `{"type":"agent_start"}` + "\n" + `{"type":"message_end","message":{"role":"assistant","stopReason":"error","errorMessage":"500 status code (no body)"}}` + "\n" + `{"type":"agent_end"}`, result.Facts{}, result.ProviderDown, time.Time{}},
		{"qwen", "qwen-0.24.4", "", result.Facts{}, result.Done, time.Time{}},
	} {
		s := open(t, c.use)
		s.Feed(recorded(t, c.file))
		s.Feed([]byte("\n" + c.more + "\n"))
		s.Close()
		end, f := s.End(), c.facts
		f.Stream, f.Begun, f.Ended = true, s.Begun(), s.Ended()
		if s.Ended() {
			f.Failure = end.Failure
		}
		if end.Refusal != nil {
			f.Refusal = end.Refusal.Class
		}
		require.Equal(t, c.want, result.Of(f), c.file+" "+c.more)
		if end.Refusal != nil {
			require.Equal(t, c.until, end.Refusal.When(at), c.file)
		}
	}
}

func TestAProgramThatAsksInVainIsKnown(t *testing.T) {
	const init = `{"type":"system","subtype":"init"}` + "\n"
	for name, c := range map[string]struct {
		line     string
		hopeless bool
	}{
		"nobody knows who asks":    {`{"type":"system","subtype":"api_retry","error_status":401,"retry_delay_ms":507}`, true},
		"it comes back soon":       {`{"type":"system","subtype":"api_retry","error_status":429,"retry_delay_ms":2000}`, false},
		"it is to come back later": {`{"type":"system","subtype":"api_retry","error_status":429,"retry_delay_ms":60000}`, true},
		"its provider fails":       {`{"type":"system","subtype":"api_retry","error_status":500,"retry_delay_ms":507}`, false},
	} {
		s := open(t, "claude")
		s.Feed([]byte(init + c.line + "\n"))
		require.Equal(t, c.hopeless, s.Hopeless(), name)
	}
}

func TestAToolAtWorkIsKnown(t *testing.T) {
	for use, lines := range map[string][2]string{
		"claude": {`{"type":"assistant","message":{"id":"m","content":[{"type":"tool_use","id":"a","name":"Bash"}]}}`, `{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"a"}]}}`},
		"codex":  {`{"type":"item.started","item":{"id":"a","type":"command_execution"}}`, `{"type":"item.completed","item":{"id":"a","type":"command_execution"}}`},
		"gemini": {`{"type":"tool_use","tool_id":"a"}`, `{"type":"tool_result","tool_id":"a"}`},
		"pi":     {`{"type":"tool_execution_start","toolCallId":"a"}`, `{"type":"tool_execution_end","toolCallId":"a"}`},
		"qwen":   {`{"type":"assistant","message":{"id":"m","content":[{"type":"tool_use","id":"a","name":"edit"}]}}`, `{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"a"}]}}`},
	} {
		s := open(t, use)
		require.False(t, s.Busy(), use)
		s.Feed([]byte(lines[0] + "\n"))
		require.True(t, s.Busy(), use)
		s.Feed([]byte(lines[1] + "\n"))
		require.False(t, s.Busy(), use)
		s = open(t, use)
		for _, name := range map[string]string{"claude": "claude-2.1.330", "codex": "codex-0.169.0", "gemini": "gemini-0.61.0", "pi": "pi-0.73.1", "qwen": "qwen-0.24.4"} {
			if strings.HasPrefix(name, use) {
				s.Feed(recorded(t, name))
			}
		}
		require.False(t, s.Busy(), "%s has ended all its tools", use)
	}
}

// Codex says that it reconnects, again and again, and goes on by itself once it can.
func TestCodexThatWaitsForItsNetworkIsKnown(t *testing.T) {
	const down = `{"type":"error","message":"Reconnecting... waiting for network (Connection failed: error sending request)"}` + "\n"
	s := open(t, "codex")
	s.Feed([]byte(`{"type":"thread.started","thread_id":"t"}` + "\n" + down + down))
	require.True(t, s.Waiting())
	require.Equal(t, result.ProviderDown, s.End().Refusal.Class, "if it is ended now")

	s.Feed([]byte(`{"type":"item.completed","item":{"type":"agent_message","text":"here again"}}` + "\n"))
	require.False(t, s.Waiting())

	s.Feed([]byte(down + `{"type":"turn.failed","error":{"message":"the tests fail"}}` + "\n"))
	require.False(t, s.Waiting())
	require.Nil(t, s.End().Refusal)

	s = open(t, "codex")
	s.Feed([]byte(`{"type":"error","message":"tests failed: dial tcp 127.0.0.1:5432: connection refused"}` + "\n"))
	require.False(t, s.Waiting(), "that is no error of its provider")
}
