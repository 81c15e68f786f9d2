package egress

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"strings"
	"time"
)

// handler answers CONNECT, requests for http URLs, and requests to the listener itself.
func (p *proxy) handler() http.Handler {
	transport := &http.Transport{
		DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			host, port, err := net.SplitHostPort(address)
			if err != nil {
				return nil, &Refusal{address, "it is no host with a port"}
			}
			return p.dial(ctx, host, port)
		},
		MaxIdleConnsPerHost: 4, MaxIdleConns: 64, IdleConnTimeout: 30 * time.Second,
		DisableCompression: true, // a client that did not ask for compression gets none
	}
	forward := Forwarding(&httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1, ErrorHandler: p.fail,
		Rewrite: func(r *httputil.ProxyRequest) { r.Out.Host, r.Out.URL.RawQuery = "", r.In.URL.RawQuery }, // the URL's
	})
	context.AfterFunc(p.ctx, transport.CloseIdleConnections)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodConnect:
			p.connect(w, r)
		case r.URL.Scheme == "http" && r.URL.Host != "":
			forward.ServeHTTP(w, r)
		case p.own != nil && strings.HasPrefix(r.RequestURI, "/"):
			p.own.ServeHTTP(w, r)
		default:
			http.Error(w, fmt.Sprintf("This is pawl's proxy: it takes CONNECT, requests for http URLs and SOCKS5, and not %s %.200q.", r.Method, r.RequestURI), http.StatusBadRequest)
		}
	})
}

// connect makes a tunnel.
func (p *proxy) connect(w http.ResponseWriter, r *http.Request) {
	host, port, err := net.SplitHostPort(r.Host)
	if err != nil {
		http.Error(w, fmt.Sprintf("CONNECT wants host:port, and not %.200q.", r.Host), http.StatusBadRequest)
		return
	}
	server, err := p.dial(r.Context(), host, port)
	if err != nil {
		w.Header().Set("Connection", "close") // the client's next bytes are for another server
		p.fail(w, r, err)
		return
	}
	defer func() { _ = server.Close() }()
	client, early, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer func() { _ = client.Close() }()
	_ = client.SetDeadline(time.Time{})
	if _, err := client.Write([]byte("HTTP/1.1 200 Connection established\r\n\r\n")); err != nil {
		return
	}
	if n := early.Reader.Buffered(); n > 0 { // the client did not wait for the answer
		b, _ := early.Reader.Peek(n)
		if _, err := server.Write(b); err != nil {
			return
		}
	}
	p.tunnel(client, server)
}

// fail answers why there is no connection.
func (p *proxy) fail(w http.ResponseWriter, _ *http.Request, err error) {
	if refusal := p.tell(err); refusal != nil {
		http.Error(w, refusal.Error()+".", http.StatusForbidden)
		return
	}
	http.Error(w, "pawl's proxy could not connect: "+err.Error(), http.StatusBadGateway)
}
