package egress_test

import (
	"math"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"pawl/internal/exec/egress"
)

func TestE6_AddressesThatAreNeverReached(t *testing.T) {
	t.Parallel()
	for want, hosts := range map[string]string{
		"is this host itself": `127.0.0.1 127.255.255.254 0.0.0.0 0.1.2.3 ::1 :: 0:0:0:0:0:0:0:1 ::ffff:127.0.0.1 ::ffff:0.0.0.0 ::FFFF:7F00:1 ::127.0.0.1 ::ffff:0:127.0.0.1
			64:ff9b::127.0.0.1 64:ff9b::7f00:1 64:ff9b:1::127.0.0.1 64:ff9b:1:7f00:0:100:: 64:ff9b:1:7f:0:1:: 64:ff9b:1:0:7f:0:100:0 2002:7f00:1:: 2002:7f00:0001:1::1
			2001:0:7f00:1:: 2001:0:808:808:0:0:80ff:fffe 2001:db8::5efe:127.0.0.1 2001:db8::200:5efe:127.0.0.1`,
		"is link-local": `169.254.169.254 169.254.0.1 169.254.170.2 fe80::1 febf::1 ::ffff:169.254.169.254 64:ff9b::a9fe:a9fe 2002:a9fe:a9fe:: fe80::a9fe:a9fe fec0::1`,
		"metadata":      `100.100.100.200 168.63.129.16 192.0.0.192 fd00:ec2::254 fd00:ec2::23 fd20:ce::254 ::ffff:100.100.100.200 64:ff9b::a83f:8110`,
		"is no single":  `224.0.0.1 239.255.255.255 255.255.255.255 240.0.0.1 ff02::1 ff05::2 ::ffff:224.0.0.1`,
		"neither a host name nor an address in its usual form": `127.1 127.0.1 2130706433 0x7f000001 0x7f.1 0x7F.0.0.1 0177.0.0.1 017700000001 127.0.0.01 127.0.0.1. 1.2.3 1.2.3.4.5 256.0.0.1 0 00 0x 1.2.3.0x4
			a%00b localhost\x00.test - a..b .a ::1::2 1::2::3 ①②⑦.⓪.⓪.① １２７.0.0.1 127。0。0。1 user@host a/b`,
		"with a zone": `fe80::1%eth0 fe80::1%25eth0 ::1%lo fe80::1%1 2001:db8::1%x`,
	} {
		for host := range strings.FieldsSeq(hosts) {
			_, why := egress.Barred(host, "80")
			assert.Contains(t, why, want, host)
		}
	}
	for host := range strings.FieldsSeq(`1.1.1.1 8.8.8.8 10.0.0.1 172.16.0.1 192.168.1.1 100.64.0.1 198.51.100.7 203.0.113.80 128.0.0.1 126.255.255.255 1.0.0.0 223.255.255.255
		2606:4700:4700::1111 fd12:3456::1 64:ff9b::8.8.8.8 64:ff9b::10.0.0.1 2002:0808:0808:: ::ffff:8.8.8.8 2001:db8::1 2001:1::1 example.org a xn--bcher-kva.example _dns.example 1.example 0x7f.example`) {
		_, why := egress.Barred(host, "443")
		assert.Empty(t, why, host)
	}
	for _, port := range []string{"", "0", "65536", "-1", "+80", "0x50", "http", "80 ", "٨٠"} {
		_, why := egress.Barred("example.org", port)
		assert.NotEmpty(t, why, port)
	}
}

// FuzzAddresses compares the addresses that the proxy finds in a host with those that a resolver in C finds.
func FuzzAddresses(f *testing.F) {
	for host := range strings.FieldsSeq("127.0.0.1 127.1 0x7f.1 0177.1 2130706433 ::1 ::ffff:127.0.0.1 64:ff9b::7f00:1 2002:7f00:1:: fe80::1%eth0 example.org 1.2.3.4 169.254.169.254 0x7f000001.") {
		f.Add(host)
	}
	f.Fuzz(func(t *testing.T, host string) {
		addr, why := egress.Barred(host, "80")
		if why != "" {
			return
		}
		if classic, is := inetAton(strings.TrimSuffix(host, ".")); is {
			require.Equal(t, classic, addr, "%q", host)
		}
		if !addr.IsValid() {
			require.Nil(t, net.ParseIP(host), "%q", host)
			return
		}
		require.False(t, addr.Is4In6())
		require.Empty(t, addr.Zone())
		require.False(t, addr.IsLoopback() || addr.IsUnspecified() || addr.IsMulticast() || addr.IsLinkLocalUnicast(), "%q", host)
	})
}

// inetAton reads an IPv4 address as inet_aton(3) does: one to four numbers, decimal, octal or hexadecimal. The last
// number fills the rest of the address.
func inetAton(s string) (netip.Addr, bool) {
	parts := strings.Split(s, ".")
	if len(parts) > 4 {
		return netip.Addr{}, false
	}
	var sum uint64
	for i, part := range parts {
		if strings.ContainsAny(part, "_+-") || part == "" || part[0] < '0' || part[0] > '9' || strings.ContainsAny(part, "oObB") && !strings.HasPrefix(strings.ToLower(part), "0x") {
			return netip.Addr{}, false
		}
		n, err := strconv.ParseUint(part, 0, 32)
		rest := 8 * (4 - i)
		if i < len(parts)-1 {
			rest = 8
		}
		if err != nil || rest < 32 && n >= 1<<rest {
			return netip.Addr{}, false
		}
		if i == len(parts)-1 {
			sum = sum<<rest | n
		} else {
			sum = sum<<8 | n
		}
	}
	if sum > math.MaxUint32 {
		return netip.Addr{}, false
	}
	return netip.AddrFrom4([4]byte{byte(sum >> 24), byte(sum >> 16), byte(sum >> 8), byte(sum)}), true
}
