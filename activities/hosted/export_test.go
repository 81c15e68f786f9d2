package hosted

import "pawl/internal/sandbox"

// Surrounded returns what the sandbox of this host's loops knows about Temporal: the hosts that the proxy refuses,
// and whether the engine requires a token.
func Surrounded(a *Workspaces) (closed []string, asks bool) {
	ws := &Workspace{Machine: a.Machine}
	return ws.request(sandbox.Machine{}).Egress.Closed, a.AsksToken()
}
