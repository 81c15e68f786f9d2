package workspace

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"pawl/internal/exec/egress"
	"pawl/internal/exec/sandbox"
	"pawl/internal/exec/supervisor"
	"pawl/internal/fault"
	"pawl/internal/lib/fsutil/dirfd"
	"pawl/internal/lib/list"
	"pawl/internal/loop/rules"
	"pawl/internal/metric"
	"pawl/internal/spec"
)

// Confine sets what a command in one of the loop's trees may reach (E6): the tree, with the exchange for commands on
// the desk, and nothing else of pawl's. It sets nothing if there is no sandbox. agents are the known programs that
// the command is or starts, by their names in the spec.
func (ws *Workspace) Confine(ctx context.Context, c *supervisor.Command, inherited []string, surroundings Surroundings, agents []string) error {
	machine := sandbox.Probe()
	if ws.Sandbox.Use == spec.Off || machine == (sandbox.Machine{}) {
		return nil
	}
	r := ws.request(machine)
	r.Agents, r.Metered = agents, c.Meter != nil
	r.Own, r.Env, r.Argv, r.Named = []string{c.Dir}, c.Env, slices.Clone(c.Argv), slices.Clone(c.Argv)
	contract, err := ws.inForce(ctx)
	if err != nil {
		return err
	}
	for _, e := range evaluators(contract) {
		r.Sealed = append(r.Sealed, e.Path)
	}
	// The spec names the variables that it adds to the worker's environment.
	r.Named = append(r.Named, list.Filter(c.Env, func(kv string) bool { return !slices.Contains(inherited, kv) })...)
	t := ws.Judge
	if c.Dir == ws.Desk.Dir || c.Dir == ws.Exchange() {
		t, r.Own = ws.Desk, append(r.Own, ws.Exchange())
	} else { // all commands of a judgement share one room, which has what each of them names
		s := contract.Spec
		r.Named = append(r.Named, s.Verify.Command, s.Verify.Holdout.Command, s.Guard.Command, s.Test.Command)
	}
	policy := sandbox.Make(ws.surrounded(t, r, surroundings))
	if policy.Network == sandbox.Filtered {
		if err := policy.Egress.Check(); err != nil {
			return err
		}
		c.Env = Later(append(c.Env, egress.Environment(sandbox.Values(c.Env))...))
	}
	c.Sandbox = &policy
	return nil
}

// request returns what the requests of all the loop's commands have in common.
func (ws *Workspace) request(machine sandbox.Machine) sandbox.Request {
	r := sandbox.Request{Home: ws.Machine.Main.Dir, Repo: ws.Local(), Allow: ws.Sandbox.Allow, Secrets: ws.Machine.Keys}
	r.Machine, r.Network, r.Closed = machine, cmp.Or(sandbox.Network(ws.Sandbox.Network), sandbox.Filtered), ws.Machine.ClosedPorts()
	r.Limits = sandbox.Limits{Memory: int64(ws.Memory), Processes: int64(cmp.Or(ws.Processes, spec.DefaultProcesses))}
	r.Egress.Hosts = ws.Sandbox.Hosts
	r.Egress.Upstream, r.Egress.Direct = egress.Upstream()
	for _, service := range ws.Machine.Services {
		if host := egress.Service(service); host != "" {
			r.Egress.Closed = append(r.Egress.Closed, host)
		}
	}
	if ws.Remote {
		if endpoint := (spec.Repo{URL: ws.Repo}).Endpoint(); endpoint != "" {
			r.Egress.Closed = append(r.Egress.Closed, endpoint)
		}
	}
	return r
}

// means returns how the sandbox of the workspace's commands keeps files out of reach.
func (ws *Workspace) means() sandbox.Means {
	if ws.Sandbox.Use == spec.Off {
		return sandbox.ByNothing
	}
	return sandbox.Probe().Files
}

// Layered reports whether the caches that the loop's commands write are kept apart from the user's.
func (ws *Workspace) Layered() bool { return ws.means() != sandbox.ByNothing }

// The usual ports of the embedded engine and its UI.
const StockPort, StockUI = 7233, 8233

// ClosedPorts returns the ports of the engine, its UI and the triggers. The embedded engine and the triggers record
// their ports on disk, and may change them while a loop runs.
func (m *Machine) ClosedPorts() []int { return append(m.EnginePorts(), m.Main.TriggerPorts()...) }

