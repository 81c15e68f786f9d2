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

// guard decides what is connected to.
type guard struct {
	wanted   []spec.Host
	closed   []spec.Host
	upstream *url.URL
	through  func(*url.URL) (*url.URL, error) // whether a target goes through upstream, nil without one
	resolver *net.Resolver
	station  func() (station, error)
	fresh    time.Duration // how long what a closed name resolved to is believed

	mu    sync.Mutex
	known map[string]*known // by the names in closed
}

// known are the addresses of a name that is closed. They grow: a name that now leads elsewhere may lead back.
type known struct {
	addrs map[netip.Addr]bool
	asked time.Time
	err   error // of the last look-up
}

// freshness is how long what a closed name resolved to is believed, but in tests; patience, how long that it did not.
const (
	freshness = 30 * time.Second
	patience  = 2 * time.Second
)

// metadataNames are names by which clouds hand out their metadata.
var metadataNames = []string{"metadata", "metadata.google.internal", "metadata.goog", "instance-data", "instance-data.ec2.internal", "metadata.tencentyun.com", "metadata.azure.internal"}

// Service is the host in the address of a gRPC service, such as temporal.example:7233 or
// dns:///temporal.example:7233, as an entry of Closed that closes every port of it; "" where there is none.
func Service(address string) string {
	address = address[strings.LastIndex(address, "/")+1:]
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return address
}

// Check says what is wrong with rules, nil where they can be served.
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
		return nil, errors.New("the network of agents: the upstream proxy is no http, https or socks5 URL with a host") // not shown: it may have a password in it
	}
	if u.Port() == "" {
		u.Host = net.JoinHostPort(u.Hostname(), port)
	}
	// Whoever reaches the proxy itself can ask it for anything.
	h, err := spec.ParseHost(u.Host)
	if err != nil {
		return nil, fmt.Errorf("the network of agents: the host of the upstream proxy %w", err)
	}
	g.upstream, g.closed = u, append(g.closed, h)
	g.through = (&httpproxy.Config{HTTPProxy: r.Upstream, HTTPSProxy: r.Upstream, NoProxy: r.Direct}).ProxyFunc()
	return g, nil
}

// target is what a client asks for, read.
type target struct {
	text string // as it was asked for
	host string // a name as spec.HostName returns it, or an address
	addr netip.Addr
	port uint16
}

// read makes a target of host and port.
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

// pass is what one connection is checked by: the rules and the world at one moment.
type pass struct {
	*guard
	station
	target
	named bool // sandbox.hosts names the target
	meant bool // and not only as one of a range
}

// admit checks what can be checked before anything is resolved or sent.
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

func (p *pass) refuse(why string) error { return &Refusal{p.text, why} }

// check refuses an address that the target leads to. It is asked for the very address that is then
// connected to.
func (p *pass) check(addr netip.Addr) error {
	for _, form := range forms(addr) {
		if why := barredRange(form); why != "" {
			return p.refuse(addr.String() + " " + why)
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
		if !p.meant && p.guest(form) {
			return p.refuse(addr.String() + " is a container or virtual machine on this host, and sandbox.hosts names neither this address nor a name for it")
		}
	}
	return nil
}

// leads reports whether the name of h was seen to have the address.
func (g *guard) leads(h spec.Host, addr netip.Addr) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	k := g.known[h.Name]
	return k != nil && k.addrs[addr]
}

// learn looks up the names that are closed, where that was long ago. An error says that one of them
// can't be told from others.
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
			if ctx.Err() == nil { // a client that gave up has learnt nothing
				k.asked = time.Now()
			}
		}
		if k.err != nil && len(k.addrs) == 0 && !g.nowhere(k.err) {
			return fmt.Errorf("pawl keeps %s out of reach and can't look up its addresses now (name what the loop needs in sandbox.hosts)", h.Written)
		}
	}
	return nil
}

// nowhere reports whether a name that could not be looked up has no address for certain. Where a proxy stands
// between, only that may know it.
func (g *guard) nowhere(err error) bool {
	var dns *net.DNSError
	return errors.As(err, &dns) && dns.IsNotFound && g.upstream == nil
}
