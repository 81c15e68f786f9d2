package llmproxy_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"pawl/internal/exec/llmproxy"
	"pawl/internal/exec/usage"
)

const (
	placeholder = "placeholder-1"
	key         = "the-real-key"
)

// serve starts a meter in front of a provider, and returns the address for a program.
func serve(t *testing.T, provider http.Handler, change func(*llmproxy.Config)) (at string, m *llmproxy.Meter, file string) {
	t.Helper()
	upstream := httptest.NewServer(provider)
	t.Cleanup(upstream.Close)
	file = filepath.Join(t.TempDir(), "meter")
	c := llmproxy.Config{Upstream: upstream.URL + "/base/v1/", Keys: map[string]string{placeholder: key}, File: file, Prices: usage.Listed()}
	if change != nil {
		change(&c)
	}
	m, err := llmproxy.New(c)
	require.NoError(t, err)
	s := httptest.NewServer(m)
	t.Cleanup(s.Close)
	return s.URL, m, file
}

func noted(t *testing.T, file string) (all usage.Total) {
	t.Helper()
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, len(b), all.Read(b))
	return all
}

// ask sends a request as a program does.
func ask(t *testing.T, url string, headers ...string) (int, string) {
	t.Helper()
	r, err := http.NewRequest(http.MethodPost, url, strings.NewReader(`{"a":1}`))
	require.NoError(t, err)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	answer, err := http.DefaultTransport.RoundTrip(r)
	require.NoError(t, err)
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return answer.StatusCode, string(b)
}

// costs is a provider whose answers each have that many tokens.
func costs(in, out int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: {\"type\":\"message_start\",\"message\":{\"model\":\"claude-sonnet-4-5\",\"usage\":{\"input_tokens\":%d,\"output_tokens\":1}}}\n\n", in)
		fmt.Fprint(w, "data: {\"type\":\"content_block_start\",\"content_block\":{\"type\":\"tool_use\"}}\n\n")
		fmt.Fprintf(w, "data: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":%d}}\n\ndata: {\"type\":\"message_stop\"}\n\n", out)
	}
}

// A provider may answer before it has read the whole request. Its answer still arrives complete.
func TestAnAnswerThatComesBeforeTheRequestIsWholeComesWhole(t *testing.T) {
	begun, begin := context.WithCancel(t.Context())
	defer begin()
	at, _, _ := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := http.NewResponseController(w)
		_ = answer.EnableFullDuplex()
		_, _ = io.ReadFull(r.Body, make([]byte, 3))
		_, _ = io.WriteString(w, "first ")
		_ = answer.Flush()
		<-begun.Done()
		rest, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "last after %s", rest)
	}), nil)
	client, err := net.Dial("tcp", strings.TrimPrefix(at, "http://"))
	require.NoError(t, err)
	defer client.Close()
	require.NoError(t, client.SetDeadline(time.Now().Add(20*time.Second)))
	_, err = fmt.Fprintf(client, "POST /v1/messages HTTP/1.1\r\nHost: meter\r\nX-Api-Key: %s\r\nContent-Length: 6\r\n\r\none", placeholder)
	require.NoError(t, err)
	answer, err := http.ReadResponse(bufio.NewReader(client), nil)
	require.NoError(t, err)
	begin()
	_, err = io.WriteString(client, "two")
	require.NoError(t, err)
	b, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.Equal(t, "first last after two", string(b))
}

