package usage_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/exec/usage"
)

// answers are answers of providers, shortened to what is read and its surroundings.
var answers = map[string]struct {
	stream bool
	text   string
	want   usage.Answer
}{
	"anthropic, a stream with cached tokens, two tools and thinking": {true, `event: message_start
data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-4-5-20250929","content":[],"usage":{"input_tokens":12,"cache_creation_input_tokens":300,"cache_read_input_tokens":1000,"cache_creation":{"ephemeral_5m_input_tokens":300},"output_tokens":1,"service_tier":"standard"}}}

event: ping
data: {"type": "ping"}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}

event: content_block_start
data: {"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"toolu_1","name":"Bash","input":{}}}

event: content_block_delta
data: {"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"type\":\"tool_use\"}"}}

event: content_block_start
data: {"type":"content_block_start","index":2,"content_block":{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":420}}

event: message_stop
data: {"type":"message_stop"}

`, usage.Answer{Model: "claude-sonnet-4-5-20250929", Usage: usage.Usage{Input: 1312, Cached: 1000, CacheWrite: 300, Output: 420}, Tools: 2, Told: true}},
	"anthropic, a stream that was cut": {true, `data: {"type":"message_start","message":{"model":"m","usage":{"input_tokens":1200,"output_tokens":1}}}

data: {"type":"content_block_st`, usage.Answer{Model: "m", Usage: usage.Usage{Input: 1200, Output: 1}, Told: true}},
	"anthropic, whole": {false, `{"id":"msg_1","type":"message","model":"m","content":[{"type":"text","text":"a"},{"type":"tool_use","id":"t","name":"Bash","input":{"type":"tool_use"}}],
		"usage":{"input_tokens":200,"cache_creation_input_tokens":0,"cache_read_input_tokens":1000,"output_tokens":100}}`,
		usage.Answer{Model: "m", Usage: usage.Usage{Input: 1200, Cached: 1000, Output: 100}, Tools: 1, Told: true}},
	"anthropic, tokens counted beforehand cost nothing": {false, `{"input_tokens":1000}`, usage.Answer{}},
	"an error": {false, `{"type":"error","error":{"type":"rate_limit_error","message":"no"}}`, usage.Answer{}},
	"responses, a stream": {true, `event: response.created
data: {"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","model":"gpt-5-codex","status":"in_progress","output":[],"usage":null}}

data: {"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":"rs_1"}}

data: {"type":"response.output_item.done","output_index":1,"item":{"type":"function_call","id":"fc_1","name":"exec_command","arguments":"{}"}}

data: {"type":"response.output_item.done","output_index":2,"item":{"type":"custom_tool_call","id":"ctc_1","name":"apply_patch","input":""}}

data: {"type":"response.completed","response":{"id":"resp_1","model":"gpt-5-codex","status":"completed","output":[{"type":"reasoning"},{"type":"function_call"},{"type":"custom_tool_call"}],"usage":{"input_tokens":1200,"input_tokens_details":{"cached_tokens":1000},"output_tokens":100,"output_tokens_details":{"reasoning_tokens":20},"total_tokens":1300}}}

`, usage.Answer{Model: "gpt-5-codex", Usage: usage.Usage{Input: 1200, Cached: 1000, Output: 100}, Tools: 2, Told: true}},
	"responses, a stream whose end lists nothing": {true, "data: {\"type\":\"response.output_item.done\",\"item\":{\"type\":\"function_call\"}}\r\n\r\n" +
		"data: {\"type\":\"response.completed\",\"response\":{\"model\":\"m\",\"output\":[],\"usage\":{\"input_tokens\":5,\"input_tokens_details\":{\"cached_tokens\":0},\"output_tokens\":7}}}\r\n\r\n",
		usage.Answer{Model: "m", Usage: usage.Usage{Input: 5, Output: 7}, Tools: 1, Told: true}},
	"responses, whole": {false, `{"object":"response","model":"m","output":[{"type":"message"},{"type":"local_shell_call"},{"type":"web_search_call"}],"usage":{"input_tokens":10,"input_tokens_details":{"cached_tokens":4,"cache_write_tokens":2},"output_tokens":3}}`,
		usage.Answer{Model: "m", Usage: usage.Usage{Input: 10, Cached: 4, CacheWrite: 2, Output: 3}, Tools: 2, Told: true}},
	"chat, a stream with the usage in the last chunk": {true, `data: {"object":"chat.completion.chunk","model":"gpt-4.1","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"a","arguments":""}}]}}],"usage":null}

data: {"object":"chat.completion.chunk","model":"gpt-4.1","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]}}],"usage":null}

data: {"object":"chat.completion.chunk","model":"gpt-4.1","choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"id":"call_2","type":"function","function":{"name":"b","arguments":""}}]},"finish_reason":"tool_calls"}]}

data: {"object":"chat.completion.chunk","model":"gpt-4.1","choices":[],"usage":{"prompt_tokens":1200,"completion_tokens":100,"total_tokens":1300,"prompt_tokens_details":{"cached_tokens":1000},"completion_tokens_details":{"reasoning_tokens":20}}}

data: [DONE]

`, usage.Answer{Model: "gpt-4.1", Usage: usage.Usage{Input: 1200, Cached: 1000, Output: 100}, Tools: 2, Told: true}},
	"chat, a stream that tells no usage": {true, "data: {\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hi\"}}]}\n\ndata: [DONE]\n\n", usage.Answer{Model: "m"}},
	"chat, whole, where no tool has an index": {false, `{"object":"chat.completion","model":"m","choices":[{"index":0,"message":{"content":null,"tool_calls":[{"id":"a","type":"function"},{"id":"b","type":"function"}]}}],"usage":{"prompt_tokens":7,"completion_tokens":3}}`,
		usage.Answer{Model: "m", Usage: usage.Usage{Input: 7, Output: 3}, Tools: 2, Told: true}},
	"gemini, a stream whose chunks each tell more": {true, `data: {"candidates":[{"content":{"role":"model","parts":[{"text":"a","thought":true}]},"index":0}],"usageMetadata":{"promptTokenCount":1200,"cachedContentTokenCount":1000,"totalTokenCount":1210,"thoughtsTokenCount":10},"modelVersion":"gemini-2.5-pro"}

data: {"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"name":"read_file","args":{}}},{"functionCall":{"name":"replace","args":{}}}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1200,"cachedContentTokenCount":1000,"candidatesTokenCount":80,"thoughtsTokenCount":20,"totalTokenCount":1300},"modelVersion":"gemini-2.5-pro"}

`, usage.Answer{Model: "gemini-2.5-pro", Usage: usage.Usage{Input: 1200, Cached: 1000, Output: 100}, Tools: 2, Told: true}},
	"gemini, a list": {false, `[{"candidates":[],"usageMetadata":{"promptTokenCount":5,"totalTokenCount":5}},
		{"candidates":[{"content":{"parts":[{"functionCall":{"name":"a"}}]}}],"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":2,"totalTokenCount":7},"modelVersion":"g"}]`,
		usage.Answer{Model: "g", Usage: usage.Usage{Input: 5, Output: 2}, Tools: 1, Told: true}},
	"nonsense numbers":    {false, `{"type":"message","model":"m","usage":{"input_tokens":-5,"output_tokens":99999999999999}}`, usage.Answer{Model: "m", Usage: usage.Usage{Output: 1e12}, Told: true}},
	"another type inside": {false, `{"type":"message","model":"m","content":"text","choices":"none","usage":{"input_tokens":5,"output_tokens":2}}`, usage.Answer{Model: "m", Usage: usage.Usage{Input: 5, Output: 2}, Told: true}},
	"garbage":             {true, "data: {not json\n\n\x00\xff\xfe\n\ndata: 7\n\ndata:\n\n", usage.Answer{}},
	"no answer":           {false, "", usage.Answer{}},
}

