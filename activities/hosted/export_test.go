package hosted

import "pawl/internal/sandbox"

// Surrounded returns what the sandbox of this host's loops knows about Temporal: the hosts that the proxy refuses,
// and whether the engine requires a token.
func Surrounded(a *Workspaces) (closed, secrets []string, asks bool) {
	r := (&Workspace{Machine: a.Machine}).request(sandbox.Machine{})
	return r.Egress.Closed, r.Secrets, a.AsksToken()
}