func TestE6_ARequestPassesUnchangedButForItsKey(t *testing.T) {
	for name, c := range map[string]struct{ path, header, value, want string }{
		"anthropic":         {"/v1/messages?beta=true", "X-Api-Key", placeholder, "X-Api-Key: " + key},
		"a bearer":          {"/responses", "Authorization", "Bearer " + placeholder, "Authorization: Bearer " + key},
		"gemini":            {"/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse", "X-Goog-Api-Key", placeholder, "X-Goog-Api-Key: " + key},
		"no model's work":   {"/models/a%2Fb/count_tokens?x=1;y", "Api-Key", placeholder, "Api-Key: " + key},
		"gemini in a query": {"/v1beta/models/m:generateContent?key=" + placeholder, "X-Other", "1", "X-Other: 1"},
	} {
		t.Run(name, func(t *testing.T) {
			var got *http.Request
			var body []byte
			at, m, file := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				got = r
				body, _ = io.ReadAll(r.Body)
				w.Header().Set("Request-Id", "7")
				w.WriteHeader(http.StatusTeapot)
				_, _ = io.WriteString(w, "short and stout")
			}), nil)
			status, said := ask(t, at+c.path, c.header, c.value, "Anthropic-Beta", "b")
			require.Equal(t, "418 short and stout", fmt.Sprint(status, " ", said))
			require.Equal(t, "/base/v1"+strings.ReplaceAll(c.path, placeholder, key), got.URL.RequestURI())
			name, _, _ := strings.Cut(c.want, ":")
			require.Equal(t, c.want, name+": "+got.Header.Get(name))
			require.Equal(t, "b", got.Header.Get("Anthropic-Beta"))
			require.Empty(t, got.Header.Get("X-Forwarded-For"))
			require.Equal(t, `{"a":1}`, string(body))
			require.NoError(t, m.End())
			b, err := os.ReadFile(file)
			require.NoError(t, err)
			require.NotContains(t, string(b), key)
			require.Zero(t, noted(t, file).Tokens(), "an error cost nothing")
		})
	}
}

func TestE6_WhoHasNoPlaceholderIsRefused(t *testing.T) {
	at, _, file := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was passed on") }), nil)
	for _, c := range []struct {
		want    int
		headers []string
	}{
		{http.StatusUnauthorized, []string{"X-Api-Key", "another"}},
		{http.StatusUnauthorized, []string{"Authorization", "Basic " + placeholder}},
		{http.StatusUpgradeRequired, []string{"X-Api-Key", placeholder, "Connection", "Upgrade", "Upgrade", "websocket"}},
	} {
		status, _ := ask(t, at+"/v1/messages", c.headers...)
		require.Equal(t, c.want, status, c.headers)
	}
	require.Zero(t, noted(t, file))
}

// An agent asks for everything else that a provider offers to the owner of the key.
func TestE6_TheUsersKeyIsForModelsAlone(t *testing.T) {
	passed := ""
	at, _, file := serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { passed = r.Method + " " + r.URL.Path }), nil)
	try := func(line string) int {
		method, path, _ := strings.Cut(line, " ")
		passed = ""
		r, err := http.NewRequest(method, at+path, strings.NewReader("{}"))
		require.NoError(t, err)
		r.Header.Set("X-Api-Key", placeholder)
		answer, err := http.DefaultTransport.RoundTrip(r)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		return answer.StatusCode
	}
	for _, line := range []string{
		"POST /v1/messages/batches", "POST /v1/complete", "POST /v1/images/generations", "POST /v1/audio/speech", "POST /v1/videos", "POST /v1/embeddings",
		"POST /v1/realtime/client_secrets", "POST /v1/realtime/sessions", "POST /v1/threads/runs", "POST /v1/threads/thread_1/messages", "POST /v1/fine_tuning/jobs", "POST /v1/batches",
		"POST /v1beta/models/imagen-4:predict", "POST /v1beta/models/veo-3:predictLongRunning", "POST /v1beta/models/g:batchGenerateContent", "POST /v1beta/cachedContents",
		"GET /v1/files", "GET /v1/files/file-1/content", "GET /v1/responses/resp_1", "GET /v1/organizations/api_keys", "GET /v1beta/files", "GET /credits",
		"DELETE /v1/models/ft:mine", "PATCH /v1beta/tunedModels/mine", "GET /v1/models/../files", "GET /v1/models/..%2Ffiles", "GET /v1/models/%2e%2e/files", "POST /v1/messages/",
	} {
		require.Equal(t, http.StatusNotFound, try(line), line)
		require.Empty(t, passed, line)
	}
	for _, line := range []string{
		"GET /v1/models", "HEAD /v1/models", "GET /v1/models/claude-x", "GET /models/a/b/endpoints", "GET /v1beta/models/g", "POST /v1/messages/count_tokens",
		"POST /v1/responses/input_tokens", "POST /v1beta/models/g:countTokens",
	} {
		require.Equal(t, http.StatusOK, try(line), line)
		require.NotEmpty(t, passed, line)
	}
	require.Zero(t, noted(t, file))
}

