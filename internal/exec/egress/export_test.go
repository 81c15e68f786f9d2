package egress

import (
	"net"
	"net/netip"
)

// ServeWith is Serve with the test's own resolver, which is asked for closed names at each connection.
func ServeWith(l net.Listener, r Rules, resolver *net.Resolver, refused func(target, why string)) error {
	g, err := newGuard(r, resolver)
	if err != nil {
		return err
	}
	g.fresh = 0
	return serve(l, g, nil, refused)
}

// Limits that tests reach.
const MaxConnections = maxConnections

// Barred returns the address to which a target leads, and why nothing may be reached there, whichever host has it.
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