func TestA2_WhatAnswersUsed(t *testing.T) {
	for name, c := range answers {
		t.Run(name, func(t *testing.T) {
			for _, size := range []int{len(c.text) + 1, 1, 7} {
				counter := usage.Counter{Stream: c.stream}
				for rest := []byte(c.text); len(rest) > 0; {
					n, err := counter.Write(rest[:min(size, len(rest))])
					require.NoError(t, err)
					rest = rest[n:]
				}
				got := counter.Close()
				require.Equal(t, int64(len(c.text)), got.Bytes)
				got.Bytes = 0
				c.want.Whole = name != "anthropic, a stream that was cut" && name != "garbage" && name != "no answer"
				require.Equal(t, c.want, got)
			}
		})
	}
}

// One event is longer than what is kept in memory.
func TestA2_AnEventThatIsTooLongHidesNoOther(t *testing.T) {
	counter := usage.Counter{Stream: true}
	piece := []byte(strings.Repeat("x", 1<<20))
	_, _ = counter.Write([]byte(`data: {"text":"`))
	for range 40 {
		_, _ = counter.Write(piece)
	}
	_, _ = counter.Write([]byte("\"}\n\ndata: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":9}}\n\n"))
	require.Equal(t, int64(9), counter.Close().Usage.Output)
}

