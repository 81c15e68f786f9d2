package egress

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"strconv"
	"syscall"
	"time"
)

// SOCKS5 by RFC 1928, only for connections: no passwords and no UDP.
const (
	socksVersion = 5
	socksConnect = 1

	socksIPv4, socksName, socksIPv6 = 1, 3, 4

	socksDone, socksFailed, socksRefused, socksUnreachable, socksNobody, socksNotTaken, socksNoSuchAddress = 0, 1, 2, 4, 5, 7, 8

	socksNoMethod = 0xff
)

// socks answers one client whose first byte says that it speaks SOCKS5.
func (p *proxy) socks(client *peeked) {
	defer func() { _ = client.Close() }()
	host, port, code, err := greet(client)
	if err != nil {
		return // it left, or insists on a password
	}
	if code != socksDone {
		reply(client, code)
		return
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

// greet reads what a client wants. code is the answer to a client that does not want a connection.
func greet(client io.ReadWriter) (host, port string, code byte, err error) {
	get := func(n int) []byte {
		b := make([]byte, n)
		if err == nil {
			_, err = io.ReadFull(client, b)
		}
		return b
	}
	method := byte(socksNoMethod)
	if bytes.IndexByte(get(int(get(2)[1])), 0) >= 0 {
		method = 0
	}
	if err != nil {
		return "", "", 0, err
	}
	if _, err = client.Write([]byte{socksVersion, method}); err == nil && method != 0 {
		err = errors.New("the client knows passwords only")
	}
	ask := get(4)
	var length int
	switch ask[3] {
	case socksIPv4:
		length = net.IPv4len
	case socksIPv6:
		length = net.IPv6len
	case socksName:
		length = int(get(1)[0])
	default:
		return "", "", socksNoSuchAddress, err
	}
	b := get(length + 2)
	if ask[0] != socksVersion || ask[1] != socksConnect {
		return "", "", socksNotTaken, err
	}
	port = strconv.Itoa(int(binary.BigEndian.Uint16(b[length:])))
	if ask[3] == socksName {
		return string(b[:length]), port, socksDone, err
	}
	addr, _ := netip.AddrFromSlice(b[:length])
	return addr.String(), port, socksDone, err
}

func reply(client net.Conn, code byte) {
	_, _ = client.Write([]byte{socksVersion, code, 0, socksIPv4, 0, 0, 0, 0, 0, 0})
}

// socksCode returns the number for why there is no connection; SOCKS has no texts.
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
