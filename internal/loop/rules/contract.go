package rules

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"pawl/internal/lib/must"
	"pawl/internal/loop"
	"pawl/internal/metric"
	"pawl/internal/spec"
	"pawl/internal/spec/kind"
)

// Contract is the contract as a person approves it: everything that its hash covers.
type Contract struct {
	Spec spec.Spec `json:"spec"`
	// Policy contains the rules that guard.policy chose, including the defaults for keys that the spec leaves out. So
	// another version of pawl judges by the same rules.
	Policy spec.Policy `json:"policy"`
	Base   string      `json:"base"`
	Branch string      `json:"branch,omitempty"` // to which the work is to be applied
	Sealed []loop.Seal `json:"sealed"`
	Tools  []string    `json:"tools"`
	Plan   string      `json:"plan,omitempty"` // the SHA-256 of the planner's plan
}

// Draw returns the contract of a spec with these sealed files.
func Draw(s spec.Spec, base, branch string, sealed []loop.Seal) Contract {
	return Contract{Spec: s, Policy: s.Rules(), Base: base, Branch: branch, Sealed: sealed, Tools: s.Approvals.Tools}
}

// Rules returns the spec with the policy as it was approved.
func (c Contract) Rules() spec.Spec {
	policies := map[string]spec.Policy{}
	maps.Copy(policies, c.Spec.Policies)
	policies[c.Spec.Guard.Policy] = c.Policy
	c.Spec.Policies = policies
	return c.Spec
}

// Hash returns the SHA-256 of the contract in hex. It does not cover who started the loop, and from where.
func (c Contract) Hash() string {
	c.Spec.Session = nil
	return digest(must.Have(json.Marshal(c))) // only plain values are in it
}

// Amended returns the contract with an approved amendment, or an error if the spec can't be amended so. sealed are
// the sealed files of the amended spec.
func (c Contract) Amended(fragment []byte, sealed []loop.Seal) (Contract, error) {
	s, err := c.Spec.Amend(fragment, slices.Concat(spec.Extendable, spec.Amendable, spec.Approvable))
	if err != nil {
		return Contract{}, fmt.Errorf("amending the contract: %w", err)
	}
	c.Spec, c.Sealed, c.Tools = s, sealed, s.Approvals.Tools
	return c, nil
}

// AskHash returns the hash that binds an answer to a gate whose content has no hash of its own: a hash over the
// contract in force and the gate as it stands.
func AskHash(contract *loop.Contract, g loop.Gate, b loop.Budget) string {
	var hash string
	if contract != nil {
		hash = contract.Hash
	}
	return digest(must.Have(json.Marshal([]any{hash, g.Kind, g.Summary, b}))) // only plain values are in it
}

func digest(b []byte) string { return fmt.Sprintf("%x", sha256.Sum256(b)) }

// SpecNotes returns what a person should know about a spec before approving it, besides what its commands show.
func SpecNotes(s spec.Spec) (notes []string) {
	k, err := kind.Of(s.Kind)
	if err != nil {
		return nil
	}
	if k.Reference && s.Guard.Command == "" {
		notes = append(notes, "there is no guard: a change that improves the number is kept, even if it breaks something else")
	}
	return notes
}

// Missing names all unmet preconditions of autonomy at once (A1). The contract is approved when nothing is missing.
func Missing(s loop.State, sp spec.Spec, opened bool) []string {
	var missing []string
	for _, c := range []struct {
		met  bool
		what string
	}{
		{sp.Mode == spec.ModeMission, "the mode mission (`mode` is " + sp.Mode + ")"},
		{len(sp.Approvals.Tools) > 0, "approved tools (`approvals.tools`)"},
		{s.Budget != nil && s.Budget[loop.Iterations].Limit != nil, "initialised budgets (`limits`)"},
		{opened && s.Base != "", "a place for checkpoints (store and ledger)"},
		{s.Contract != nil && s.Contract.Hash != "", "a plan that can be approved (the contract)"},
	} {
		if !c.met {
			missing = append(missing, c.what)
		}
	}
	return missing
}

// Limits converts the spec's limits into the units of the budget.
func Limits(s spec.Spec) map[loop.Resource]metric.Decimal {
	l := s.Limits
	out := map[loop.Resource]metric.Decimal{
		loop.Iterations: loop.Count(int64(l.Iterations)),
		loop.ActiveTime: loop.Count(l.ActiveTime.D().Milliseconds()),
		loop.ToolCalls:  loop.Count(int64(l.ToolCalls)),
	}
	if l.Tokens != nil {
		out[loop.Tokens] = loop.Count(*l.Tokens)
	}
	if l.CostUSD != nil {
		out[loop.CostUSD] = *l.CostUSD
	}
	if l.WallClock != nil {
		out[loop.WallClock] = loop.Count(l.WallClock.D().Milliseconds())
	}
	return out
}

// Protected returns the protections that a host has reported.
func Protected(byHost []string) []string {
	if len(byHost) == 0 {
		return Protections
	}
	return append(slices.Clone(Protections[:2]), byHost...)
}

// Protections hold whatever the agent does. The first two hold on every host; the last is for hosts that report nothing
// about a sandbox.
var Protections = []string{
	"the agent works on a clone of its own; what it does there touches neither your branch nor your tree",
	"changes outside the scope and to sealed files never reach the branch",
	"no sandbox: agent and commands run with your rights on this machine, and could reach $PAWL_HOME, the engine and its UI, and write your repository",
}
