package launch

import (
	"pawl/internal/kind"
	"pawl/internal/loop"
	"pawl/internal/steward"
)

// The search attributes of the contract.
const (
	Kind      = "PawlKind"
	Status    = "PawlStatus"
	Phase     = "PawlPhase"
	Gate      = "PawlGate"
	Repo      = "PawlRepo"
	Iteration = "PawlIteration"
	Best      = "PawlBest"
)

// Attribute is a search attribute: its name, its type as Temporal calls it (Keyword, Int, Double),
// and what it says of a loop: a string, an int64 or a float64, nil where there is nothing to say.
type Attribute struct {
	Name, Type string
	Of         func(loop.State) any
}

// Attributes are the search attributes of a loop. Temporal knows them after a worker has registered
// them; a loop sets them only where its namespace has them all, since one that it lacks wedges a
// workflow.
var Attributes = []Attribute{
	{Kind, "Keyword", func(s loop.State) any { return s.Kind }},
	{Status, "Keyword", func(s loop.State) any { return string(s.Status) }},
	{Phase, "Keyword", func(s loop.State) any { return s.Stage() }},
	{Gate, "Keyword", func(s loop.State) any {
		if s.Gate == nil {
			return nil
		}
		return string(s.Gate.Kind)
	}},
	{Repo, "Keyword", func(s loop.State) any { return s.Repo }},
	{Iteration, "Int", func(s loop.State) any { return int64(s.Iteration) }},
	{Best, "Double", func(s loop.State) any {
		best := s.HeadBest()
		if best == nil {
			return nil
		}
		return best.Float()
	}},
}

// Published is what the search attributes say of a loop, by name; what has nothing to say is left out.
func Published(s loop.State) map[string]any {
	out := map[string]any{}
	for _, a := range Attributes {
		if v := a.Of(s); v != nil {
			out[a.Name] = v
		}
	}
	return out
}

// PublishedOfSteward is what they say of a steward: its state stands for the phase. Its gates are many;
// the kind of the one that has waited longest is shown. Where it has ended, none waits.
func PublishedOfSteward(s steward.State) map[string]any {
	out := map[string]any{Kind: kind.Steward.Name, Status: string(s.Status), Phase: string(s.State), Repo: s.Repo}
	if len(s.Gates) > 0 && !s.Status.Ended() {
		out[Gate] = string(s.Gates[0].Kind)
	}
	return out
}
