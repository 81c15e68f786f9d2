package sandbox

import "fmt"

// Means is how files and processes are kept out of reach.
type Means string

// The means, the cheapest first: the supervisor's own namespaces cost nothing per command, bubblewrap some
// eight milliseconds.
const (
	ByNothing       Means = ""
	ByNamespace     Means = "namespaces"
	ByUserNamespace Means = "namespaces of an ordinary user"
	ByBwrap         Means = "bubblewrap"
)

// What Landlock's versions bring.
const (
	landlockNet   = 4
	landlockScope = 6
)

// Machine is what Probe found.
type Machine struct {
	Files    Means
	Bwrap    string // its path
	Network  bool   // a network namespace with a way out of pawl's own
	Overlay  bool   // layers
	Filter   bool   // system calls
	Begins   bool   // cgroups of version 2, which a process has to begin in
	Landlock int    // its version, 0 for none
}

// Lacks says in words what the machine lacks for a sandbox with that network, "" where it has everything.
// An open network can't be closed to the engine without Landlock, and is then no sandbox (E6).
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
