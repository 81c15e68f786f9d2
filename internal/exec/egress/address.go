package egress

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
)

// barred are ranges that are never another host's service, whatever sandbox.hosts says. Each has a reason that
// completes a sentence beginning with the address.
var barred = []struct {
	in  netip.Prefix
	why string
}{
	{netip.MustParsePrefix("0.0.0.0/8"), own}, // Linux treats 0.0.0.0 as loopback
	{netip.MustParsePrefix("127.0.0.0/8"), own},
	{netip.MustParsePrefix("::/128"), own},
	{netip.MustParsePrefix("::1/128"), own},
	{netip.MustParsePrefix("169.254.0.0/16"), linkLocal},
	{netip.MustParsePrefix("fe80::/10"), linkLocal},
	{netip.MustParsePrefix("fec0::/10"), linkLocal},         // site-local, which came before link-local
	{netip.MustParsePrefix("100.100.100.200/32"), metadata}, // Alibaba
	{netip.MustParsePrefix("168.63.129.16/32"), metadata},   // Azure
	{netip.MustParsePrefix("192.0.0.192/32"), metadata},     // Oracle
	{netip.MustParsePrefix("fd00:ec2::/32"), metadata},      // Amazon
	{netip.MustParsePrefix("fd20:ce::/32"), metadata},       // Google
	{netip.MustParsePrefix("224.0.0.0/4"), group},
	{netip.MustParsePrefix("240.0.0.0/4"), group}, // reserved, and broadcast
	{netip.MustParsePrefix("ff00::/8"), group},
}

const (
	own       = "is this host itself, which the proxy never reaches (a server that you started yourself is at localhost, without the proxy)"
	linkLocal = "is link-local, where clouds keep their metadata and credentials"
	metadata  = "is where a cloud keeps its metadata and credentials"
	group     = "is no single host"
)

// forms returns all addresses to which addr may lead: itself, and the IPv4 addresses inside an IPv6 address that a
// translator or tunnel on the way would extract.
func forms(addr netip.Addr) []netip.Addr {
	addr = addr.WithZone("").Unmap()
	addrs := []netip.Addr{addr}
	if addr.Is4() {
		return addrs
	}
	b := addr.As16()
	carried := func(start int) { addrs = append(addrs, netip.AddrFrom4([4]byte(b[start:start+4]))) }
	starts := func(prefix string) bool { return netip.MustParsePrefix(prefix).Contains(addr) }
	switch {
	case starts("::/96"), starts("::ffff:0:0:0/96"), starts("64:ff9b::/96"): // compatible, translated, NAT64
		carried(12)
	case starts("64:ff9b:1::/48"): // private NAT64 (RFC 6052): behind a prefix of 48, 56, 64 or 96 bits
		for _, octets := range [][4]int{{6, 7, 9, 10}, {7, 9, 10, 11}, {9, 10, 11, 12}, {12, 13, 14, 15}} {
			addrs = append(addrs, netip.AddrFrom4([4]byte{b[octets[0]], b[octets[1]], b[octets[2]], b[octets[3]]}))
		}
	case starts("2002::/16"): // 6to4
		carried(2)
	case starts("2001::/32"): // Teredo: its server, and the client inverted
		carried(4)
		client := ^binary.BigEndian.Uint32(b[12:])
		addrs = append(addrs, netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, client))))
	case b[8]&^2 == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe: // ISATAP
		carried(12)
	}
	return addrs
}

// barredRange says why nothing may be reached at addr, "" if no range contains it.
func barredRange(addr netip.Addr) string {
	for _, bar := range barred {
		if bar.in.Contains(addr) {
			return bar.why
		}
	}
	return ""
}

// station is what this host has in the network at one moment: its addresses and inner networks.
type station struct {
	own    map[netip.Addr]bool
	guests []netip.Prefix // networks that exist on this host only: those of containers and virtual machines
}

// here asks the system. Interfaces come and go (a VPN, a container), so it is called for each connection.
func here() (station, error) {
	s := station{own: map[netip.Addr]bool{}}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return s, fmt.Errorf("list this host's addresses: %w", err)
	}
	for _, a := range addresses {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil {
			s.own[prefix.Addr()] = true
		}
	}
	bridges, err := inner()
	if err != nil {
		return s, err
	}
	for index := range bridges {
		bridge, err := net.InterfaceByIndex(index)
		if err != nil {
			continue // it was there a moment ago
		}
		addresses, err := bridge.Addrs()
		if err != nil {
			continue
		}
		for _, a := range addresses {
			if prefix, err := netip.ParsePrefix(a.String()); err == nil && prefix.Addr().IsGlobalUnicast() {
				s.guests = append(s.guests, prefix.Masked())
			}
		}
	}
	return s, nil
}

// mine reports whether addr belongs to this host. Routes can make whole ranges local, beside the addresses of
// interfaces. When the kernel sends to such an address, it sends from the same address, so mine compares the two. It
// sends no packet.
func (s station) mine(addr netip.Addr) (bool, error) {
	if s.own[addr] {
		return true, nil
	}
	probe, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(addr, 9)))
	switch {
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.EADDRNOTAVAIL):
		return false, nil // no route, so no connection either
	case err != nil:
		return false, fmt.Errorf("find out whether %s is this host: %w", addr, err)
	}
	defer func() { _ = probe.Close() }()
	local, ok := probe.LocalAddr().(*net.UDPAddr)
	return ok && local.AddrPort().Addr().Unmap() == addr, nil
}