// EnginePorts returns the ports of the Temporal services that commands must not reach.
func (m *Machine) EnginePorts() []int { return append(slices.Clone(m.Closed), m.embedded().Ports...) }

// embedded returns what the embedded engine has recorded about itself, nothing if there is none.
func (m *Machine) embedded() (e struct {
	Address string `json:"address"`
	Ports   []int  `json:"ports"`
	Auth    bool   `json:"auth"`
}) {
	if b, err := os.ReadFile(dirfd.At(filepath.Join(m.Main.Engine(), "engine.json"))); err == nil {
		_ = json.Unmarshal(b, &e)
	}
	return e
}

// AsksToken reports whether the service is an embedded engine that requires a token.
func (m *Machine) AsksToken() bool {
	e := m.embedded()
	return e.Auth && (len(m.Services) == 0 || m.Services[0] == e.Address)
}

// Protection is what the contract says about the sandbox on this machine. Each sentence was tried in the loop's own
// sandbox.
type Protection struct {
	Lines  []string
	Broken []sandbox.Broken // claims that do not hold
	Claims int              // how many were tried
	Lacks  []string         // what is not protected
}

// Protections tries the sandbox on this machine.
func (ws *Workspace) Protections(ctx context.Context) (p Protection, err error) {
	if ws.Sandbox.Use == spec.Off {
		p.Lines = []string{"no sandbox (sandbox.use is off): agent and commands run with your rights on this machine, and could reach $PAWL_HOME, the engine and its UI, and write your repository"}
		p.Lacks = p.Lines
		return p, nil
	}
	machine := sandbox.Probe()
	r := ws.request(machine)
	env, err := ws.Environment()
	if err != nil {
		return p, err
	}
	r.Own, r.Env, r.Tree = []string{ws.Exchange()}, env, "check"
	if err := os.MkdirAll(dirfd.At(r.Own[0]), 0o700); err != nil {
		return p, err
	}
	policy := sandbox.Make(r)
	claims := sandbox.Claims(ws.facts(ctx, policy))
	s, err := ws.Supervise()
	if err != nil {
		return p, err
	}
	found, err := s.Check(ctx, supervisor.Check{Sandbox: policy, Asked: sandbox.Asked(claims)})
	if err != nil {
		return p, err
	}
	p.Lines, p.Broken = sandbox.Said(claims, found)
	p.Claims, p.Lacks = len(claims), sandbox.Lacking(claims, found)
	if machine.Files != sandbox.ByNothing {
		p.Lines = append(p.Lines, sandbox.Grants(policy, ws.Sandbox.Allow)...)
	}
	return p, nil
}

// Named returns what agent and commands can read on this machine because the spec names it.
func (ws *Workspace) Named(s spec.Spec) ([]string, error) {
	machine := sandbox.Probe()
	if ws.Sandbox.Use == spec.Off || machine.Files == sandbox.ByNothing {
		return nil, nil
	}
	env, err := ws.Environment()
	if err != nil {
		return nil, err
	}
	r := ws.request(machine)
	r.Env = env
	unnamed := sandbox.Make(r)
	r.Named = slices.AppendSeq(r.Named, maps.Values(rules.Commands(s)))
	for _, a := range s.Agent.All() {
		for _, value := range a.Env {
			r.Named = append(r.Named, os.Expand(value, os.Getenv))
		}
		for _, word := range a.Command.List { // the files of a program are beside it
			if info, err := os.Stat(word); err == nil && filepath.IsAbs(word) && info.Mode().IsRegular() {
				r.Named = append(r.Named, filepath.Dir(word))
			}
		}
	}
	slices.Sort(r.Named)
	return sandbox.Named(sandbox.Make(r), unnamed), nil
}

// Hides reports whether the sandbox keeps a path out of reach of the commands of a spec.
func (ws *Workspace) Hides(s spec.Spec, path string) (bool, error) {
	if ws.means() == sandbox.ByNothing {
		return false, nil
	}
	env, err := ws.Environment()
	if err != nil {
		return false, err
	}
	r := ws.request(sandbox.Probe())
	r.Env = env
	r.Named = slices.Collect(maps.Values(rules.Commands(s)))
	return !sandbox.Make(r).Opens(path), nil
}

