package spec

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"pawl/internal/lib/lazyregexp"
)

// Host is one entry of sandbox.hosts, or of the list of hosts that can't be reached: a name, all names below a name,
// an address or a range of addresses, with one port or every port.
type Host struct {
	Name    string       // in lower case; "" if the entry has addresses
	Below   bool         // stands for every name below Name, without Name itself
	Range   netip.Prefix // one address or several; invalid if the entry has a name
	Port    uint16       // 0 for every port
	Written string       // the entry as a person wrote it
}

const hostExample = `a host such as "registry.npmjs.org", "*.example.org", "example.org:443" or "10.0.0.0/8"`

const label = `[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?`

var labels = lazyregexp.New(`^` + label + `(?:\.` + label + `)*$`)

// ParseHost reads an entry such as example.org, *.example.org, example.org:443, 10.0.0.5, 10.0.0.0/8, 2001:db8::1 or
// [2001:db8::1]:443. The text of an error continues a sentence that begins with the entry's key.
func ParseHost(entry string) (Host, error) {
	h := Host{Written: entry}
	host, port, err := splitPort(entry)
	if err != nil {
		return Host{}, err
	}
	h.Port = port
	switch {
	case host == "":
		return Host{}, fmt.Errorf("names no host")
	case strings.Contains(host, "://"), strings.HasPrefix(host, "//"):
		return Host{}, fmt.Errorf("is a URL and not a host")
	case strings.Contains(host, "/"):
		if h.Range, err = netip.ParsePrefix(host); err != nil {
			return Host{}, fmt.Errorf("is not a range of addresses")
		}
		if h.Range.Masked() != h.Range {
			return Host{}, fmt.Errorf("is a range that begins at %s", h.Range.Masked().Addr())
		}
	default:
		if addr, err := netip.ParseAddr(host); err == nil {
			if addr.Zone() != "" {
				return Host{}, fmt.Errorf("has a zone")
			}
			addr = addr.Unmap()
			h.Range = netip.PrefixFrom(addr, addr.BitLen())
			return h, nil
		}
		name, below := strings.CutPrefix(host, "*.")
		h.Name, h.Below = HostName(name), below
		if h.Name == "" {
			return Host{}, fmt.Errorf("is not a host name")
		}
	}
	return h, nil
}

// splitPort separates the port from the end of an entry. An IPv6 address with a port is in brackets.
func splitPort(entry string) (host string, port uint16, err error) {
	host, text := entry, ""
	if inner, ok := strings.CutPrefix(entry, "["); ok {
		var closed bool
		if host, text, closed = strings.Cut(inner, "]"); !closed || text != "" && text[0] != ':' {
			return "", 0, fmt.Errorf("is not an address in brackets")
		}
	} else if strings.Count(entry, ":") == 1 {
		host, text = entry[:strings.Index(entry, ":")], entry[strings.Index(entry, ":"):]
	}
	if text == "" {
		return host, 0, nil
	}
	n, err := strconv.ParseUint(text[1:], 10, 16)
	if err != nil || n == 0 {
		if strings.HasPrefix(text, "://") || strings.HasPrefix(text, ":/") {
			return "", 0, fmt.Errorf("is a URL and not a host")
		}
		return "", 0, fmt.Errorf("has the port %s", Show(text[1:]))
	}
	return host, uint16(n), nil
}

// HostName returns a host's name in the form that the proxy compares: in lower case, without a dot at the end. It
// returns "" if name is not a host name. Nothing that could mean an IPv4 address is a name: some resolvers read
// 127.1, 0x7f.1 and 2130706433 as addresses.
func HostName(name string) string {
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	last := name[strings.LastIndex(name, ".")+1:]
	if len(name) > 253 || !labels().MatchString(name) || strings.Trim(last, "0123456789") == "" || strings.HasPrefix(last, "0x") {
		return ""
	}
	return name
}

// Names reports whether the entry includes host, an address or a HostName, at port. It never resolves a name.
func (h Host) Names(host string, port uint16) bool {
	if h.Port != 0 && h.Port != port {
		return false
	}
	if h.Range.IsValid() {
		addr, err := netip.ParseAddr(host)
		return err == nil && h.Range.Contains(addr.Unmap())
	}
	if h.Below {
		return strings.HasSuffix(host, "."+h.Name)
	}
	return host == h.Name
}

// Own reports whether the entry can only be the machine on which pawl runs. The proxy never reaches that machine.
func (h Host) Own() bool {
	if h.Range.IsValid() {
		return h.Range.IsSingleIP() && (h.Range.Addr().IsLoopback() || h.Range.Addr().IsUnspecified())
	}
	return h.Name == "localhost" || strings.HasSuffix(h.Name, ".localhost")
}