// TestE6_WorkThatGoesOnAfterTheAnswerIsNotBegun: nobody would see what it costs.
func TestE6_WorkThatGoesOnAfterTheAnswerIsNotBegun(t *testing.T) {
	var sent []string
	at, _, file := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		sent = append(sent, string(b))
		_, _ = io.WriteString(w, `{"model": "gpt-5", "usage": {"input_tokens": 7, "output_tokens": 1}}`)
	}), nil)
	for body, status := range map[string]int{
		`{"model":"gpt-5","background":true}`:                           http.StatusBadRequest,
		`{"background":true,"model":"gpt-5","background":false}`:        http.StatusBadRequest,
		`{"back\u0067round":1}`:                                         http.StatusBadRequest,
		`{"Background":"yes"}`:                                          http.StatusBadRequest,
		`["background"]`:                                                http.StatusBadRequest,
		`{"background":false,"input":[{"background":true}]}`:            http.StatusOK,
		`{"model":"gpt-5","background":null,"metadata":{"a":1e999999}}`: http.StatusBadRequest, // what the meter can't read
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, at+"/v1/responses", strings.NewReader(body))
		require.NoError(t, err)
		r.Header.Set("Authorization", "Bearer "+placeholder)
		answer, err := http.DefaultTransport.RoundTrip(r)
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, answer.Body)
		require.NoError(t, errors.Join(err, answer.Body.Close()))
		require.Equal(t, status, answer.StatusCode, body)
	}
	status, _ := ask(t, at+"/v1/responses", "Authorization", "Bearer "+placeholder, "Content-Encoding", "zstd")
	require.Equal(t, http.StatusUnsupportedMediaType, status)
	require.Equal(t, []string{`{"background":false,"input":[{"background":true}]}`}, sent, "unchanged")
	require.Equal(t, int64(8), noted(t, file).Tokens())
}

func TestTheReasonOfARefusalIsKnownWhereTheProgramHangsUpAtTheStatus(t *testing.T) {
	hungUp := make(chan struct{})
	at, m, file := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusTooManyRequests)
		for range 2000 { // long enough for a program that sees the status
			_, _ = io.WriteString(w, " ")
			w.(http.Flusher).Flush()
			select {
			case <-hungUp:
				<-r.Context().Done()
			default:
			}
		}
		_, _ = io.WriteString(w, `{"error":{"type":"rate_limit_error","message":"Slow down."}}`)
	}), nil)
	r, err := http.NewRequest(http.MethodPost, at+"/chat/completions", strings.NewReader(`{}`))
	require.NoError(t, err)
	r.Header.Set("X-Api-Key", placeholder)
	answer, err := http.DefaultTransport.RoundTrip(r)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	close(hungUp)
	require.NoError(t, m.End())
	require.Equal(t, "rate_limit_error: Slow down.", noted(t, file).Failing.Error)
}

func TestA2_AUsedUpBudgetIsToldAsTheProvidersOwn(t *testing.T) {
	for path, want := range map[string]string{
		"/v1/messages":                     `402 {"error":{"message":"The budget that pawl keeps for this agent is used up (tokens).","type":"billing_error"},"type":"error"}`,
		"/responses":                       `429 {"error":{"code":"insufficient_quota","message":"The budget that pawl keeps for this agent is used up (tokens).","param":null,"type":"insufficient_quota"}}`,
		"/chat/completions":                `429 {"error":{"code":"insufficient_quota","message":"The budget that pawl keeps for this agent is used up (tokens).","param":null,"type":"insufficient_quota"}}`,
		"/v1beta/models/g:generateContent": `400 {"error":{"code":400,"message":"The budget that pawl keeps for this agent is used up (tokens).","status":"FAILED_PRECONDITION"}}`,
	} {
		t.Run(path, func(t *testing.T) {
			sent := 0
			at, m, file := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { sent++; costs(100, 10)(w, r) }),
				func(c *llmproxy.Config) { c.Budget.Tokens = llmproxy.Limit{Set: true, At: 220} })
			for range 2 {
				status, _ := ask(t, at+path, "X-Api-Key", placeholder)
				require.Equal(t, http.StatusOK, status)
			}
			status, said := ask(t, at+path, "X-Api-Key", placeholder)
			require.Equal(t, want, fmt.Sprint(status, " ", said))
			require.Equal(t, 2, sent, "no request past the budget is sent")
			require.NoError(t, m.End())
			got := noted(t, file)
			require.Equal(t, usage.Total{Calls: 2, Input: 200, Output: 20, Tools: 2, Nano: 2 * (100*3000 + 10*15000), Refused: "tokens", Worked: true}, got)
		})
	}
}

