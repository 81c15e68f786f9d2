package stream_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"pawl/internal/agent/stream"
	"pawl/internal/task"
)

func TestARateLimitIsToldFromOtherFailures(t *testing.T) {
	end := time.Unix(1778565600, 0).UTC()
	const rejected = `{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1778565600,"rateLimitType":"five_hour"}}` + "\n"
	for name, c := range map[string]struct {
		use, out string
		want     *task.RateLimit
	}{
		"claude says when":               {"claude", rejected + `{"type":"result","subtype":"success","is_error":true,"result":"You've hit your limit"}`, &task.RateLimit{Until: end, Said: "rate limit five_hour"}},
		"claude goes on after a warning": {"claude", `{"type":"rate_limit_event","rate_limit_info":{"status":"allowed_warning","resetsAt":1778565600}}` + "\n" + `{"type":"result","subtype":"error_during_execution","is_error":true,"result":"it broke"}`, nil},
		"claude is let in again":         {"claude", rejected + `{"type":"rate_limit_event","rate_limit_info":{"status":"allowed"}}` + "\n" + `{"type":"result","subtype":"error_during_execution","is_error":true,"result":"it broke"}`, nil},
		"claude ends well":               {"claude", rejected + `{"type":"result","subtype":"success","result":"done"}`, nil},
		"an older claude":                {"claude", `{"type":"result","subtype":"success","is_error":true,"result":"Claude AI usage limit reached|1778565600"}`, &task.RateLimit{Until: end, Said: "Claude AI usage limit reached|1778565600"}},
		"codex does not say when":        {"codex", `{"type":"turn.failed","error":{"message":"You've hit your usage limit. Try again at 7:58 PM."}}`, &task.RateLimit{Said: "You've hit your usage limit. Try again at 7:58 PM."}},
		"codex says when":                {"codex", `{"type":"turn.failed","error":{"message":"usage limit: \"resets_at\":1778565600"}}`, &task.RateLimit{Until: end, Said: `usage limit: "resets_at":1778565600`}},
		"a model that speaks of limits":  {"codex", `{"type":"item.completed","item":{"type":"agent_message","text":"the rate limit was reached"}}` + "\n" + `{"type":"turn.failed","error":{"message":"stream disconnected"}}`, nil},
		"gemini":                         {"gemini", `{"type":"result","status":"error","error":{"message":"Quota exceeded for requests"}}`, &task.RateLimit{Said: "Quota exceeded for requests"}},
	} {
		adapter, ok := stream.Lookup(c.use)
		require.True(t, ok)
		s := adapter.Stream()
		s.Feed([]byte(c.out + "\n"))
		require.Equal(t, c.want, s.End().RateLimit, name)
	}
}
