package egress

import (
	"encoding/binary"
	"fmt"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// inner returns the interfaces, by index, whose networks exist on this host only: bridges with only containers (veth)
// and virtual machines (tun) on them, as container engines and hypervisors make them. A bridge with a device of the
// machine is the machine's way to its network, and is left out.
func inner() (map[int]bool, error) {
	rib, err := syscall.NetlinkRIB(syscall.RTM_GETLINK, syscall.AF_UNSPEC)
	if err != nil {
		return nil, fmt.Errorf("list this host's network interfaces: %w", err)
	}
	messages, err := syscall.ParseNetlinkMessage(rib)
	if err != nil {
		return nil, fmt.Errorf("list this host's network interfaces: %w", err)
	}
	bridges, outward := map[int]bool{}, map[int]bool{}
	for i := range messages {
		m := &messages[i]
		if m.Header.Type != syscall.RTM_NEWLINK || len(m.Data) < syscall.SizeofIfInfomsg {
			continue
		}
		attributes, err := syscall.ParseNetlinkRouteAttr(m)
		if err != nil {
			return nil, fmt.Errorf("list this host's network interfaces: %w", err)
		}
		kind, master := "", 0
		for _, a := range attributes {
			switch {
			case a.Attr.Type == unix.IFLA_LINKINFO:
				kind = linkKind(a.Value)
			case a.Attr.Type == unix.IFLA_MASTER && len(a.Value) >= 4:
				master = int(binary.NativeEndian.Uint32(a.Value))
			}
		}
		if kind == "bridge" {
			bridges[int(binary.NativeEndian.Uint32(m.Data[4:]))] = true // its index, in struct ifinfomsg
		}
		if kind != "veth" && kind != "tun" {
			outward[master] = true
		}
	}
	for index := range outward {
		delete(bridges, index)
	}
	return bridges, nil
}

// linkKind returns the kind of an interface that the kernel made, such as bridge, and "" for a device of the machine.
// b contains attributes, each with its length and type in front, padded to four bytes.
func linkKind(b []byte) string {
	for len(b) >= 4 {
		n := int(binary.NativeEndian.Uint16(b))
		if n < 4 || n > len(b) {
			return ""
		}
		if binary.NativeEndian.Uint16(b[2:]) == unix.IFLA_INFO_KIND {
			return strings.TrimRight(string(b[4:n]), "\x00")
		}
		b = b[min((n+3)&^3, len(b)):]
	}
	return ""
}
