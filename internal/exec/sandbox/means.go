package sandbox

import "fmt"

// Means says how files and processes are kept out of reach.
type Means string

// The means, cheapest first: the supervisor's own namespaces cost a command nothing, bubblewrap about 8 ms.
const (
	ByNothing       Means = ""
	ByNamespace     Means = "namespaces"
	ByUserNamespace Means = "namespaces of an ordinary user"
	ByBwrap         Means = "bubblewrap"
)

// The versions of Landlock that add a feature.
const (
	landlockNet   = 4
	landlockScope = 6
)

// Machine is what Probe found on this machine.
type Machine struct {
	Files    Means
	Bwrap    string // its path
	Network  bool   // a network namespace, with a way out through pawl's proxy
	Overlay  bool   // layers
	Filter   bool   // filters for system calls
	Begins   bool   // cgroups of version 2, in which a process has to be started
	Landlock int    // its version, 0 for none
}

// Lacks says what the machine lacks for a sandbox with that network, "" if nothing. In an open network, only Landlock
// can close the ports of the engine; without it, there is no sandbox (E6).
func (m Machine) Lacks(network Network, closed []int) string {
	switch {
	case m.Files == ByNothing:
		return "namespaces (neither by itself nor with bubblewrap)"
	case network != Open && m.Network:
		return ""
	case network != Open && m.Landlock < landlockNet:
		return "network namespaces and Landlock for ports"
	case m.Landlock == 0:
		return "Landlock"
	case m.Landlock < landlockNet:
		return fmt.Sprintf("Landlock for ports (it has version %d, Linux 6.7 brings %d)", m.Landlock, landlockNet)
	case len(closed) == 0:
		return "a port of the engine's that is not everybody's"
	}
	return ""
}
