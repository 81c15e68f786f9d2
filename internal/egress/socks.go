package egress

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"strconv"
	"syscall"
	"time"
)

// SOCKS5 by RFC 1928, as far as connections go: neither passwords nor UDP.
const (
	socksVersion = 5
	socksConnect = 1

	socksIPv4, socksName, socksIPv6 = 1, 3, 4

	socksDone, socksFailed, socksRefused, socksUnreachable, socksNobody, socksNotTaken = 0, 1, 2, 4, 5, 7
	socksNoMethod                                                                      = 0xff
)

// socks answers one client. The first byte says that it speaks SOCKS5.
func (p *proxy) socks(client *peeked) {
	defer func() { _ = client.Close() }()
	host, port, code := greet(client)
	if code != socksDone {
		reply(client, code)
		return
	}
	if host == "" {
		return // nobody there
	}
	server, err := p.dial(p.ctx, host, port)
	if err != nil {
		reply(client, p.socksCode(err))
		return
	}
	_ = client.SetDeadline(time.Time{})
	reply(client, socksDone)
	p.tunnel(client, server)
}

// greet reads what a client wants. Without a host and with socksDone the client is gone.
func greet(client net.Conn) (host, port string, code byte) {
	head := make([]byte, 2)
	if _, err := io.ReadFull(client, head); err != nil {
		return "", "", socksDone
	}
	methods := make([]byte, head[1])
	if _, err := io.ReadFull(client, methods); err != nil {
		return "", "", socksDone
	}
	method := byte(socksNoMethod)
	for _, m := range methods {
		if m == 0 {
			method = 0
		}
	}
	if _, err := client.Write([]byte{socksVersion, method}); err != nil || method != 0 {
		return "", "", socksDone
	}
	ask := make([]byte, 4)
	if _, err := io.ReadFull(client, ask); err != nil {
		return "", "", socksDone
	}
	var length int
	switch ask[3] {
	case socksIPv4:
		length = net.IPv4len
	case socksIPv6:
		length = net.IPv6len
	case socksName:
		one := make([]byte, 1)
		if _, err := io.ReadFull(client, one); err != nil {
			return "", "", socksDone
		}
		length = int(one[0])
	default:
		return "", "", 8 // no such sort of address
	}
	rest := make([]byte, length+2)
	if _, err := io.ReadFull(client, rest); err != nil {
		return "", "", socksDone
	}
	if ask[0] != socksVersion || ask[1] != socksConnect {
		return "", "", socksNotTaken
	}
	port = strconv.Itoa(int(binary.BigEndian.Uint16(rest[length:])))
	if ask[3] == socksName {
		return string(rest[:length]), port, socksDone
	}
	addr, _ := netip.AddrFromSlice(rest[:length])
	return addr.String(), port, socksDone
}

func reply(client net.Conn, code byte) {
	_, _ = client.Write([]byte{socksVersion, code, 0, socksIPv4, 0, 0, 0, 0, 0, 0})
}

// socksCode is the number for why there is no connection; SOCKS has no words.
func (p *proxy) socksCode(err error) byte {
	var dns *net.DNSError
	switch {
	case p.tell(err) != nil:
		return socksRefused
	case errors.Is(err, syscall.ECONNREFUSED):
		return socksNobody
	case errors.As(err, &dns):
		return socksUnreachable
	}
	return socksFailed
}
