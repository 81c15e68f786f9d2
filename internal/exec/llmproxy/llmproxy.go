// Package llmproxy is the endpoint at which an agent program speaks to its model. It passes each request for a model on
// to the provider unchanged, with the key that the program does not have, and records what each answer cost. Once a
// budget is used up, it answers with the provider's own error for a limit. So it counts every agent that the program
// starts, and sends no request past a budget. It stores and logs no text of requests and answers, and no keys.
// internal/exec/usage reads what answers cost, internal/spec/agents decides which program uses the meter and how, and
// internal/exec/supervisor listens for it.
//
// Start at Meter.ServeHTTP. budget.go decides which requests pass, refusal.go how a limit is reported.
package llmproxy

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http/httpproxy"
	"golang.org/x/time/rate"

	"pawl/internal/exec/egress"
	"pawl/internal/exec/usage"
	"pawl/internal/lib/fsutil/dirfd"
)

// Address is a placeholder in a program's environment and arguments. internal/exec/supervisor replaces it by the host and port
// of the meter.
const Address = "address-of-pawls-meter.invalid"

// Config is the meter of one agent call. It is plain data, for gob.
type Config struct {
	Upstream string // the provider's base URL, to which the path of a request is added
	// Keys are the provider's keys by the placeholders that the program has instead. A request without a placeholder
	// is refused.
	Keys map[string]string
	// Budget is what this call may use, including what File has already.
	Budget Budget
	Prices usage.Prices
	// File gets one line when a request is sent and one when its answer ends. Its earlier lines count. While an
	// answer comes, the file's modification time is updated every second.
	File string
	// Files are files, by their paths, that tell the program where the meter is. Address in them is replaced by the
	// meter's address. internal/exec/supervisor writes them.
	Files map[string]string
	// Proxy is the URL of the proxy that this host has to use, "" for none. Direct are the hosts that need no proxy,
	// in the syntax of NO_PROXY. The URL may contain a password.
	Proxy, Direct string
	// Roots are files with certificates that are trusted in addition to the system's.
	Roots []string
}

// maxRequest limits a request's body, in bytes, to more than any provider accepts.
const maxRequest = 256 << 20

// maxBody limits how many bytes are read of an answer that is an error.
const maxBody = 64 << 10

// Meter is the meter of one agent call.
type Meter struct {
	keys    map[string]string
	prices  usage.Prices
	forward http.Handler
	at      *url.URL
	ctx     context.Context
	end     context.CancelFunc
	budget  budget
	file    *os.File

	serving sync.RWMutex // read-locked by every request that is under way
	mu      sync.Mutex
	failed  error // of the lines that could not be written; guarded by mu

	touched rate.Sometimes // the file's time is updated
}

// New makes a meter, and reads the earlier lines of its file. The error says what is wrong with the config, without a
// key.
func New(c Config) (*Meter, error) {
	upstream, err := url.Parse(c.Upstream)
	if err != nil || upstream.Host == "" || upstream.Scheme != "http" && upstream.Scheme != "https" {
		return nil, errors.New("the meter: the provider's base URL is not an http or https URL with a host")
	}
	m := &Meter{keys: c.Keys, prices: c.Prices, at: upstream, touched: rate.Sometimes{Interval: time.Second}}
	if m.file, err = os.OpenFile(dirfd.At(c.File), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600); err != nil {
		return nil, fmt.Errorf("the meter: %w", err)
	}
	earlier, err := io.ReadAll(m.file)
	if err != nil {
		_ = m.file.Close()
		return nil, fmt.Errorf("the meter: reading what was counted: %w", err)
	}
	var spent usage.Total
	if n := spent.Read(earlier); n < len(earlier) { // a power cut has left half a line
		_, _ = m.file.Write([]byte("\n"))
	}
	spent.Refused = "" // this call may have another budget
	m.budget = budget{limits: c.Budget, spent: spent, changed: make(chan struct{}), flights: map[*flight]bool{}}
	proxy := (&httpproxy.Config{HTTPProxy: c.Proxy, HTTPSProxy: c.Proxy, NoProxy: c.Direct}).ProxyFunc()
	transport := &http.Transport{
		Proxy:               func(r *http.Request) (*url.URL, error) { return proxy(r.URL) },
		DisableCompression:  true, // a program that did not ask for compression gets none
		MaxIdleConnsPerHost: 16, IdleConnTimeout: 90 * time.Second, TLSHandshakeTimeout: 30 * time.Second, ForceAttemptHTTP2: true,
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots(c.Roots)},
	}
	m.ctx, m.end = context.WithCancel(context.Background())
	m.forward = egress.Forwarding(&httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1, Rewrite: m.rewrite, ModifyResponse: m.watch, ErrorHandler: unreachable,
		ErrorLog: log.New(io.Discard, "", 0),
	})
	context.AfterFunc(m.ctx, transport.CloseIdleConnections)
	return m, nil
}

