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

// Attribute is a search attribute: its name, its type in Temporal (Keyword, Int, Double), and a function that returns
// its value for a loop: a string, an int64 or a float64, nil for no value.
type Attribute struct {
	Name, Type string
	Of         func(loop.State) any
}

// Attributes are the search attributes of a loop. Temporal knows them after a worker has registered them. A loop sets
// them only if its namespace has all of them, because an unknown attribute blocks a workflow.
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

// Published returns the values of a loop's search attributes by name, without those that have none.
func Published(s loop.State) map[string]any {
	out := map[string]any{}
	for _, a := range Attributes {
		if v := a.Of(s); v != nil {
			out[a.Name] = v
		}
	}
	return out
}

// PublishedOfSteward returns the values of a steward's search attributes. Its state stands for the phase. It may have
// several open gates: the attribute shows the kind of the oldest one, and none after the steward's end.
func PublishedOfSteward(s steward.State) map[string]any {
	out := map[string]any{Kind: kind.Steward.Name, Status: string(s.Status), Phase: string(s.State), Repo: s.Repo}
	if len(s.Gates) > 0 && !s.Status.Ended() {
		out[Gate] = string(s.Gates[0].Kind)
	}
	return out
}
