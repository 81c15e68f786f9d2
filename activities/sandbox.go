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
func (ws *loopWorkspace) confine(c proc.Command, inherited []string) *sandbox.Policy {
	machine := sandbox.Probe()
	if ws.Sandbox.Use == spec.Off || machine == (sandbox.Machine{}) {
		return nil
	}
	r := sandbox.Request{
		Machine: machine, Home: ws.machine.Home.Dir, Repo: ws.local(), Own: []string{c.Dir}, Closed: ws.machine.closed(),
		Env: c.Env, Argv: c.Argv, Named: slices.Clone(c.Argv), Allow: ws.Sandbox.Allow, Ports: ws.Sandbox.Ports,
	}
	if c.Dir == ws.desk.Dir {
		r.Own = append(r.Own, workspace.Exchange(ws.machine.Home, ws.Ref))
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
func (ws *loopWorkspace) means() sandbox.Means {
	if ws.Sandbox.Use == spec.Off {
		return sandbox.ByNothing
	}
	return sandbox.Probe().Files
}

// Where the embedded engine and its UI listen unless something else does.
const stockPort, stockUI = 7233, 8233

// closed are the ports of the engine, its UI and the triggers. The embedded engine and the triggers say
// on disk where they listen, and may move while a loop runs.
func (m *machine) closed() []int { return append(m.engine(), m.Home.TriggerPorts()...) }

func (m *machine) engine() []int {
	ports := slices.Clone(m.Closed)
	var engine struct {
		Ports []int `json:"ports"`
	}
	if b, err := os.ReadFile(filepath.Join(m.Home.Engine(), "engine.json")); err == nil && json.Unmarshal(b, &engine) == nil {
		ports = append(ports, engine.Ports...)
	}
	return ports
}

// protections are what the contract says of this machine.
func (ws *loopWorkspace) protections() []string {
	if ws.Sandbox.Use == spec.Off {
		return []string{"no sandbox (sandbox.use is off): agent and commands run with your rights on this machine, and could reach $PAWL_HOME, the engine and its UI"}
	}
	return sandbox.Probe().Protections(ws.machine.closed(), ws.Sandbox.Ports)
}

// ensure refuses a loop whose sandbox is required on a machine that has not all of one.
func (m *machine) ensure(s spec.Sandbox) error {
	has := sandbox.Probe()
	if s.Use != spec.Required || has.Covers(m.closed()) {
		return nil
	}
	return refuse(fault.New(fault.PreconditionFailed, "the spec requires a sandbox, and this machine lacks %s", has.Lacks(m.closed())).
		Advise("Run the loop on Linux 6.7 or later with user namespaces or bubblewrap, or set `sandbox.use` to auto, which uses what there is and says what that is."))
}
