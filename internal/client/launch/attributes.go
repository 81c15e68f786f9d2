package launch

import (
	"pawl/internal/loop"
	"pawl/internal/spec/kind"
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

// Attribute is a search attribute: its name and its type in Temporal (Keyword, Int, Double).
type Attribute struct{ Name, Type string }

// Attributes are the search attributes of a loop. Temporal knows them after a worker has registered them. A loop sets
// them only if its namespace has all of them, because an unknown attribute blocks a workflow.
var Attributes = []Attribute{
	{Kind, "Keyword"}, {Status, "Keyword"}, {Phase, "Keyword"}, {Gate, "Keyword"}, {Repo, "Keyword"}, {Iteration, "Int"}, {Best, "Double"},
}

// Published returns the values of a loop's search attributes by name, without those that have none: strings, an int64
// and a float64.
func Published(s loop.State) map[string]any {
	out := map[string]any{Kind: s.Kind, Status: string(s.Status), Phase: s.Stage(), Repo: s.Repo, Iteration: int64(s.Iteration)}
	if s.Gate != nil {
		out[Gate] = string(s.Gate.Kind)
	}
	if best := s.HeadBest(); best != nil {
		out[Best] = best.Float()
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