// facts returns what is around the loop and must be out of its reach.
func (ws *Workspace) facts(ctx context.Context, policy sandbox.Policy) sandbox.Facts {
	f := sandbox.Facts{Policy: policy, Repo: ws.Local(), Allow: ws.Sandbox.Allow, Sockets: sandbox.Sockets(), Auth: ws.Machine.AsksToken(), DefaultProcesses: ws.Processes == 0}
	home := ws.Machine.Home
	f.Private = []string{ws.Machine.Main.Engine(), filepath.Dir(ws.Store), filepath.Join(home.Loop(ws.Ref), "workspace.json")}
	for _, port := range ws.Machine.ClosedPorts() {
		f.Engine = append(f.Engine, net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	}
	for _, service := range ws.Machine.Services {
		f.Engine = append(f.Engine, elsewhere(ctx, service)...)
	}
	if home, err := os.UserHomeDir(); err == nil {
		for _, name := range []string{".ssh", ".aws", ".gnupg", ".kube", ".docker", ".netrc", ".bash_history", ".npmrc", ".config/gh"} {
			f.Private = append(f.Private, filepath.Join(home, name))
		}
	}
	// The contract lists elsewhere what the spec makes writable.
	f.Private = slices.DeleteFunc(f.Private, func(path string) bool { return policy.Opens(path) })
	f.Sockets = slices.DeleteFunc(f.Sockets, func(path string) bool { return policy.Opens(path) })
	f.Sockets = f.Sockets[:min(len(f.Sockets), 50)]
	return f
}

// elsewhere returns the addresses of a service on another host: by its name, and by the addresses of the name.
func elsewhere(ctx context.Context, service string) (found []string) {
	host, port, err := net.SplitHostPort(service[strings.LastIndex(service, "/")+1:])
	if err != nil {
		return nil
	}
	addresses, _ := net.DefaultResolver.LookupHost(ctx, host) // the name itself is always tried
	found = list.Map(append(addresses, host), func(address string) string { return net.JoinHostPort(address, port) })
	slices.Sort(found)
	return slices.Compact(found)
}

// Bounded returns which limits were reached, "" for none.
func (ws *Workspace) Bounded(r sandbox.Reached) string {
	var lines []string
	if r.Killed > 0 {
		lines = append(lines, fmt.Sprintf("limits.memory (%s) was used up: the kernel ended processes of the command (%d)", ws.Memory, r.Killed))
	}
	if r.Refused > 0 {
		lines = append(lines, fmt.Sprintf("limits.processes (%d) was reached: it could not start further processes or threads (refused %s)",
			cmp.Or(ws.Processes, spec.DefaultProcesses), metric.Counted(int(r.Refused), "time")))
	}
	return strings.Join(lines, "; ")
}

// Unconnected returns which connections the sandbox's proxy refused, "" for none.
func Unconnected(refused []egress.Refusal) string {
	if len(refused) == 0 {
		return ""
	}
	const shown = 3
	names := list.Map(refused[:min(len(refused), shown)], func(r egress.Refusal) string { return Said(r.Target + " (" + r.Why + ")") })
	suffix := ""
	if len(refused) > shown {
		suffix = fmt.Sprintf(" and %d more", len(refused)-shown)
	}
	return "the sandbox blocked connections to " + strings.Join(names, ", ") + suffix
}

// Ensure returns a refusal if the spec requires a sandbox and a part of it does not hold.
func Ensure(s spec.Sandbox, m sandbox.Machine, closed []int, broken []sandbox.Broken) error {
	lacks := m.Lacks(sandbox.Network(s.Network), closed)
	if lacks == "" && len(broken) > 0 {
		lacks = "a part of it: " + sandbox.InWords(broken)
	}
	if lacks == "" || s.Use != spec.Required {
		return nil
	}
	missing := fault.New(fault.PreconditionFailed, "the spec requires a sandbox, but this machine lacks %s", lacks)
	if sandbox.OnlyBounds(broken) {
		return Refuse(missing.Advise("Run pawl where it can make cgroups (as root, or with systemd-run --user --scope pawl up), take limits.memory and limits.processes out of the spec, or set `sandbox.use` to auto, which says what is not limited. docs/reference/sandbox.md lists the machines."))
	}
	return Refuse(missing.
		Advise("Run the loop on Linux 5.12 or later with user namespaces or bubblewrap, or set `sandbox.use` to auto, which uses what is available and says what that is."))
}
