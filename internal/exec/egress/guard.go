package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http/httpproxy"

	"pawl/internal/spec"
)

// guard decides what the proxy connects to.
type guard struct {
	wanted   []spec.Host
	closed   []spec.Host
	upstream *url.URL
	through  func(*url.URL) (*url.URL, error) // returns upstream for a target that needs it, nil without one
	resolver *net.Resolver
	station  func() (station, error)
	fresh    time.Duration // how long the addresses of a closed name are used

	mu    sync.Mutex
	known map[string]*known // by the names in closed
}

// known are the addresses of a closed name. They are never removed: a name that leads elsewhere now may lead back.
type known struct {
	addrs map[netip.Addr]bool
	asked time.Time
	err   error // of the last look-up
}

// freshness is how long the addresses of a closed name are used (tests use another time). patience is how long a
// failed look-up counts.
const (
	freshness = 30 * time.Second
	patience  = 2 * time.Second
)

// metadataNames are names at which clouds offer their metadata.
var metadataNames = []string{"metadata", "metadata.google.internal", "metadata.goog", "instance-data", "instance-data.ec2.internal", "metadata.tencentyun.com", "metadata.azure.internal"}

// Service returns the host in the address of a gRPC service, such as temporal.example:7233 or
// dns:///temporal.example:7233, as an entry of Closed that closes every port of it; "" if there is none.
func Service(address string) string {
	address = address[strings.LastIndex(address, "/")+1:]
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return address
}

// Check returns an error that says what is wrong with the rules, nil if Serve accepts them.
func (r Rules) Check() error {
	_, err := newGuard(r, net.DefaultResolver)
	return err
}

func newGuard(r Rules, resolver *net.Resolver) (*guard, error) {
	g := &guard{resolver: resolver, station: here, fresh: freshness, known: map[string]*known{}}
	for list, entries := range map[*[]spec.Host][]string{&g.wanted: r.Hosts, &g.closed: r.Closed} {
		for _, entry := range entries {
			h, err := spec.ParseHost(entry)
			if err != nil {
				return nil, fmt.Errorf("the network of agents: %q %w", entry, err)
			}
			*list = append(*list, h)
		}
	}
	if r.Upstream == "" {
		return g, nil
	}
	if !strings.Contains(r.Upstream, "://") {
		r.Upstream = "http://" + r.Upstream
	}
	u, err := url.Parse(r.Upstream)
	port := ""
	if err == nil {
		port = map[string]string{"http": "80", "https": "443", "socks5": "1080", "socks5h": "1080"}[u.Scheme]
	}
	if port == "" || u.Hostname() == "" {
		return nil, errors.New("the network of agents: the upstream proxy is no http, https or socks5 URL with a host") // it may contain a password
	}
	if u.Port() == "" {
		u.Host = net.JoinHostPort(u.Hostname(), port)
	}
	// Anybody who reaches the proxy itself can ask it for anything.
	h, err := spec.ParseHost(u.Host)
	if err != nil {
		return nil, fmt.Errorf("the network of agents: the host of the upstream proxy %w", err)
	}
	g.upstream, g.closed = u, append(g.closed, h)
	g.through = (&httpproxy.Config{HTTPProxy: r.Upstream, HTTPSProxy: r.Upstream, NoProxy: r.Direct}).ProxyFunc()
	return g, nil
}

// target is what a client asks for, parsed.
type target struct {
	text string // as it was asked for
	host string // a name as spec.HostName returns it, or an address
	addr netip.Addr
	port uint16
}

// read parses host and port.
func read(host, port string) (target, error) {
	t := target{text: net.JoinHostPort(strings.Trim(host, "[]"), port)}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return t, &Refusal{t.text, "it has no port between 1 and 65535"}
	}
	t.port = uint16(n)
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if addr, err := netip.ParseAddr(host); err == nil {
		if addr.Zone() != "" {
			return t, &Refusal{t.text, "an address with a zone is one of this host's own links"}
		}
		t.addr = addr.Unmap()
		t.host = t.addr.String()
		return t, nil
	}
	if t.host = spec.HostName(host); t.host == "" {
		return t, &Refusal{t.text, "it is neither a host name nor an address in its usual form"}
	}
	return t, nil
}

