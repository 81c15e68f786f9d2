package activities

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"

	"pawl/internal/fault"
	"pawl/internal/proc"
	"pawl/internal/sandbox"
	"pawl/internal/spec"
	"pawl/internal/workspace"
)

// confine says what a command on one of p's trees may reach (E6): the tree, with the exchange for
// what runs on the desk, and none of pawl's own. It is nil where there is no sandbox.
func (a *Activities) confine(p *place, c proc.Command, inherited []string) *sandbox.Policy {
	machine := sandbox.Probe()
	if p.Sandbox.Use == spec.Off || machine == (sandbox.Machine{}) {
		return nil
	}
	r := sandbox.Request{
		Machine: machine, Home: a.Home.Dir, Repo: p.local(), Own: []string{c.Dir}, Closed: a.closed(),
		Env: c.Env, Argv: c.Argv, Named: slices.Clone(c.Argv), Allow: p.Sandbox.Allow, Ports: p.Sandbox.Ports,
	}
	if c.Dir == p.desk.Dir {
		r.Own = append(r.Own, workspace.Exchange(a.Home, p.Ref))
	}
	// What the spec adds to the worker's environment it names.
	for _, kv := range c.Env {
		if !slices.Contains(inherited, kv) {
			r.Named = append(r.Named, kv)
		}
	}
	policy := sandbox.Make(r)
	return &policy
}

// means is how the sandbox of p's commands keeps files out of reach.
func (p *place) means() sandbox.Means {
	if p.Sandbox.Use == spec.Off {
		return sandbox.ByNothing
	}
	return sandbox.Probe().Files
}

// closed are the ports of the engine and its UI. The embedded one says on disk where it listens,
// and may move while a loop runs.
func (a *Activities) closed() []int {
	ports := slices.Clone(a.Closed)
	var engine struct {
		Ports []int `json:"ports"`
	}
	if b, err := os.ReadFile(filepath.Join(a.Home.Engine(), "engine.json")); err == nil && json.Unmarshal(b, &engine) == nil {
		ports = append(ports, engine.Ports...)
	}
	return ports
}

// protections are what the contract says of this machine.
func (a *Activities) protections(p *place) []string {
	if p.Sandbox.Use == spec.Off {
		return []string{"no sandbox (sandbox.use is off): agent and commands run with your rights on this machine, and could reach $PAWL_HOME, the engine and its UI"}
	}
	return sandbox.Probe().Protections(a.closed(), p.Sandbox.Ports)
}

// ensure refuses a loop whose sandbox is required on a machine that has not all of one.
func (a *Activities) ensure(s spec.Sandbox) error {
	m := sandbox.Probe()
	if s.Use != spec.Required || m.Covers(a.closed()) {
		return nil
	}
	return refuse(fault.New(fault.PreconditionFailed, "the spec requires a sandbox, and this machine lacks %s", m.Lacks(a.closed())).
		Advise("Run the loop on Linux 6.7 or later with user namespaces or bubblewrap, or set `sandbox.use` to auto, which uses what there is and says what that is."))
}