func TestE2_WhatAnAnswerCosts(t *testing.T) {
	listed := usage.Listed()
	for name, c := range map[string]struct {
		prices usage.Prices
		model  string
		used   usage.Usage
		nano   int64
		ok     bool
	}{
		"fresh, cached, written and out": {listed, "claude-sonnet-4-5-20250929", usage.Usage{Input: 1600, Cached: 1000, CacheWrite: 400, Output: 100}, 200*3000 + 1000*300 + 400*3750 + 100*15000, true},
		"the longest name counts":        {listed, "claude-opus-4-1-20250805", usage.Usage{Input: 1}, 15000, true},
		"a later version":                {listed, "claude-opus-5-5", usage.Usage{Input: 1}, 4000, true},
		"a version that is not listed":   {listed, "gpt-5.99", usage.Usage{Input: 1}, 0, false},
		"one with hyphens":               {listed, "claude-opus-5-7", usage.Usage{Input: 1}, 0, false},
		"a larger number":                {listed, "gpt-50", usage.Usage{Input: 1}, 0, false},
		"a family of one's own":          {usage.Prices{{Model: "claude-opus", Input: 1}}, "claude-opus-5-7", usage.Usage{Input: 1}, 1000, true},
		"a variant":                      {listed, "openai/gpt-5-codex", usage.Usage{Input: 1}, 1250, true},
		"a smaller one":                  {listed, "gpt-5-mini-2025-08-07", usage.Usage{Output: 1}, 2000, true},
		"a short request":                {listed, "gemini-2.5-pro", usage.Usage{Input: 200000}, 200000 * 1250, true},
		"a long one":                     {listed, "gemini-2.5-pro", usage.Usage{Input: 200001}, 200001 * 2500, true},
		"a long one, written to a cache": {listed, "gpt-5.6", usage.Usage{Input: 272001, CacheWrite: 272001}, 272001 * 10000, true},
		"unknown":                        {listed, "m1", usage.Usage{Input: 1}, 0, false},
		"without a name":                 {listed, "", usage.Usage{Input: 1}, 0, false},
		"one's own wins":                 {append(usage.Prices{{Model: "claude-sonnet-4-5", Input: 1}}, listed...), "claude-sonnet-4-5", usage.Usage{Input: 2}, 2000, true},
	} {
		t.Run(name, func(t *testing.T) {
			nano, ok := c.prices.Nano(c.model, c.used)
			require.Equal(t, c.ok, ok)
			require.Equal(t, c.nano, nano)
		})
	}
	for text, want := range map[string]string{
		`{}`: "no list of prices", `[{"input":1}]`: "entry 1 has no model", `[{"model":"a","input":-1}]`: "entry 1 (a) has a price that is not between", `[{"model":"a","over":{"output":2e6}}]`: "not between",
	} {
		_, err := usage.ParsePrices([]byte(text))
		require.ErrorContains(t, err, want)
	}
}

func TestA2_WhatCallsAddUpTo(t *testing.T) {
	told := usage.CallOf(usage.Answer{Model: "claude-haiku-4-5", Usage: usage.Usage{Input: 100, Output: 10}, Tools: 2, Told: true, Whole: true}, 200, 400, usage.Listed())
	silent := usage.CallOf(usage.Answer{Model: "m", Bytes: 40, Whole: true}, 200, 401, usage.Listed())
	failed := usage.CallOf(usage.Answer{Bytes: 40}, 500, 400, usage.Listed())
	require.Equal(t, usage.Call{Model: "m", Status: 200, Usage: usage.Usage{Input: 101, Output: 10}, Guessed: true}, silent, "what nobody tells is no gift")
	require.Equal(t, usage.Call{Status: 500}, failed, "what failed cost nothing")
	var text []byte
	for _, c := range []usage.Call{told, silent, failed} {
		text = append(text, c.Line()...)
	}
	half := told.Line()[:10]
	text = append(append(append(text, half...), '\n'), usage.Call{Refused: "tokens"}.Line()...)
	var all usage.Total
	n := all.Read(append(text, half...))
	require.Equal(t, len(text), n, "a line that has not ended is read later")
	require.Equal(t, usage.Total{Calls: 3, Input: 201, Output: 20, Tools: 2, Nano: 150000, Guessed: 1, Refused: "tokens", Unknown: []string{"m"}, Worked: true, Failing: &failed}, all)
	require.Equal(t, int64(221), all.Tokens())
}
