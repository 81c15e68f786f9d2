package egress

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"syscall"
	"time"

	socks5 "golang.org/x/net/proxy"
)

// dial connects to a target that the rules allow. The error is a *Refusal if they do not.
func (g *guard) dial(ctx context.Context, host, port string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	p, err := g.admit(ctx, host, port)
	if err != nil {
		return nil, err
	}
	address := net.JoinHostPort(p.host, strconv.Itoa(int(p.port)))
	if g.through != nil {
		// The path of the URL does not matter.
		if via, err := g.through(&url.URL{Scheme: "https", Host: address}); err == nil && via != nil {
			return p.around(ctx)
		}
	}
	// The dialer resolves the name once and calls Control for each address right before it connects to that address.
	d := net.Dialer{Resolver: g.resolver, Control: func(_, address string, _ syscall.RawConn) error {
		addr, err := netip.ParseAddrPort(address)
		if err != nil {
			return p.refuse("its address can't be read")
		}
		return p.check(addr.Addr())
	}}
	return d.DialContext(ctx, "tcp", address)
}

// around connects through the upstream proxy. It asks the proxy for the address that was checked. It asks for a name
// only if a person listed that name, because the proxy resolves it again.
func (p *pass) around(ctx context.Context) (net.Conn, error) {
	host := p.host
	if !p.addr.IsValid() {
		addrs, err := p.resolver.LookupNetIP(ctx, "ip", p.host)
		if err != nil && !p.named {
			return nil, p.refuse("its address can't be looked up here, so it can't be checked (name it in sandbox.hosts)")
		}
		for _, addr := range addrs {
			if err := p.check(addr); err != nil {
				return nil, err
			}
		}
		if !p.named {
			host = addrs[0].Unmap().String()
		}
	}
	address := net.JoinHostPort(host, strconv.Itoa(int(p.port)))
	if p.upstream.Scheme == "socks5" || p.upstream.Scheme == "socks5h" {
		d, err := socks5.FromURL(p.upstream, &net.Dialer{})
		if err != nil {
			return nil, fmt.Errorf("the proxy of this host: %w", err)
		}
		return d.(socks5.ContextDialer).DialContext(ctx, "tcp", address)
	}
	conn, err := connect(ctx, p.upstream, address)
	if err != nil {
		return nil, fmt.Errorf("the proxy of this host: %w", err)
	}
	return conn, nil
}

// connect asks an HTTP proxy for a tunnel.
func connect(ctx context.Context, via *url.URL, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", via.Host)
	if err != nil {
		return nil, err
	}
	if via.Scheme == "https" {
		conn = tls.Client(conn, &tls.Config{ServerName: via.Hostname()})
	}
	deadline, _ := ctx.Deadline()
	_ = conn.SetDeadline(deadline)
	r := bufio.NewReader(conn)
	if err := ask(conn, r, via.User, address); err != nil {
		_ = conn.Close()
		return nil, err
	}
	_ = conn.SetDeadline(time.Time{})
	if r.Buffered() > 0 { // the server has spoken first
		return &ahead{conn, r}, nil
	}
	return conn, nil
}

// ask sends CONNECT and reads the answer.
func ask(w io.Writer, r *bufio.Reader, user *url.Userinfo, address string) error {
	q := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: address}, Host: address, Header: http.Header{}}
	if user != nil {
		password, _ := user.Password()
		q.Header.Set("Proxy-Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(user.Username()+":"+password)))
	}
	if err := q.Write(w); err != nil {
		return err
	}
	answer, err := http.ReadResponse(r, q)
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return errors.New(answer.Status)
	}
	return nil
}

// ahead is a connection with bytes that were already read from it.
type ahead struct {
	net.Conn
	r *bufio.Reader
}

func (c *ahead) Read(b []byte) (int, error) { return c.r.Read(b) }
