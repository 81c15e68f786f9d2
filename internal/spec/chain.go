package spec

import (
	"fmt"
	"slices"
	"strings"
)

// Substitute is an agent that stands in for another one: what it has different from that, as a role's agent has.
type Substitute struct {
	Use     string            `json:"use,omitempty"`
	Command Argv              `json:"command,omitzero"`
	Model   string            `json:"model,omitempty"`
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
	Vendor  string            `json:"vendor,omitempty"`
}

// Chain returns the agents that may make the calls of a role, in the order in which they are tried: the role's own, then
// those of its agent.fallback.
func (a Agent) Chain(role string) []Agent {
	own := a.For(role)
	chain := []Agent{own}
	for _, s := range own.Fallback {
		chain = append(chain, own.with(Override{Use: s.Use, Command: s.Command, Model: s.Model, Args: s.Args, Env: s.Env, Vendor: s.Vendor}))
	}
	for i := range chain {
		chain[i].Fallback = nil
	}
	return chain
}

// All returns every agent that the loop may call, those for all roles alike first.
func (a Agent) All() []Keyed {
	all := a.keyed("")
	for _, role := range Roles() {
		if _, own := a.Roles[role]; own {
			all = append(all, a.keyed(role)...)
		}
	}
	return all
}

// keyed is the chain of a role that has its own agent, or that of the loop, with the keys that they are by.
func (a Agent) keyed(role string) (all []Keyed) {
	key := "agent"
	if role != "" {
		key = "agent.roles." + role
	}
	for i, own := range a.Chain(role) {
		at := key
		if i > 0 && a.Roles[role].Fallback == nil { // it has the loop's
			at = "agent"
		}
		if i > 0 {
			at = fmt.Sprintf("%s.fallback[%d]", at, i-1)
		}
		all = append(all, Keyed{at, role, own})
	}
	return all
}

// Keyed is an agent, the key of the spec that names it, and the role that it is for, "" for all.
type Keyed struct {
	Key, Role string
	Agent
}

// providers are the vendors that call themselves so, in the names of models too: anthropic/claude-sonnet-4-5.
var providers = []string{"anthropic", "deepseek", "google", "mistral", "openai", "xai"}

// Maker returns whose models the agent calls, in lower case: what the spec says, else what its program or the name of
// its model does; "" where nobody knows.
func (a Agent) Maker() string {
	if a.Vendor != "" {
		return strings.ToLower(a.Vendor)
	}
	p, _ := a.Row()
	if vendor, _, named := strings.Cut(a.Model, "/"); p.NamesVendor && named && slices.Contains(providers, vendor) {
		return vendor
	}
	return p.Vendor
}

// writers are the roles that change source.
var writers = []string{RoleWriter, RoleFixer}

// otherVendor wants a reviewer of another vendor than all that may have written: who will have is not known beforehand.
func (s Spec) otherVendor(add func(key, what, want string)) {
	if !s.Reviewer.OtherVendor {
		return
	}
	const key = "reviewer.otherVendor"
	if _, asked := s.Agent.Roles[RoleReviewer]; !asked {
		add(key, "has no effect where no reviewer is asked", "agent.roles.reviewer")
		return
	}
	const name = "agent.vendor beside the agent, such as anthropic"
	wrote := map[string]bool{}
	for _, role := range writers {
		for _, a := range s.Agent.Chain(role) {
			if a.Maker() == "" {
				add(key, "can't be kept, since the vendor of the models that the "+role+" calls is unknown ("+strings.Join(a.Label(), " ")+")", name)
				return
			}
			wrote[a.Maker()] = true
		}
	}
	reviewers := s.Agent.Chain(RoleReviewer)
	for _, a := range reviewers {
		if a.Maker() == "" {
			add(key, "can't be kept, since the vendor of the models that the reviewer calls is unknown ("+strings.Join(a.Label(), " ")+")", name)
			return
		}
	}
	if !slices.ContainsFunc(reviewers, func(a Agent) bool { return !wrote[a.Maker()] }) {
		add(key, "can't be kept, since "+reviewers[0].Maker()+" may have written what it reviews", "an agent of another vendor in agent.roles.reviewer, or in its fallback")
	}
}
