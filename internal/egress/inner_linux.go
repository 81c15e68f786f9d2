package egress

import (
	"os"
	"path/filepath"
)

// inner reports whether the network of an interface exists on this host only: a bridge that no device of the
// machine belongs to, as container engines and hypervisors make them.
func inner(name string) bool {
	const devices = "/sys/class/net"
	ports, err := os.ReadDir(filepath.Join(devices, name, "brif"))
	if err != nil {
		return false // no bridge
	}
	for _, port := range ports {
		if _, err := os.Stat(filepath.Join(devices, port.Name(), "device")); err == nil {
			return false
		}
	}
	return true
}
