// Package egress is the only way out of a sandbox with its own network: a proxy that speaks HTTP and SOCKS5 on one
// listener and connects to what the rules allow. The listener is inside the sandbox. The process that serves it is
// outside, and connects with its own network.
//
// It refuses this host's addresses in every form, link-local and metadata addresses, what is closed to agents
// (Temporal, its UI, the git remote), and every host that is not listed if hosts are listed. It resolves a name once
// and connects to the address that it checked. It decides nothing about loops, reads no settings, and never looks at
// the content of connections.
//
// Start at Serve. guard.go has the checks, address.go the forms of addresses, http.go and socks.go the two protocols,
// dial.go the connections, environment.go the variables for programs in the sandbox.
package egress

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"
)

// Port is the proxy's port on the loopback interface of the sandbox's own network.
const Port = 7295

// Rules are what a proxy allows. They are plain data, for JSON and gob.
type Rules struct {
	// Hosts are the allowed hosts, in the syntax of sandbox.hosts: names, "*.example.org", addresses, ranges, each
	// with or without ":port". If the list is empty, everything is allowed that is not refused for another reason.
	Hosts []string `json:"hosts,omitempty"`
	// Closed are hosts that are never allowed, whatever Hosts says, in the same syntax. An entry without a port
	// closes every port. A name closes its addresses too.
	Closed []string `json:"closed,omitempty"`
	// Upstream is the URL of the proxy (http, https, socks5) that this host itself has to use, "" for none. It may
	// contain a password and is never shown.
	Upstream string `json:"upstream,omitempty"`
	// Direct are the hosts that need no Upstream, in the syntax of NO_PROXY.
	Direct string `json:"direct,omitempty"`
}

// Limits of what one sandbox can demand of the process that serves it.
const (
	maxConnections   = 1024
	maxHeaderBytes   = 64 << 10
	handshakeTimeout = 20 * time.Second
	dialTimeout      = 30 * time.Second
	idleTimeout      = 2 * time.Minute // between the requests of one client, never within one
)

// Serve answers connections to l until l is closed; then it ends all connections and returns nil. If the rules can't
// be read (see Rules.Check), it closes l and returns an error at once. It calls refused with target and reason of
// every refused connection; refused may be nil, and several goroutines may call it at once. own serves requests to
// the listener itself; if it is nil, these are refused.
func Serve(l net.Listener, r Rules, proxy http.Handler, refused func(target, reason string)) error {
	g, err := newGuard(r, net.DefaultResolver)
	if err != nil {
		_ = l.Close()
		return err
	}
	return serve(l, g, proxy, refused)
}

// serve is Serve with a guard.
func serve(l net.Listener, g *guard, handler http.Handler, refused func(target, reason string)) error {
	ctx, end := context.WithCancel(context.Background())
	p := &proxy{guard: g, ctx: ctx, own: handler, refused: refused, open: map[net.Conn]bool{}, requests: make(chan net.Conn)}
	web := &http.Server{
		Handler: p.handler(), ReadHeaderTimeout: handshakeTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes,
		ErrorLog: log.New(io.Discard, "", 0), // clients get their own errors as answers
	}
	var serving sync.WaitGroup
	serving.Go(func() { _ = web.Serve(&handed{p, l.Addr()}) })
	defer func() {
		end()
		_ = web.Close()
		p.mu.Lock()
		for conn := range p.open {
			_ = conn.Close()
		}
		p.mu.Unlock()
		serving.Wait()
	}()
	for {
		conn, err := l.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return nil
		case err != nil: // too many open files, or a client that left already
			time.Sleep(50 * time.Millisecond)
		default:
			serving.Go(func() { p.begin(conn) })
		}
	}
}

// proxy serves one listener.
type proxy struct {
	*guard
	ctx      context.Context // done when the listener is closed
	refused  func(target, reason string)
	requests chan net.Conn // to the HTTP server
	own      http.Handler  // for requests to the listener itself, nil for none

	mu   sync.Mutex
	open map[net.Conn]bool
}

