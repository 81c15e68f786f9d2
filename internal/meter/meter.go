// Package meter is the endpoint at which an agent program speaks to its model: it passes each request for a model on to the provider
// unchanged, with the key that the program does not have, notes what each answer cost, and answers itself with the
// provider's own error for a limit once a budget is used up. So it counts every agent that the program starts, and no
// request past a budget is sent. It keeps and logs nothing of what is said, and no keys. What answers cost is read in
// internal/meter/tally; which program is made to speak to it, and how, is in internal/program; who listens for it is in
// internal/proc.
//
// Start at Meter.ServeHTTP. budget.go has what is let through, refusal.go how a limit is told.
package meter

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
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
	"sync/atomic"
	"time"

	"golang.org/x/net/http/httpproxy"

	"pawl/internal/held"
	"pawl/internal/meter/tally"
)

// Address stands for the address, host and port, at which a program finds the meter, in its environment and arguments:
// who runs the program puts that in its place.
const Address = "address-of-pawls-meter.invalid"

// Config is the meter of one call of an agent. It is plain data, for gob.
type Config struct {
	Upstream string // the provider's base URL: the path of a request comes behind it
	// Keys are the provider's by the placeholders that the program has instead. A request without one is refused.
	Keys map[string]string
	// Budget is what may be used in all, by this call and what File has already.
	Budget Budget
	Prices tally.Prices
	// File gets a line for each request as it is sent, and one as its answer ends. What it has already counts. While an
	// answer comes its time of change goes on, by the second.
	File string
	// Files are files, by their paths, by which the program is told where the meter is: Address in them is where it is.
	// Who runs the program writes them.
	Files map[string]string
	// Proxy is the URL of the proxy that this host has to use, "" for none; Direct are the hosts without it, in the words of
	// NO_PROXY. It may have a password in it.
	Proxy, Direct string
	// Roots are files of certificates that are trusted beside the system's.
	Roots []string
}

// maxRequest bounds a request's body in bytes: more than any provider takes.
const maxRequest = 256 << 20

// maxBody bounds what is read of an answer that is an error, in bytes.
const maxBody = 64 << 10

// Meter is one call's.
type Meter struct {
	keys    map[string]string
	prices  tally.Prices
	forward *httputil.ReverseProxy
	at      *url.URL
	ctx     context.Context
	end     context.CancelFunc
	budget  budget
	file    *os.File

	mu      sync.Mutex
	ended   bool
	serving sync.WaitGroup
	failed  error // of the first line that could not be written

	touched atomic.Int64 // when the file was touched last, in Unix seconds
}

// New makes a meter, and reads what its file has already. The error says what of the config is wrong, without a key.
func New(c Config) (*Meter, error) {
	at, err := url.Parse(c.Upstream)
	if err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" {
		return nil, errors.New("the meter: the base URL of the provider is no http or https URL with a host")
	}
	m := &Meter{keys: c.Keys, prices: c.Prices, at: at}
	if m.file, err = os.OpenFile(held.At(c.File), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600); err != nil {
		return nil, fmt.Errorf("the meter: %w", err)
	}
	had, err := io.ReadAll(m.file)
	if err != nil {
		_ = m.file.Close()
		return nil, fmt.Errorf("the meter: reading what was counted: %w", err)
	}
	var spent tally.Total
	if n := spent.Read(had); n < len(had) { // a power cut has left half a line
		_, _ = m.file.Write([]byte("\n"))
	}
	m.budget.begin(c.Budget, spent)
	transport := &http.Transport{
		Proxy:               proxyFunc(c),
		DisableCompression:  true, // what the program did not ask for
		MaxIdleConnsPerHost: 16, IdleConnTimeout: 90 * time.Second, TLSHandshakeTimeout: 30 * time.Second, ForceAttemptHTTP2: true,
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots(c.Roots)},
	}
	m.ctx, m.end = context.WithCancel(context.Background())
	m.forward = &httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1, Rewrite: m.rewrite, ModifyResponse: m.watch, ErrorHandler: unreachable,
		ErrorLog: log.New(io.Discard, "", 0),
	}
	context.AfterFunc(m.ctx, transport.CloseIdleConnections)
	return m, nil
}

func proxyFunc(c Config) func(*http.Request) (*url.URL, error) {
	by := (&httpproxy.Config{HTTPProxy: c.Proxy, HTTPSProxy: c.Proxy, NoProxy: c.Direct}).ProxyFunc()
	return func(r *http.Request) (*url.URL, error) { return by(r.URL) }
}

