package spec

import (
	"fmt"
	"slices"
	"strings"
)

// Substitute is an agent that replaces another one: it has only the differences, as the agent of a role does.
type Substitute struct {
	Use     string            `json:"use,omitempty"`
	Command Argv              `json:"command,omitzero"`
	Model   string            `json:"model,omitempty"`
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
	Vendor  string            `json:"vendor,omitempty"`
}

// Chain returns the agents that may make the calls of a role, in the order in which they are tried: the role's own
// agent, then those of its agent.fallback.
func (a Agent) Chain(role string) []Agent {
	agent := a.For(role)
	chain := []Agent{agent}
	for _, s := range agent.Fallback {
		chain = append(chain, agent.with(Override{Use: s.Use, Command: s.Command, Model: s.Model, Args: s.Args, Env: s.Env, Vendor: s.Vendor}))
	}
	for i := range chain {
		chain[i].Fallback = nil
	}
	return chain
}

// All returns every agent that the loop may call. Those that all roles share come first.
func (a Agent) All() []Keyed {
	keyed := a.keyed("")
	for _, role := range Roles() {
		if _, hasOwn := a.Roles[role]; hasOwn {
			keyed = append(keyed, a.keyed(role)...)
		}
	}
	return keyed
}

// keyed returns the chain of a role with its own agent, or for "" that of the loop, each with its key in the spec.
func (a Agent) keyed(role string) (list []Keyed) {
	key := "agent"
	if role != "" {
		key = "agent.roles." + role
	}
	for i, agent := range a.Chain(role) {
		chainKey := key
		if i > 0 && a.Roles[role].Fallback == nil { // the role has the loop's fallback
			chainKey = "agent"
		}
		if i > 0 {
			chainKey = fmt.Sprintf("%s.fallback[%d]", chainKey, i-1)
		}
		list = append(list, Keyed{chainKey, role, agent})
	}
	return list
}

// Keyed is an agent, the key of the spec that names it, and its role; "" is all roles.
type Keyed struct {
	Key, Role string
	Agent
}

// providers lists the vendors that names of models use as a prefix: anthropic/claude-sonnet-4-5.
var providers = []string{"anthropic", "deepseek", "google", "mistral", "openai", "xai"}

// Maker returns the vendor of the models that the agent calls, in lower case: as the spec says it, else as its
// program or the name of its model does. It returns "" if it is unknown.
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

// otherVendor adds a problem if the reviewer may be of the same vendor as an agent that may have written. Which of
// these agents will write is not known before.
func (s Spec) otherVendor(add func(key, text, want string)) {
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
	for _, role := range []string{RoleWriter, RoleFixer, RoleReviewer} {
		for _, a := range s.Agent.Chain(role) {
			if a.Maker() == "" {
				add(key, "can't be kept, since the vendor of the models that the "+role+" calls is unknown ("+strings.Join(a.Label(), " ")+")", name)
				return
			}
			wrote[a.Maker()] = wrote[a.Maker()] || role != RoleReviewer
		}
	}
	reviewers := s.Agent.Chain(RoleReviewer)
	if !slices.ContainsFunc(reviewers, func(a Agent) bool { return !wrote[a.Maker()] }) {
		add(key, "can't be kept, since "+reviewers[0].Maker()+" may have written what it reviews", "an agent of another vendor in agent.roles.reviewer, or in its fallback")
	}
}