// roots returns the system's certificates and those of the files that can be read. If the provider's certificate is then
// not trusted, the program gets that error.
func roots(files []string) *x509.CertPool {
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	for _, file := range files {
		pem, _ := os.ReadFile(file)
		pool.AppendCertsFromPEM(pem)
	}
	return pool
}

// End refuses further requests, ends those under way, and returns when all costs are recorded. It returns an error if
// a record could not be written.
func (m *Meter) End() error {
	m.end()
	m.serving.Lock()
	defer m.serving.Unlock()
	return errors.Join(m.failed, m.file.Close())
}

// ServeHTTP answers a request of the program.
func (m *Meter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.serving.RLock()
	defer m.serving.RUnlock()
	if m.ctx.Err() != nil {
		http.Error(w, "The call of the agent has ended.", http.StatusServiceUnavailable)
		return
	}
	switch {
	case !m.known(r):
		tell(w, r, http.StatusUnauthorized, "pawl's meter takes requests with the key in the environment of the agent's program alone.")
		return
	case r.Header.Get("Upgrade") != "":
		tell(w, r, http.StatusUpgradeRequired, "pawl's meter speaks HTTP alone, no WebSocket.")
		return
	case !generates(r) && !asksAbout(r):
		tell(w, r, http.StatusNotFound, "pawl's meter passes on what makes a model answer and what asks about models, and nothing else of the provider's.")
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(m.ctx, cancel)()
	r = r.WithContext(ctx)
	r.Body = http.MaxBytesReader(w, r.Body, maxRequest)
	if !generates(r) {
		m.forward.ServeHTTP(w, r)
		return
	}
	if strings.HasSuffix(r.URL.Path, "/responses") {
		if status, reason := stays(r); reason != "" {
			tell(w, r, status, reason)
			return
		}
	}
	e := &exchange{heard: m.touch}
	exhausted, done := m.budget.admit(ctx, usage.Guess(max(r.ContentLength, 0)), func() usage.Call { return e.seen(m.prices) })
	if exhausted != "" {
		m.note(usage.Call{Refused: exhausted})
		refuse(w, r, exhausted)
		return
	}
	if done == nil { // the program has gone while it waited
		return
	}
	m.note(usage.Call{Begun: true})
	sent := &sized{ReadCloser: r.Body}
	r.Body = sent
	defer func() { // even if the program has gone in the middle of the answer
		c := usage.CallOf(e.close(), e.status, sent.n.Load(), m.prices).WithError(e.header.Get, e.body, time.Now())
		c.Cut = c.Cut && e.ended && ctx.Err() == nil // only the provider cuts an answer off
		done(c)
		m.note(c)
	}()
	m.forward.ServeHTTP(w, r.WithContext(context.WithValue(ctx, exchangeKey{}, e)))
}

// note writes a line at once, so the usage stays known even if pawl dies now.
func (m *Meter) note(c usage.Call) {
	if _, err := m.file.Write(c.Line()); err != nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.failed = errors.Join(m.failed, fmt.Errorf("the meter: noting what was used: %w", err))
	}
}

// touch updates the file's time when a part of an answer has come: whoever watches the call sees a sign of life.
func (m *Meter) touch() {
	m.touched.Do(func() { _ = os.Chtimes(m.file.Name(), time.Now(), time.Now()) }) // only a sign of life, no count
}

