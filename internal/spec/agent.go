package spec

import (
	"cmp"
	"maps"
	"slices"

	"pawl/internal/spec/agents"
	"pawl/internal/spec/kind"
)

// UseCommand is `agent.use` for a program that is not in pawl's table. The other values are in internal/spec/agents.
const UseCommand = agents.Command

// Agent is the program that makes the changes.
type Agent struct {
	Use     string              `json:"use"`
	Command Argv                `json:"command,omitzero"`
	Model   string              `json:"model,omitempty"`
	Args    []string            `json:"args,omitempty"`
	Env     map[string]string   `json:"env,omitempty"`
	Ideas   *bool               `json:"ideas,omitempty"`
	Roles   map[string]Override `json:"roles,omitempty"`

	// Vendor is the vendor of the models that it calls, if that does not follow from the program.
	Vendor string `json:"vendor,omitempty"`
	// Fallback lists the agents that make a call if the provider of the agents before them refuses it, in this order.
	Fallback []Substitute `json:"fallback,omitempty"`
	Meter    *string      `json:"meter,omitempty"` // auto or off; Metered says the default
}

// Override is how the agent of a role differs from the agent of the loop.
type Override struct {
	Use     string            `json:"use,omitempty"`
	Command Argv              `json:"command,omitzero"`
	Model   string            `json:"model,omitempty"`
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
	Ideas   *bool             `json:"ideas,omitempty"`

	Vendor   string       `json:"vendor,omitempty"`
	Fallback []Substitute `json:"fallback,omitempty"` // replaces the loop's list
}

// OffersIdeas reports whether the ideator is asked first: by default for every agent but a command.
func (a Agent) OffersIdeas() bool {
	agent := a.For(RoleIdeator)
	return or(agent.Ideas, agent.Use != UseCommand)
}

// For returns the agent of a role: the agent of the loop with the role's differences. If the role has another
// program, it takes over only the environment, the fallback and the meter. Model, arguments and command belong to the
// loop's program.
func (a Agent) For(role string) Agent { return a.with(a.Roles[role]) }

// with returns the agent with the differences of o.
func (a Agent) with(o Override) Agent {
	agent := a
	agent.Roles = nil
	if o.Use != "" && o.Use != a.Use {
		agent = Agent{Use: o.Use, Env: a.Env, Fallback: a.Fallback, Meter: a.Meter}
	}
	if !o.Command.IsZero() || o.Model != "" { // the models may be another vendor's
		agent.Vendor = ""
	}
	agent.Vendor, agent.Model, agent.Ideas = cmp.Or(o.Vendor, agent.Vendor), cmp.Or(o.Model, agent.Model), cmp.Or(o.Ideas, agent.Ideas)
	if o.Fallback != nil {
		agent.Fallback = o.Fallback
	}
	if !o.Command.IsZero() {
		agent.Command = o.Command
	}
	if o.Args != nil {
		agent.Args = o.Args
	}
	if len(o.Env) > 0 {
		merged := map[string]string{}
		maps.Copy(merged, agent.Env)
		maps.Copy(merged, o.Env)
		agent.Env = merged
	}
	return agent
}

// Programs returns the agents of the table that the agent's command is known to start: the one that agent.use names,
// the one behind the Agent Client Protocol, and those that the spec names for a command (sandbox.agents). In the
// sandbox each of them has a sign-in and a home of the loop's own.
func (a Agent) Programs(named []string) (programs []agents.Program) {
	switch a.Use {
	case agents.Command:
	case agents.ACP:
		if p, ok := a.behind(); ok {
			programs = append(programs, p)
		}
	default:
		if p, ok := agents.Lookup(a.Use); ok {
			return []agents.Program{p}
		}
	}
	for _, name := range named {
		if p, ok := agents.Lookup(name); ok && !slices.ContainsFunc(programs, func(o agents.Program) bool { return o.Name == name }) {
			programs = append(programs, p)
		}
	}
	return programs
}

// behind returns the agent of the table that the command starts with the Agent Client Protocol.
func (a Agent) behind() (agents.Program, bool) {
	return agents.OfACP(slices.Concat(a.Command.Args(), a.Args))
}

// Row returns the row of the table for agent.use, with what is known about an agent behind the Agent Client Protocol.
func (a Agent) Row() (p agents.Program, ok bool) {
	p, ok = agents.Lookup(a.Use)
	if behind, ok := a.behind(); ok && a.Use == agents.ACP {
		p.Tokens, p.Cost, p.Vendor, p.NamesVendor = behind.ByACP.Tokens, behind.ByACP.Cost, behind.Vendor, behind.NamesVendor
		p.Metering = behind.MeteringByACP()
	}
	return p, ok
}

// Metered reports whether the agent's program should reach its model through pawl's meter, if it supports that.
func (a Agent) Metered() bool { return or(a.Meter, Auto) != Off }

// Label returns a short name of the agent: its command, or the program and its model.
func (a Agent) Label() []string {
	label := a.Command.Args()
	if a.Use != UseCommand && len(label) == 0 {
		label = []string{a.Use}
	}
	if a.Model != "" {
		label = append(slices.Clone(label), "--model", a.Model)
	}
	return label
}

// The roles in which an agent is called.
const (
	RolePlanner  = kind.Planner
	RoleIdeator  = kind.Ideator
	RoleWriter   = kind.Writer
	RoleFixer    = kind.Fixer
	RoleReviewer = kind.Reviewer
)

// The permissions that a role may have (E1).
const (
	CanExecuteTasks = "canExecuteTasks"
	CanEditSource   = "canEditSource"
)

// permissionNames lists the permissions.
var permissionNames = []string{CanExecuteTasks, CanEditSource}

// writers lists the roles that change source.
var writers = []string{RoleWriter, RoleFixer}

// Roles returns all roles.
func Roles() []string {
	return []string{RolePlanner, RoleIdeator, RoleWriter, RoleFixer, RoleReviewer}
}

// Permitted returns the permissions of a role: those of the spec, else every role may execute tasks, and the writers
// may edit source. An unknown role has none (E1).
func (s Spec) Permitted(role string) []string {
	may, given := s.Permissions[role]
	switch {
	case given:
		return may
	case slices.Contains(writers, role):
		return permissionNames
	case slices.Contains(Roles(), role):
		return []string{CanExecuteTasks}
	}
	return nil
}