// roots are the system's certificates and those of files; nil, which is the system's, where there are no files.
func roots(files []string) *x509.CertPool {
	var pool *x509.CertPool
	for _, file := range files {
		pem, err := os.ReadFile(file)
		if err != nil {
			continue // the provider's certificate is not trusted then, which the program is told
		}
		if pool == nil {
			if pool, err = x509.SystemCertPool(); err != nil {
				pool = x509.NewCertPool()
			}
		}
		pool.AppendCertsFromPEM(pem)
	}
	return pool
}

// End refuses further requests, ends those that are under way and returns when all that they cost is noted. The error is
// that something could not be.
func (m *Meter) End() error {
	m.mu.Lock()
	m.ended = true
	m.mu.Unlock()
	m.end()
	m.serving.Wait()
	return errors.Join(m.failed, m.file.Close())
}

// ServeHTTP answers a request of the program.
func (m *Meter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	if m.ended {
		m.mu.Unlock()
		http.Error(w, "The call of the agent has ended.", http.StatusServiceUnavailable)
		return
	}
	m.serving.Add(1)
	m.mu.Unlock()
	defer m.serving.Done()

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
		m.pass(w, r)
		return
	}
	e := &exchange{heard: m.touch}
	over, done := m.budget.admit(ctx, tally.Guess(max(r.ContentLength, 0)), func() tally.Call { return e.seen(m.prices) })
	if over != "" {
		m.note(tally.Call{Refused: over})
		refuse(w, r, over)
		return
	}
	if done == nil { // the program has gone while it waited
		return
	}
	m.note(tally.Call{Begun: true})
	sent := &sized{ReadCloser: r.Body}
	r.Body = sent
	defer func() { // also where the program has gone in the middle of the answer
		c := tally.CallOf(e.close(), e.status, sent.n.Load(), m.prices).WithError(e.header.Get, e.body, time.Now())
		c.Cut = c.Cut && e.ended && ctx.Err() == nil // by nobody but the provider
		done(c)
		m.note(c)
	}()
	m.pass(w, r.WithContext(context.WithValue(ctx, exchangeKey{}, e)))
}

// pass has the provider answer a request.
func (m *Meter) pass(w http.ResponseWriter, r *http.Request) {
	// Else what is left of the request is taken from the provider as its answer begins, which cuts the answer off.
	_ = http.NewResponseController(w).EnableFullDuplex() // HTTP/1 alone needs it
	m.forward.ServeHTTP(w, r)
}

// note writes a line at once: what was used stays known whatever dies now.
func (m *Meter) note(c tally.Call) {
	if _, err := m.file.Write(c.Line()); err != nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.failed = errors.Join(m.failed, fmt.Errorf("the meter: noting what was used: %w", err))
	}
}

// touch says that something of an answer has come: whoever watches the call hears that.
func (m *Meter) touch() {
	now := time.Now()
	if last := m.touched.Load(); last < now.Unix() && m.touched.CompareAndSwap(last, now.Unix()) {
		_ = os.Chtimes(m.file.Name(), now, now) // it is a sign of life, no number
	}
}