// asksAbout reports whether a request costs nothing and is only about models: their list, or how many tokens a text
// has. Other requests are refused, because the user's key opens everything else at the provider: work that nobody
// counts, such as batches, stored files and answers, and keys for sessions without a budget.
func asksAbout(r *http.Request) bool {
	parts := strings.Split(r.URL.Path, "/")
	if slices.Contains(parts, "..") || slices.Contains(parts, ".") { // the provider may read it as another path
		return false
	}
	if r.Method == http.MethodPost {
		ends := []string{"/count_tokens", "/input_tokens", ":countTokens"}
		return slices.ContainsFunc(ends, func(end string) bool { return strings.HasSuffix(r.URL.Path, end) })
	}
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) && slices.Contains(parts, "models")
}

// generates reports whether a request makes a model work.
func generates(r *http.Request) bool {
	ends := []string{"/messages", "/responses", "/responses/compact", "/completions", ":generateContent", ":streamGenerateContent"}
	stores := strings.Contains(r.URL.Path, "/threads/") // a message that OpenAI keeps; no model reads it
	return r.Method == http.MethodPost && !stores && slices.ContainsFunc(ends, func(end string) bool { return strings.HasSuffix(r.URL.Path, end) })
}

// stays reads a request to OpenAI's responses. If it asks for work that goes on after the answer, whose cost nobody
// would see, or if the meter can't read it, stays returns the status and the reason to refuse it with.
func stays(r *http.Request) (status int, reason string) {
	if r.Header.Get("Content-Encoding") != "" {
		return http.StatusUnsupportedMediaType, "pawl's meter takes requests that are not compressed."
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return http.StatusBadRequest, "pawl's meter could not read the request: " + err.Error()
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	background, err := inBackground(body)
	switch {
	case err != nil:
		return http.StatusBadRequest, "pawl's meter takes requests in JSON: " + err.Error()
	case background:
		return http.StatusBadRequest, "pawl's meter can't count a request with background: true, so it does not send it."
	}
	return 0, ""
}

// inBackground reports whether a JSON object asks for work in the background. A provider may take any of several equal
// keys, so none may ask for it.
func inBackground(body []byte) (background bool, err error) {
	d := json.NewDecoder(bytes.NewReader(body))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return false, errors.Join(err, errors.New("it is no object"))
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return false, err
		}
		var value any
		if err := d.Decode(&value); err != nil {
			return false, err
		}
		if key, _ := name.(string); strings.EqualFold(key, "background") && value != nil && value != false {
			background = true
		}
	}
	_, err = d.Token()
	return background, err
}

// keyHeaders are the headers with the providers' keys.
var keyHeaders = []string{"X-Api-Key", "Authorization", "X-Goog-Api-Key", "Api-Key"}

// known reports whether a request has one of the placeholders as its key.
func (m *Meter) known(r *http.Request) bool {
	for _, name := range keyHeaders {
		if _, ok := m.key(r.Header.Get(name)); ok {
			return true
		}
	}
	_, ok := m.key(r.URL.Query().Get("key"))
	return ok
}

// key returns a header's value with the provider's key in place of the placeholder.
func (m *Meter) key(value string) (key string, ok bool) {
	for placeholder, key := range m.keys {
		if prefix, ok := strings.CutSuffix(value, placeholder); ok && (prefix == "" || strings.EqualFold(prefix, "bearer ")) {
			return prefix + key, true
		}
	}
	return value, false
}

// rewrite changes the request into that for the provider.
func (m *Meter) rewrite(r *httputil.ProxyRequest) {
	out := r.Out
	out.URL.Scheme, out.URL.Host, out.Host = m.at.Scheme, m.at.Host, m.at.Host
	out.URL.Path, out.URL.RawPath = strings.TrimSuffix(m.at.Path, "/")+r.In.URL.Path, ""
	out.URL.RawQuery = r.In.URL.RawQuery // as it came, even with a semicolon
	if r.In.URL.RawPath != "" {
		out.URL.RawPath = strings.TrimSuffix(m.at.EscapedPath(), "/") + r.In.URL.RawPath
	}
	for _, name := range keyHeaders {
		if value, ok := m.key(out.Header.Get(name)); ok {
			out.Header.Set(name, value)
		}
	}
	if q := out.URL.Query(); q.Has("key") {
		if value, ok := m.key(q.Get("key")); ok {
			q.Set("key", value)
			out.URL.RawQuery = q.Encode()
		}
	}
	if strings.Contains(out.Header.Get("Accept-Encoding"), "gzip") { // an encoding that the meter can read too
		out.Header.Set("Accept-Encoding", "gzip")
	} else {
		out.Header.Set("Accept-Encoding", "identity")
	}
}