// begin detects the protocol of a client: SOCKS5 begins with its version, HTTP with a letter.
func (p *proxy) begin(conn net.Conn) {
	if !p.keep(conn) {
		return
	}
	defer func() {
		if recover() != nil { // a client can end its own connection, never the process
			p.drop(conn)
		}
	}()
	_ = conn.SetReadDeadline(time.Now().Add(handshakeTimeout))
	r := bufio.NewReader(conn)
	first, err := r.Peek(1)
	if err != nil {
		p.drop(conn)
		return
	}
	client := &peeked{Conn: conn, r: r, p: p}
	if first[0] == socksVersion {
		p.socks(client)
		return
	}
	_ = conn.SetReadDeadline(time.Time{}) // the HTTP server has its own deadline
	select {
	case p.requests <- client:
	case <-p.ctx.Done():
		p.drop(conn)
	}
}

// keep records a connection so that it ends with the proxy. It closes a connection that comes too late or is one too
// many.
func (p *proxy) keep(conn net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ctx.Err() != nil || len(p.open) >= 2*maxConnections { // each client has a second one, to its server
		_ = conn.Close()
		return false
	}
	p.open[conn] = true
	return true
}

func (p *proxy) drop(conn net.Conn) {
	p.mu.Lock()
	delete(p.open, conn)
	p.mu.Unlock()
	_ = conn.Close()
}

// tell reports a refusal and returns it; it returns nil for any other error.
func (p *proxy) tell(err error) *Refusal {
	r, refused := errors.AsType[*Refusal](err)
	if refused && p.refused != nil {
		p.refused(r.Target, r.Why)
	}
	return r
}

// tunnel copies bytes in both directions until both sides have ended, or one has failed.
func (p *proxy) tunnel(client, server net.Conn) {
	if !p.keep(server) {
		return
	}
	defer p.drop(server)
	var flows sync.WaitGroup
	flow := func(to, from net.Conn) {
		if _, err := io.Copy(to, from); err != nil {
			_ = to.Close()
			_ = from.Close()
			return
		}
		_ = closeWrite(to)
	}
	flows.Go(func() { flow(server, client) })
	flow(client, server)
	flows.Wait()
}

// closeWrite ends one direction of a connection, and the whole connection if it can't be ended by halves.
func closeWrite(conn net.Conn) error {
	if half, ok := conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return conn.Close()
}

// peeked is a connection whose first bytes were already read.
type peeked struct {
	net.Conn
	r *bufio.Reader
	p *proxy
}

func (c *peeked) Read(b []byte) (int, error) {
	if c.r.Buffered() > 0 {
		return c.r.Read(b)
	}
	return c.Conn.Read(b)
}

// WriteTo and ReadFrom let the kernel copy.
func (c *peeked) WriteTo(w io.Writer) (int64, error) {
	n, err := io.CopyN(w, c.r, int64(c.r.Buffered()))
	if err != nil {
		return n, err
	}
	m, err := io.Copy(w, c.Conn)
	return n + m, err
}

func (c *peeked) ReadFrom(r io.Reader) (int64, error) { return io.Copy(c.Conn, r) }

func (c *peeked) CloseWrite() error { return closeWrite(c.Conn) }

func (c *peeked) Close() error {
	c.p.drop(c.Conn)
	return nil
}

// handed is the HTTP server's listener: it returns the connections that speak HTTP.
type handed struct {
	p    *proxy
	addr net.Addr
}

func (h *handed) Accept() (net.Conn, error) {
	select {
	case conn := <-h.p.requests:
		return conn, nil
	case <-h.p.ctx.Done():
		return nil, net.ErrClosed
	}
}

func (h *handed) Close() error   { return nil }
func (h *handed) Addr() net.Addr { return h.addr }

// Refusal says why a connection is not allowed.
type Refusal struct {
	Target string // host:port as the client asked for it
	Why    string // the rule that refuses it, as the rest of a sentence
}

func (r *Refusal) Error() string {
	return fmt.Sprintf("pawl allows no connection to %s: %s", r.Target, r.Why)
}
