package loop

import (
	"strings"

	"go.temporal.io/sdk/workflow"

	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/internal/loop/rules"
	"pawl/internal/spec"
)

// relay has the agents of a role with several that were refused since the loop last slept.
type relay struct {
	places  []int
	refused []api.Outcome
}

// hand chooses the agent that makes the call.
func (r *run) hand(ctx workflow.Context, call *api.Call, tried relay) {
	chain := r.spec.Agent.Chain(call.Role)
	if eligible := r.eligible(call.Role); len(chain) > 1 {
		call.Substitute, _ = rules.NextAgent(chain, eligible, tried.places, r.State().Refusing, workflow.Now(ctx))
	}
}

func (r *run) eligible(role string) []int { return rules.Eligible(r.spec, role, r.State().Writers) }

// caller returns the agent that makes a call. An amendment may have shortened the chain.
func (r *run) caller(call *api.Call) spec.Agent {
	chain := r.spec.Agent.Chain(call.Role)
	return chain[min(call.Substitute, len(chain)-1)]
}

// passOn lets another agent make a refused call, if there is one and waiting is not better. If all were refused, out
// becomes the refusal that the loop waits for, and its agent the caller.
func (r *run) passOn(ctx workflow.Context, call *api.Call, tried *relay, out *api.Outcome) (passed bool) {
	now := workflow.Now(ctx).UTC()
	chain, eligible := r.spec.Agent.Chain(call.Role), r.eligible(call.Role)
	if len(eligible) < 2 || !rules.PassesOn(out.Class, *out.Refused, now) {
		return false
	}
	previous := r.caller(call)
	tried.places, tried.refused = append(tried.places, call.Substitute), append(tried.refused, *out)
	next, ok := rules.NextAgent(chain, eligible, tried.places, r.State().Refusing, now)
	if !ok {
		gentlest := rules.Gentlest(tried.refused)
		*out, call.Substitute = tried.refused[gentlest], tried.places[gentlest]
		*tried = relay{}
		return false
	}
	r.Emit(ctx, loop.Event{
		Type: loop.AgentReplaced, Role: call.Role, Agent: rules.Name(previous), Note: rules.Name(chain[next]), Outcome: string(out.Class), Reason: out.Refused.Said,
		Until: rules.RestsUntil(*out.Refused, now),
	})
	return true
}

// signed records who made a call, if a role has several agents or the reviewer's vendor depends on it.
func (r *run) signed(e loop.Event, call *api.Call) loop.Event {
	if call == nil {
		return e
	}
	a := r.caller(call)
	if len(r.spec.Agent.Chain(call.Role)) > 1 {
		e.Agent = rules.Name(a)
	}
	if r.spec.Reviewer.OtherVendor && (call.Role == spec.RoleWriter || call.Role == spec.RoleFixer) {
		e.Agent, e.Vendor = rules.Name(a), a.Maker()
	}
	return e
}

// commandOf returns the command of an agent as it is shown.
func commandOf(a spec.Agent) string {
	label := a.Label()
	if len(label) == 3 && label[0] == "sh" && label[1] == "-c" {
		label = label[2:]
	}
	return strings.Join(label, " ")
}
