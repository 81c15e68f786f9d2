package egress

import (
	"net"
	"net/netip"
)

// ServeWith is Serve with a resolver of the test's own, which is asked for closed names at each connection.
func ServeWith(l net.Listener, r Rules, resolver *net.Resolver, refused func(target, why string)) error {
	g, err := newGuard(r, resolver)
	if err != nil {
		return err
	}
	g.fresh = 0
	return serve(l, g, nil, refused)
}

// Bounds that tests come up against.
const MaxConnections = maxConnections

// Barred says which address a target leads to, and why none may be reached there that any host could have.
func Barred(host, port string) (addr netip.Addr, why string) {
	t, err := read(host, port)
	if err != nil {
		return addr, err.Error()
	}
	if !t.addr.IsValid() {
		return addr, ""
	}
	for _, form := range forms(t.addr) {
		if why := barredRange(form); why != "" {
			return t.addr, why
		}
	}
	return t.addr, ""
}