// Budgets that the first two answers have used up, or exceeded.
func TestA2_EachBudgetCounts(t *testing.T) {
	for name, b := range map[string]llmproxy.Budget{
		"costUSD":   {Nano: llmproxy.Limit{Set: true, At: 900000}},
		"toolCalls": {Tools: llmproxy.Limit{Set: true, At: 1}},
	} {
		at, _, file := serve(t, costs(100, 10), func(c *llmproxy.Config) { c.Budget = b })
		for want := range strings.FieldsSeq("200 200 402") {
			status, _ := ask(t, at+"/v1/messages", "X-Api-Key", placeholder)
			require.Equal(t, want, fmt.Sprint(status), name)
		}
		require.Equal(t, name, noted(t, file).Refused)
	}
}

// The file of an attempt whose machine lost power in the middle of a line.
func TestA2_WhatWasCountedBeforeCounts(t *testing.T) {
	before := string(usage.Call{Usage: usage.Usage{Input: 150}, Status: 200}.Line()) + string(usage.Call{Refused: "tokens"}.Line()) + `{"input":9`
	at, m, file := serve(t, costs(100, 10), func(c *llmproxy.Config) {
		c.Budget.Tokens = llmproxy.Limit{Set: true, At: 200}
		require.NoError(t, os.WriteFile(c.File, []byte(before), 0o600))
	})
	for want := range strings.FieldsSeq("200 402") {
		status, _ := ask(t, at+"/v1/messages", "X-Api-Key", placeholder)
		require.Equal(t, want, fmt.Sprint(status))
	}
	require.NoError(t, m.End())
	require.Equal(t, int64(260), noted(t, file).Tokens())
}

// Many agents ask at the same moment, near the end of a budget. The provider answers only when all sent requests have
// arrived.
func TestA2_AgentsAtOnceExceedABudgetByOneRequest(t *testing.T) {
	for name, b := range map[string]llmproxy.Budget{
		"tokens":  {Tokens: llmproxy.Limit{Set: true, At: 1000}},
		"dollars": {Nano: llmproxy.Limit{Set: true, At: 4_100_000}},
	} {
		at, m, file := serve(t, costs(100, 10), func(c *llmproxy.Config) { c.Budget = b })
		status, _ := ask(t, at+"/v1/messages", "X-Api-Key", placeholder) // from here on, the size of a request is known
		require.Equal(t, http.StatusOK, status)
		var all sync.WaitGroup
		for range 40 {
			all.Go(func() { ask(t, at+"/v1/messages", "X-Api-Key", placeholder) })
		}
		all.Wait()
		require.NoError(t, m.End())
		require.Equal(t, int64(1100), noted(t, file).Tokens(), "ten requests: the tenth begins before the budget is used up (%s)", name)
	}
}

// An agent's program asks again before the last answer has ended.
func TestWhatAnAnswerHasReportedCountsAtOnce(t *testing.T) {
	for name, b := range map[string]llmproxy.Budget{
		"tokens":  {Tokens: llmproxy.Limit{Set: true, At: 100}},
		"costUSD": {Nano: llmproxy.Limit{Set: true, At: 300_000}},
	} {
		reported := make(chan struct{})
		at, m, file := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			costs(100, 10)(w, r)
			w.(http.Flusher).Flush()
			close(reported) // and a second request would panic here
			<-r.Context().Done()
		}), func(c *llmproxy.Config) { c.Budget = b })
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, at+"/v1/messages", strings.NewReader("{}"))
		require.NoError(t, err)
		r.Header.Set("X-Api-Key", placeholder)
		answer, err := http.DefaultTransport.RoundTrip(r)
		require.NoError(t, err)
		<-reported
		_, err = io.ReadAtLeast(answer.Body, make([]byte, 1000), 200) // the program has seen it
		require.NoError(t, err)
		status, _ := ask(t, at+"/v1/messages", "X-Api-Key", placeholder)
		require.Equal(t, http.StatusPaymentRequired, status)
		require.NoError(t, m.End())
		require.Equal(t, name, noted(t, file).Refused)
	}
}

