package hosted

import "pawl/internal/sandbox"

// Surrounded is what the loops of this host are told of Temporal: the hosts that their proxy closes, and whether the
// engine asks who comes.
func Surrounded(a *Workspaces) (closed []string, asks bool) {
	ws := &Workspace{Machine: a.Machine}
	return ws.request(sandbox.Machine{}).Egress.Closed, a.AsksToken()
}