// pass has everything to check one connection by: the rules, and the network at one moment.
type pass struct {
	*guard
	station
	target
	named bool // sandbox.hosts lists the target
	meant bool // and lists it by itself, not only in a range
}

// admit checks what can be checked before anything is resolved or sent. The error is a *Refusal if the rules do not
// allow it.
func (g *guard) admit(ctx context.Context, host, port string) (*pass, error) {
	t, err := read(host, port)
	if err != nil {
		return nil, err
	}
	p := &pass{guard: g, target: t}
	switch {
	case spec.Host{Name: t.host}.Own():
		return nil, p.refuse(t.host + " " + own)
	case slices.Contains(metadataNames, t.host):
		return nil, p.refuse(t.host + " " + metadata)
	}
	for _, h := range g.closed {
		if h.Names(t.host, t.port) {
			return nil, p.refuse("pawl keeps " + h.Written + " out of reach")
		}
	}
	for _, h := range g.wanted {
		if h.Names(t.host, t.port) {
			p.named, p.meant = true, p.meant || h.Name != "" && !h.Below || h.Range.IsSingleIP()
		}
	}
	if len(g.wanted) > 0 && !p.named {
		return nil, p.refuse("sandbox.hosts does not name it")
	}
	if p.station, err = g.station(); err != nil {
		return nil, err
	}
	if err := g.learn(ctx); err != nil && !p.named {
		return nil, p.refuse(err.Error())
	}
	if t.addr.IsValid() {
		return p, p.check(t.addr)
	}
	return p, nil
}

func (p *pass) refuse(reason string) error { return &Refusal{p.text, reason} }

// check refuses an address of the target. It is called with the very address to which the proxy connects next.
func (p *pass) check(addr netip.Addr) error {
	for _, form := range forms(addr) {
		if reason := barredRange(form); reason != "" {
			return p.refuse(addr.String() + " " + reason)
		}
		switch mine, err := p.mine(form); {
		case err != nil:
			return err
		case mine:
			return p.refuse(addr.String() + " " + own)
		}
		for _, h := range p.closed {
			if h.Port != 0 && h.Port != p.port {
				continue
			}
			if h.Range.IsValid() && h.Range.Contains(form) || p.leads(h, form) {
				return p.refuse(fmt.Sprintf("pawl keeps %s out of reach, and that is %s", h.Written, addr))
			}
		}
		if !p.meant && slices.ContainsFunc(p.guests, func(guests netip.Prefix) bool { return guests.Contains(form) }) {
			return p.refuse(addr.String() + " is a container or virtual machine on this host, and sandbox.hosts names neither this address nor a name for it")
		}
	}
	return nil
}

// leads reports whether the name of h was seen with that address.
func (g *guard) leads(h spec.Host, addr netip.Addr) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	k := g.known[h.Name]
	return k != nil && k.addrs[addr]
}

// learn looks up the closed names again after some time. It returns an error if the addresses of one of them are
// unknown.
func (g *guard) learn(ctx context.Context) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, h := range g.closed {
		if h.Name == "" || h.Below {
			continue
		}
		k := g.known[h.Name]
		if k == nil {
			k = &known{addrs: map[netip.Addr]bool{}}
			g.known[h.Name] = k
		}
		fresh := g.fresh
		if k.err != nil {
			fresh = patience
		}
		if k.asked.IsZero() || time.Since(k.asked) > fresh {
			var addrs []netip.Addr
			addrs, k.err = g.resolver.LookupNetIP(ctx, "ip", h.Name)
			for _, addr := range addrs {
				k.addrs[addr.WithZone("").Unmap()] = true
			}
			if ctx.Err() == nil { // a client that gave up has learned nothing
				k.asked = time.Now()
			}
		}
		if k.err != nil && len(k.addrs) == 0 && !g.nowhere(k.err) {
			return fmt.Errorf("pawl keeps %s out of reach and can't look up its addresses now (name what the loop needs in sandbox.hosts)", h.Written)
		}
	}
	return nil
}

// nowhere reports whether a name that could not be looked up certainly has no address. With an upstream proxy, only
// that proxy may know the address.
func (g *guard) nowhere(err error) bool {
	dns, ok := errors.AsType[*net.DNSError](err)
	return ok && dns.IsNotFound && g.upstream == nil
}
