package agents_test

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	neturl "net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// model is a model server: it serves the Messages API on loopback and answers what a script says. Each answer costs
// 1200 input and 80 output tokens.
type model struct {
	t      *testing.T
	url    string
	script func(request) answer

	mu      sync.Mutex
	asks    []request
	keys    []string // the keys of its callers, each once
	answers int      // complete answers
}

// request is a request of the program: the result of the last tool, how many tools it has called, and which tools it
// has.
type request struct {
	Turn   int
	Result string // the result of the last tool call
	Prompt string
	Tools  []string
	gone   <-chan struct{} // closed when the program has hung up
}

func (r request) has(tool string) bool {
	for _, name := range r.Tools {
		if name == tool {
			return true
		}
	}
	return false
}

// answer is a text, a tool call with its input, or an error's HTTP status and text.
type answer struct {
	text, tool string
	input      doc
	status     int
}

func say(text string) answer { return answer{text: text} }

func bash(command string) answer {
	return answer{tool: "Bash", input: doc{"command": command, "description": "work"}}
}

// hang is a model that does not answer until the program has given up or was ended.
func hang(t *testing.T, r request) answer {
	begun := time.Now()
	<-r.gone
	t.Logf("ended %s after the budget was crossed", time.Since(begun).Round(10*time.Millisecond))
	return say("nobody hears this")
}

func newModel(t *testing.T, script func(request) answer) *model {
	m := &model{t: t, script: script}
	server := httptest.NewServer(m)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	m.url = server.URL
	return m
}

// proxy is a proxy like that of a company. The programs of these tests reach named servers through it. It knows no
// other host.
var proxy struct {
	url   string
	hosts sync.Map // the address on the loopback, by name
	names atomic.Int32
}

// named gives a server on the loopback a name under which programs reach it through the proxy.
func named(url string) (host string) {
	host = fmt.Sprintf("model%d.example", proxy.names.Add(1))
	proxy.hosts.Store(host, strings.TrimPrefix(url, "http://"))
	return host
}

// startProxy starts the proxy, and makes all programs of these tests use it.
func startProxy() (stop func()) {
	to := func(host string) string {
		at, known := proxy.hosts.Load(strings.TrimSuffix(host, ":80"))
		if !known {
			return ""
		}
		return at.(string)
	}
	forward := &httputil.ReverseProxy{FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0), Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(&neturl.URL{Scheme: "http", Host: to(r.In.URL.Host)})
	}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		at := to(r.URL.Host)
		if at != "" && r.Method != http.MethodConnect {
			_ = http.NewResponseController(w).EnableFullDuplex() // else an early answer is cut off
			forward.ServeHTTP(w, r)
			return
		}
		if at = to(r.Host); r.Method != http.MethodConnect || at == "" {
			http.Error(w, "no such host", http.StatusBadGateway)
			return
		}
		there, err := net.Dial("tcp", at)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		here, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			there.Close()
			return
		}
		fmt.Fprint(here, "HTTP/1.1 200 OK\r\n\r\n")
		go func() {
			defer there.Close()
			_, _ = io.Copy(there, here)
		}()
		go func() {
			defer here.Close()
			_, _ = io.Copy(here, there)
		}()
	}))
	proxy.url = server.URL
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"} {
		_ = os.Setenv(name, server.URL)
	}
	for _, name := range []string{"NO_PROXY", "no_proxy"} {
		_ = os.Unsetenv(name)
	}
	return server.Close
}

// asked returns the requests so far, without the program's requests for its own purposes.
func (m *model) asked() []request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]request(nil), m.asks...)
}

func (m *model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !strings.HasSuffix(r.URL.Path, "/messages") {
		http.NotFound(w, r)
		return
	}
	var body struct {
		Model    string
		Stream   bool
		Tools    []struct{ Name string }
		Messages []struct {
			Role    string
			Content json.RawMessage
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	ask := request{gone: r.Context().Done()}
	for _, tool := range body.Tools {
		ask.Tools = append(ask.Tools, tool.Name)
	}
	for _, message := range body.Messages {
		var parts []struct {
			Type, Text string
			Content    json.RawMessage
		}
		var text string
		if json.Unmarshal(message.Content, &text) == nil {
			ask.Prompt += text
		}
		_ = json.Unmarshal(message.Content, &parts)
		for _, part := range parts {
			switch part.Type {
			case "text":
				if message.Role == "user" {
					ask.Prompt += part.Text
				}
			case "tool_result":
				ask.Turn++
				ask.Result = string(part.Content)
				_ = json.Unmarshal(part.Content, &ask.Result)
			}
		}
	}
	said := say("a title")
	n := 0
	m.mu.Lock()
	if key := r.Header.Get("X-Api-Key"); !slices.Contains(m.keys, key) {
		m.keys = append(m.keys, key)
	}
	m.mu.Unlock()
	if len(ask.Tools) > 0 {
		m.mu.Lock()
		m.asks = append(m.asks, ask)
		n = len(m.asks)
		m.mu.Unlock()
		said = m.script(ask)
	}
	switch {
	case r.Context().Err() != nil:
	case said.status != 0:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(said.status)
		b, _ := json.Marshal(doc{"type": "error", "error": doc{"type": "invalid_request_error", "message": said.text}})
		_, _ = w.Write(b)
	default:
		m.reply(w, body.Model, n, said)
	}
}

func (m *model) reply(w http.ResponseWriter, model string, n int, said answer) {
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(kind string, event doc) {
		event["type"] = kind
		b, _ := json.Marshal(event)
		fmt.Fprintf(w, "event: %s\ndata: %s\n\n", kind, b)
		w.(http.Flusher).Flush()
	}
	send("message_start", doc{"message": doc{
		"id": fmt.Sprintf("msg_%06d", n), "type": "message", "role": "assistant", "model": model, "content": []any{}, "stop_reason": nil, "stop_sequence": nil,
		"usage": doc{"input_tokens": 1200, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 1},
	}})
	block, delta, stop := doc{"type": "text", "text": ""}, doc{"type": "text_delta", "text": said.text}, "end_turn"
	if said.tool != "" {
		input, _ := json.Marshal(said.input)
		block = doc{"type": "tool_use", "id": fmt.Sprintf("toolu_%06d", n), "name": said.tool, "input": doc{}}
		delta, stop = doc{"type": "input_json_delta", "partial_json": string(input)}, "tool_use"
	}
	send("content_block_start", doc{"index": 0, "content_block": block})
	send("content_block_delta", doc{"index": 0, "delta": delta})
	send("content_block_stop", doc{"index": 0})
	send("message_delta", doc{"delta": doc{"stop_reason": stop, "stop_sequence": nil}, "usage": doc{"output_tokens": 80}})
	m.mu.Lock()
	m.answers++
	m.mu.Unlock()
	send("message_stop", doc{})
}

// counted returns how many tokens the model has answered with, and the keys of its callers.
func (m *model) counted() (tokens int, keys []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.answers * 1280, slices.Clone(m.keys)
}
