package ledger

import (
	"context"
	"encoding/json"
	"fmt"

	"pawl/internal/kind"
	"pawl/internal/loop"
	"pawl/internal/spec"
	"pawl/internal/store"
)

// Facts is what a host has to know to continue with a ledger, whatever its kind.
type Facts struct {
	Name   string // the workflow's ID
	Kind   string
	Status loop.Status
	Repo   string
	Onto   string // the branch from which the work started, as people name it
	Desk   string
	// Input is the input of its workflow: the spec of the contract, or the charter.
	Input   json.RawMessage
	Remote  bool
	Setup   string
	Keep    []string
	Sandbox spec.Sandbox
	// Memory, Processes and DeskBytes are the spec's limits of everything that runs at the same time; 0 if it sets
	// none.
	Memory    spec.Size
	Processes int
	DeskBytes spec.Size
}

// Steward reports whether the ledger is a steward's.
func (f Facts) Steward() bool { return f.Kind == kind.Steward.Name }

// About returns the facts at head.
func About(ctx context.Context, s *store.Store, head string) (Facts, error) {
	is, err := isSteward(ctx, s, head)
	if err != nil {
		return Facts{}, fmt.Errorf("reading the ledger: %w", err)
	}
	if is {
		book := OpenSteward(s)
		state, err := book.State(ctx, head)
		if err != nil {
			return Facts{}, err
		}
		c, err := book.Charter(ctx, head)
		if err != nil {
			return Facts{}, err
		}
		return Facts{
			Name: state.Steward, Kind: kind.Steward.Name, Status: state.Status, Repo: state.Repo, Onto: c.Repo.Base, Desk: state.Desk,
			Input: input(c), Remote: c.Repo.Remote(), Sandbox: c.Sandbox(),
		}, nil
	}
	book := Open(s)
	state, err := book.State(ctx, head)
	if err != nil {
		return Facts{}, err
	}
	c, err := book.Contract(ctx, head)
	if err != nil {
		return Facts{}, err
	}
	f := Facts{
		Name: state.Loop, Kind: state.Kind, Status: state.Status, Repo: state.Repo, Onto: c.Branch, Desk: state.Desk,
		Input: input(c.Spec), Remote: c.Spec.Repo.Remote(), Setup: c.Spec.Setup.Command, Keep: c.Spec.Judge.Keep, Sandbox: c.Spec.Sandbox,
	}
	if limit := c.Spec.Limits.Memory; limit != nil {
		f.Memory = *limit
	}
	if limit := c.Spec.Limits.Processes; limit != nil {
		f.Processes = *limit
	}
	if limit := c.Spec.Limits.DeskBytes; limit != nil {
		f.DeskBytes = *limit
	}
	return f, nil
}

func input(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // callers pass only plain values
	}
	return b
}
