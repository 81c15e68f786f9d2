// Package egress is the one way out of a sandbox's own network: a proxy that speaks HTTP and SOCKS5 on one
// listener and connects to what the rules let through. The listener is inside of the sandbox; the process that
// serves it is outside, and connects with that process's network.
//
// It refuses this host's addresses in every form, link-local and metadata addresses, what is closed to agents
// (Temporal, its UI, the git remote), and whatever is not wanted where hosts are named. A name is
// resolved once, and what is connected to is the address that was checked. It decides nothing about loops, reads
// no settings, and looks into nothing that passes.
//
// Start at Serve. guard.go has the checks, address.go the forms of addresses, http.go and socks.go the two
// protocols, dial.go the connections, environment.go what programs in the sandbox are told.
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

// Port is where the proxy listens on the loopback interface of the sandbox's own network.
const Port = 7295

// Rules are what a proxy lets through. They are plain data, for JSON and gob.
type Rules struct {
	// Hosts are what is wanted, in the words of sandbox.hosts: names, "*.example.org", addresses, ranges, each
	// with ":port" or without. Where there are none, everything is let through that is not refused for
	// another reason.
	Hosts []string `json:"hosts,omitempty"`
	// Closed are hosts that stay out of reach whatever Hosts says, in the same words: without a port at
	// every port. A name closes its addresses too.
	Closed []string `json:"closed,omitempty"`
	// Upstream is the URL of the proxy (http, https, socks5) that this host itself has to use, "" for none. It
	// may have a password in it, and is shown to nobody.
	Upstream string `json:"upstream,omitempty"`
	// Direct are the hosts that are reached without Upstream, in the words of NO_PROXY.
	Direct string `json:"direct,omitempty"`
}

// Bounds of what one sandbox can ask of the process that serves it.
const (
	maxConnections   = 1024
	maxHeaderBytes   = 64 << 10
	handshakeTimeout = 20 * time.Second
	dialTimeout      = 30 * time.Second
	idleTimeout      = 2 * time.Minute // between the requests of one client, never within one
)

// Serve answers what connects to l until l is closed; then it ends all connections and returns nil. It
// closes l and returns an error at once where the rules can't be read (see Rules.Check). Of every connection
// that it refuses it tells refused the target and the reason; refused may be called by several goroutines
// at once, and may be nil. Requests to the listener itself are own's; there are none where it is nil.
func Serve(l net.Listener, r Rules, own http.Handler, refused func(target, why string)) error {
	g, err := newGuard(r, net.DefaultResolver)
	if err != nil {
		_ = l.Close()
		return err
	}
	return serve(l, g, own, refused)
}

// serve is Serve with a guard.
func serve(l net.Listener, g *guard, own http.Handler, refused func(target, why string)) error {
	ctx, end := context.WithCancel(context.Background())
	p := &proxy{guard: g, ctx: ctx, own: own, refused: refused, open: map[net.Conn]bool{}, requests: make(chan net.Conn)}
	web := &http.Server{
		Handler: p.handler(), ReadHeaderTimeout: handshakeTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes,
		ErrorLog: log.New(io.Discard, "", 0), // what clients do wrong is answered to them
	}
	var serving sync.WaitGroup
	serving.Go(func() { _ = web.Serve(&handed{p, l.Addr()}) })
	defer func() {
		end()
		_ = web.Close()
		p.closeAll()
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

// proxy is one listener's.
type proxy struct {
	*guard
	ctx      context.Context // done when the listener is closed
	refused  func(target, why string)
	requests chan net.Conn // to the HTTP server
	own      http.Handler  // of requests to the listener itself, nil for none

	mu   sync.Mutex
	open map[net.Conn]bool
}

// begin finds out which protocol a client speaks: SOCKS5 begins with its version, HTTP with a letter.
func (p *proxy) begin(conn net.Conn) {
	if !p.keep(conn) {
		return
	}
	defer func() {
		if recover() != nil { // a client ends its own connection, and never the process
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
	_ = conn.SetReadDeadline(time.Time{}) // the HTTP server has its own
	select {
	case p.requests <- client:
	case <-p.ctx.Done():
		p.drop(conn)
	}
}

// keep records a connection, which ends with the proxy; it closes one that comes too late, or is one too many.
func (p *proxy) keep(conn net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ctx.Err() != nil || len(p.open) >= 2*maxConnections { // a client's and a server's each
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

func (p *proxy) closeAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for conn := range p.open {
		_ = conn.Close()
	}
}

// tell hands a refusal on; it returns nil for any other error.
func (p *proxy) tell(err error) *Refusal {
	var r *Refusal
	if !errors.As(err, &r) {
		return nil
	}
	if p.refused != nil {
		p.refused(r.Target, r.Why)
	}
	return r
}

// tunnel passes bytes both ways until both sides have ended, or one has failed.
func (p *proxy) tunnel(client, server net.Conn) {
	if !p.keep(server) {
		return
	}
	defer p.drop(server)
	var both sync.WaitGroup
	flow := func(to, from net.Conn) {
		if _, err := io.Copy(to, from); err != nil {
			_ = to.Close()
			_ = from.Close()
			return
		}
		if half, ok := to.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite()
		} else {
			_ = to.Close()
		}
	}
	both.Go(func() { flow(server, client) })
	flow(client, server)
	both.Wait()
}

// peeked is a connection of which the first bytes were read already.
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

// WriteTo and ReadFrom leave the copying to the kernel.
func (c *peeked) WriteTo(w io.Writer) (int64, error) {
	n, err := io.CopyN(w, c.r, int64(c.r.Buffered()))
	if err != nil {
		return n, err
	}
	m, err := io.Copy(w, c.Conn)
	return n + m, err
}

func (c *peeked) ReadFrom(r io.Reader) (int64, error) { return io.Copy(c.Conn, r) }

func (c *peeked) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return c.Close()
}

func (c *peeked) Close() error {
	c.p.drop(c.Conn)
	return nil
}

// handed is the HTTP server's listener: it gets the connections that speak HTTP.
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

// Refusal is why a connection was not let through.
type Refusal struct {
	Target string // host:port as it was asked for
	Why    string // which rule refuses it, as the rest of a sentence
}

func (r *Refusal) Error() string {
	return fmt.Sprintf("pawl lets no connection through to %s: %s", r.Target, r.Why)
}