// watch counts an answer as it passes.
func (m *Meter) watch(r *http.Response) error {
	e, ok := r.Request.Context().Value(exchangeKey{}).(*exchange)
	if !ok {
		return nil
	}
	e.status, e.header = r.StatusCode, r.Header
	e.counter.Stream = strings.HasPrefix(r.Header.Get("Content-Type"), "text/event-stream")
	var dest io.Writer = e
	if r.Header.Get("Content-Encoding") == "gzip" {
		dest = e.unpack()
	}
	var body io.Reader = passing{r.Body, dest, e}
	if e.status >= 400 { // Qwen Code hangs up at the status; read the reason before it does
		begin, _ := io.ReadAll(io.LimitReader(body, maxBody)) // an error of the reader comes again with the rest
		body = io.MultiReader(bytes.NewReader(begin), body)
	}
	r.Body = struct {
		io.Reader
		io.Closer
	}{body, r.Body}
	return nil
}

// passing is the body of an answer that the meter reads as it passes.
type passing struct {
	from io.Reader
	to   io.Writer // counts it
	e    *exchange
}

func (p passing) Read(b []byte) (int, error) {
	n, err := p.from.Read(b)
	p.e.heard()
	_, _ = p.to.Write(b[:n])
	p.e.ended = p.e.ended || err != nil
	return n, err
}

type exchangeKey struct{}

// exchange is one request with its answer. One goroutine passes it on.
type exchange struct {
	heard  func()
	status int
	header http.Header // of an answer that is an error
	body   []byte      // the beginning of such an answer
	ended  bool        // the provider sends no more

	mu      sync.Mutex
	counter usage.Counter

	packed   *io.PipeWriter // of a compressed answer
	unpacked chan struct{}
}

// unpack returns a writer for a compressed answer, whose uncompressed content it counts.
func (e *exchange) unpack() io.Writer {
	var source *io.PipeReader
	source, e.packed = io.Pipe()
	e.unpacked = make(chan struct{})
	go func() {
		defer close(e.unpacked)
		if z, err := gzip.NewReader(source); err == nil {
			_, _ = io.Copy(e, z)
		}
		_, _ = io.Copy(io.Discard, source)
	}()
	return e.packed
}

// Write counts a part of the uncompressed answer.
func (e *exchange) Write(b []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.status >= 400 {
		e.body = append(e.body, b[:min(len(b), maxBody-len(e.body))]...)
	}
	return e.counter.Write(b)
}

// seen returns what the answer has reported so far.
func (e *exchange) seen(ps usage.Prices) usage.Call {
	e.mu.Lock()
	defer e.mu.Unlock()
	a := e.counter.Answer()
	c := usage.Call{Model: a.Model, Usage: a.Usage, Tools: a.Tools}
	c.Nano, c.Priced = ps.Nano(a.Model, a.Usage)
	return c
}

// close returns what the answer reported.
func (e *exchange) close() usage.Answer {
	if e.packed != nil {
		_ = e.packed.Close()
		<-e.unpacked
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.counter.Close()
}

// unreachable answers that the provider could not be reached. The error has its name and address, but no key.
func unreachable(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil { // nobody reads the answer
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	if e, ok := r.Context().Value(exchangeKey{}).(*exchange); ok {
		e.status, e.body = http.StatusBadGateway, []byte(`{"message": "the provider could not be reached"}`)
	}
	tell(w, r, http.StatusBadGateway, "pawl's meter could not reach the provider: "+err.Error())
}