// Providers for tests and proxies often report no usage.
func TestAnAnswerWithoutItsUsageCountsByItsLength(t *testing.T) {
	at, m, file := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, strings.Repeat("y", 2000))
	}), nil)
	r, err := http.NewRequest(http.MethodPost, at+"/v1/messages", io.MultiReader(strings.NewReader(strings.Repeat("x", 4000)))) // of unknown length
	require.NoError(t, err)
	r.Header.Set("X-Api-Key", placeholder)
	answer, err := http.DefaultTransport.RoundTrip(r)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.NoError(t, m.End())
	got := noted(t, file)
	require.Equal(t, []int64{1, usage.Guess(4000), usage.Guess(2000)}, []int64{got.Guessed, got.Input, got.Output})
}

func TestA2_WhatAProgramDidNotWaitForCounts(t *testing.T) {
	halfway := make(chan struct{})
	at, m, file := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "data: {\"type\":\"message_start\",\"message\":{\"model\":\"m\",\"usage\":{\"input_tokens\":1200,\"output_tokens\":1}}}\n\n")
		w.(http.Flusher).Flush()
		close(halfway)
		<-r.Context().Done()
	}), nil)
	ctx, kill := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, at+"/v1/messages", strings.NewReader("{}"))
	require.NoError(t, err)
	r.Header.Set("X-Api-Key", placeholder)
	answer, err := http.DefaultTransport.RoundTrip(r)
	require.NoError(t, err)
	_, err = answer.Body.Read(make([]byte, 10))
	require.NoError(t, err)
	<-halfway
	kill()
	require.NoError(t, m.End(), "it waits until everything is noted")
	require.Equal(t, usage.Total{Calls: 1, Input: 1200, Output: 1, Unknown: []string{"m"}, Worked: true}, noted(t, file))
	status, _ := ask(t, at+"/v1/messages", "X-Api-Key", placeholder)
	require.Equal(t, http.StatusServiceUnavailable, status)
}

func TestA2_CompressedAnswersCount(t *testing.T) {
	text := `{"type":"message","model":"m","usage":{"input_tokens":7,"output_tokens":3}}`
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = io.WriteString(z, text)
	require.NoError(t, z.Close())
	at, m, file := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept-Encoding") != "gzip" {
			t.Error("it was asked for what can't be read: " + r.Header.Get("Accept-Encoding"))
		}
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(packed.Bytes())
	}), nil)
	status, got := ask(t, at+"/v1/messages", "X-Api-Key", placeholder, "Accept-Encoding", "gzip, br, zstd")
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, packed.String(), got, "it is passed on as it came")
	require.NoError(t, m.End())
	require.Equal(t, int64(10), noted(t, file).Tokens())
}

func TestAProviderThatCantBeReached(t *testing.T) {
	at, _, file := serve(t, nil, func(c *llmproxy.Config) { c.Upstream = "http://127.0.0.1:1" })
	status, said := ask(t, at+"/v1/messages", "X-Api-Key", placeholder)
	require.Equal(t, http.StatusBadGateway, status)
	require.Contains(t, said, "pawl's meter could not reach the provider")
	require.Zero(t, noted(t, file).Tokens())
	for _, bad := range []string{"", "api.example.org", "ftp://x", "https://"} {
		_, err := llmproxy.New(llmproxy.Config{Upstream: bad, File: filepath.Join(t.TempDir(), "f")})
		require.ErrorContains(t, err, "base URL", bad)
	}
}

// Only the proxy knows the name of the provider.
func TestE6_TheMeterGoesThroughTheProxyOfThisHost(t *testing.T) {
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.RequestURI != "http://model.example/v1/messages" {
			t.Error("asked for " + r.RequestURI)
		}
		costs(100, 10)(w, r)
	}))
	defer proxy.Close()
	at, m, file := serve(t, nil, func(c *llmproxy.Config) { c.Upstream, c.Proxy = "http://model.example", proxy.URL })
	status, _ := ask(t, at+"/v1/messages", "X-Api-Key", placeholder)
	require.Equal(t, http.StatusOK, status)
	require.NoError(t, m.End())
	require.Equal(t, int64(110), noted(t, file).Tokens())
}