// asksAbout reports whether a request costs nothing and concerns nothing but models: their list, or how many tokens a text has.
// With the user's key everything else of the provider's could be had: other work that nobody counts, batches among it, files and
// answers that are kept there, keys for a session that knows no budget.
func asksAbout(r *http.Request) bool {
	parts := strings.Split(r.URL.Path, "/")
	if slices.Contains(parts, "..") || slices.Contains(parts, ".") { // the provider may read another path
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
	return r.Method == http.MethodPost && slices.ContainsFunc(ends, func(end string) bool { return strings.HasSuffix(r.URL.Path, end) })
}

// keyHeaders are where the providers' keys stand.
var keyHeaders = []string{"X-Api-Key", "Authorization", "X-Goog-Api-Key", "Api-Key"}

// known reports whether a request has one of the placeholders.
func (m *Meter) known(r *http.Request) bool {
	for _, name := range keyHeaders {
		if _, is := m.key(r.Header.Get(name)); is {
			return true
		}
	}
	_, is := m.key(r.URL.Query().Get("key"))
	return is
}

// key returns a header's value with the provider's key in it instead of the placeholder.
func (m *Meter) key(value string) (with string, is bool) {
	for placeholder, key := range m.keys {
		if before, is := strings.CutSuffix(value, placeholder); is && (before == "" || strings.EqualFold(before, "bearer ")) {
			return before + key, true
		}
	}
	return value, false
}

// rewrite makes the request to the provider.
func (m *Meter) rewrite(r *httputil.ProxyRequest) {
	out := r.Out
	out.URL.Scheme, out.URL.Host, out.Host = m.at.Scheme, m.at.Host, m.at.Host
	out.URL.Path, out.URL.RawPath = strings.TrimSuffix(m.at.Path, "/")+r.In.URL.Path, ""
	out.URL.RawQuery = r.In.URL.RawQuery // as it came, also where it has a semicolon
	if r.In.URL.RawPath != "" {
		out.URL.RawPath = strings.TrimSuffix(m.at.EscapedPath(), "/") + r.In.URL.RawPath
	}
	for _, name := range keyHeaders {
		if value, is := m.key(out.Header.Get(name)); is {
			out.Header.Set(name, value)
		}
	}
	if q := out.URL.Query(); q.Has("key") {
		if value, is := m.key(q.Get("key")); is {
			q.Set("key", value)
			out.URL.RawQuery = q.Encode()
		}
	}
	if strings.Contains(out.Header.Get("Accept-Encoding"), "gzip") { // what can be read here too
		out.Header.Set("Accept-Encoding", "gzip")
	} else {
		out.Header.Set("Accept-Encoding", "identity")
	}
}

// watch has an answer counted as it passes.
func (m *Meter) watch(r *http.Response) error {
	e, is := r.Request.Context().Value(exchangeKey{}).(*exchange)
	if !is {
		return nil
	}
	e.status, e.header = r.StatusCode, r.Header
	e.mu.Lock()
	e.counter.Stream = strings.HasPrefix(r.Header.Get("Content-Type"), "text/event-stream")
	e.mu.Unlock()
	if r.Header.Get("Content-Encoding") == "gzip" {
		e.unpack()
	}
	var body io.Reader = passing{r.Body, e}
	if e.status >= 400 { // Qwen Code hangs up at the status, and then nobody would know why it was refused
		begin, _ := io.ReadAll(io.LimitReader(body, maxBody)) // an error comes again with the rest
		body = io.MultiReader(bytes.NewReader(begin), body)
	}
	r.Body = struct {
		io.Reader
		io.Closer
	}{body, r.Body}
	return nil
}

// passing is the body of an answer as it passes.
type passing struct {
	from io.Reader
	e    *exchange
}

func (p passing) Read(b []byte) (int, error) {
	n, err := p.from.Read(b)
	_, _ = p.e.Write(b[:n])
	p.e.ended = p.e.ended || err != nil
	return n, err
}

type exchangeKey struct{}

// exchange is one request and its answer. One goroutine passes it on.
type exchange struct {
	heard  func()
	status int
	header http.Header // of an answer that is an error
	body   []byte      // the begin of such a one
	ended  bool        // the provider sends no more

	mu      sync.Mutex
	counter tally.Counter

	packed   *io.PipeWriter // of an answer that is compressed
	unpacked chan struct{}
}

// unpack counts what comes out of the compressed bytes.
func (e *exchange) unpack() {
	var from *io.PipeReader
	from, e.packed = io.Pipe()
	e.unpacked = make(chan struct{})
	go func() {
		defer close(e.unpacked)
		if z, err := gzip.NewReader(from); err == nil {
			_, _ = io.Copy(writer(e.count), z)
		}
		_, _ = io.Copy(io.Discard, from)
	}()
}

func (e *exchange) Write(b []byte) (int, error) {
	e.heard()
	if e.packed != nil {
		return e.packed.Write(b)
	}
	return e.count(b)
}

type writer func([]byte) (int, error)

func (w writer) Write(b []byte) (int, error) { return w(b) }

func (e *exchange) count(b []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.status >= 400 {
		e.body = append(e.body, b[:min(len(b), maxBody-len(e.body))]...)
	}
	return e.counter.Write(b)
}

// seen is what the answer has told so far.
func (e *exchange) seen(ps tally.Prices) tally.Call {
	e.mu.Lock()
	defer e.mu.Unlock()
	a := e.counter.Answer()
	c := tally.Call{Model: a.Model, Usage: a.Usage, Tools: a.Tools}
	c.Nano, c.Priced = ps.Nano(a.Model, a.Usage)
	return c
}

// close returns what the answer told.
func (e *exchange) close() tally.Answer {
	if e.packed != nil {
		_ = e.packed.Close()
		<-e.unpacked
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.counter.Close()
}

// unreachable says that the provider could not be asked. The error has its name and address, and no key.
func unreachable(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil { // nobody hears it
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	if e, is := r.Context().Value(exchangeKey{}).(*exchange); is {
		e.status, e.body = http.StatusBadGateway, []byte(`{"message": "the provider could not be reached"}`)
	}
	tell(w, r, http.StatusBadGateway, "pawl's meter could not reach the provider: "+err.Error())
}
