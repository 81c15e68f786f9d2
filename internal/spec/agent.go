package spec

import (
	"slices"

	"pawl/internal/kind"
	"pawl/internal/program"
)

// UseCommand is the value of `agent.use` for a program that pawl knows nothing of. The others are in
// internal/program.
const UseCommand = program.Command

// Agent says who makes the changes.
type Agent struct {
	Use     string              `json:"use"`
	Command Argv                `json:"command,omitzero"`
	Model   string              `json:"model,omitempty"`
	Args    []string            `json:"args,omitempty"`
	Env     map[string]string   `json:"env,omitempty"`
	Ideas   *bool               `json:"ideas,omitempty"`
	Roles   map[string]Override `json:"roles,omitempty"`

	// Vendor is whose models it calls, where that does not follow from the program.
	Vendor string `json:"vendor,omitempty"`
	// Fallback are the agents that make a call which the provider of those before them refuses, in their order.
	Fallback []Substitute `json:"fallback,omitempty"`
	Meter    *string      `json:"meter,omitempty"` // auto or off; Metered has the default
}

// Override is what a role has different from the agent of the loop.
type Override struct {
	Use     string            `json:"use,omitempty"`
	Command Argv              `json:"command,omitzero"`
	Model   string            `json:"model,omitempty"`
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
	Ideas   *bool             `json:"ideas,omitempty"`

	Vendor   string       `json:"vendor,omitempty"`
	Fallback []Substitute `json:"fallback,omitempty"` // in the place of the loop's
}

// OffersIdeas says whether the ideator is asked first: presets are unless told otherwise, a
// command is not.
func (a Agent) OffersIdeas() bool {
	own := a.For(RoleIdeator)
	if own.Ideas != nil {
		return *own.Ideas
	}
	return own.Use != UseCommand
}

// For returns the agent of a role: that of the loop with what the role has different. A role
// with another program takes nothing over from the loop's but the environment, since model,
// arguments and command mean another program's.
func (a Agent) For(role string) Agent { return a.with(a.Roles[role]) }

// with is the agent with what another one has different.
func (a Agent) with(o Override) Agent {
	own := a
	own.Roles = nil
	if o.Use != "" && o.Use != a.Use {
		own = Agent{Use: o.Use, Env: a.Env, Fallback: a.Fallback, Meter: a.Meter}
	}
	if !o.Command.IsZero() || o.Model != "" { // which may be somebody else's
		own.Vendor = ""
	}
	if o.Vendor != "" {
		own.Vendor = o.Vendor
	}
	if o.Fallback != nil {
		own.Fallback = o.Fallback
	}
	if !o.Command.IsZero() {
		own.Command = o.Command
	}
	if o.Model != "" {
		own.Model = o.Model
	}
	if o.Args != nil {
		own.Args = o.Args
	}
	if o.Ideas != nil {
		own.Ideas = o.Ideas
	}
	if len(o.Env) > 0 {
		merged := map[string]string{}
		for _, env := range []map[string]string{own.Env, o.Env} {
			for name, value := range env {
				merged[name] = value
			}
		}
		own.Env = merged
	}
	return own
}

// Programs are the agents of the table that the agent's command is known to start: what agent.use names, the one that it
// speaks to by the Agent Client Protocol, and those that the spec names for a command (sandbox.agents). They have a
// sign-in and a home of the loop's own in the sandbox.
func (a Agent) Programs(named []string) (all []program.Program) {
	switch a.Use {
	case program.Command:
	case program.ACP:
		if p, known := a.behind(); known {
			all = append(all, p)
		}
	default:
		if p, known := program.Lookup(a.Use); known {
			return []program.Program{p}
		}
	}
	for _, name := range named {
		if p, known := program.Lookup(name); known && !slices.ContainsFunc(all, func(o program.Program) bool { return o.Name == name }) {
			all = append(all, p)
		}
	}
	return all
}

// behind is the agent of the table that the command starts where it speaks the Agent Client Protocol.
func (a Agent) behind() (program.Program, bool) {
	return program.OfACP(slices.Concat(a.Command.Args(), a.Args))
}

// Row is that of the table for agent.use, with what is known of the agent behind the Agent Client Protocol.
func (a Agent) Row() (p program.Program, known bool) {
	p, known = program.Lookup(a.Use)
	if of, is := a.behind(); is && a.Use == program.ACP {
		p.Tokens, p.Cost, p.Vendor, p.NamesVendor = of.ByACP.Tokens, of.ByACP.Cost, of.Vendor, of.NamesVendor
		p.Metering = of.MeteringByACP()
	}
	return p, known
}

// Metered reports whether the agent's program is to speak to its model through pawl's meter, where it can be made to.
func (a Agent) Metered() bool { return a.Meter == nil || *a.Meter != Off }

// Label names the agent in a few words: its command, or the program and its model.
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

// What a role may be permitted (E1).
const (
	CanExecuteTasks = "canExecuteTasks"
	CanEditSource   = "canEditSource"
)

// permissionNames lists what there is to permit.
var permissionNames = []string{CanExecuteTasks, CanEditSource}

// byRole is what a role may do unless the spec says otherwise.
var byRole = []struct {
	role string
	may  []string
}{
	{RolePlanner, []string{CanExecuteTasks}},
	{RoleIdeator, []string{CanExecuteTasks}},
	{RoleWriter, []string{CanExecuteTasks, CanEditSource}},
	{RoleFixer, []string{CanExecuteTasks, CanEditSource}},
	{RoleReviewer, []string{CanExecuteTasks}},
}

// Roles lists the roles there are.
func Roles() (all []string) {
	for _, r := range byRole {
		all = append(all, r.role)
	}
	return all
}

// Permitted returns what a role may do: what the spec says of it, else what its kind of work
// needs. A role that there is not may do nothing (E1).
func (s Spec) Permitted(role string) []string {
	if may, given := s.Permissions[role]; given {
		return may
	}
	for _, r := range byRole {
		if r.role == role {
			return r.may
		}
	}
	return nil
}
