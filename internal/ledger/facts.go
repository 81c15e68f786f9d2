package ledger

import (
	"context"
	"fmt"

	"pawl/internal/git/store"
	"pawl/internal/loop"
	"pawl/internal/spec"
	"pawl/internal/spec/kind"
	"pawl/internal/steward/charter"
)

// Facts is what a host has to know to continue with a ledger, whatever its kind.
type Facts struct {
	Name   string // the workflow's ID
	Kind   string
	Status loop.Status
	Repo   string
	Onto   string // the branch from which the work started, as people name it
	Desk   string
	// Spec is the spec of the contract. Of a steward it has only the repository and the sandbox.
	Spec spec.Spec
	// Charter is the charter of a steward.
	Charter charter.Charter
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
		return Facts{
			Name: state.Steward, Kind: kind.Steward.Name, Status: state.Status, Repo: state.Repo, Onto: c.Repo.Base, Desk: state.Desk,
			Spec: spec.Spec{Repo: c.Repo, Sandbox: c.Sandbox()}, Charter: c,
		}, err
	}
	book := Open(s)
	state, err := book.State(ctx, head)
	if err != nil {
		return Facts{}, err
	}
	c, err := book.Contract(ctx, head)
	return Facts{
		Name: state.Loop, Kind: state.Kind, Status: state.Status, Repo: state.Repo, Onto: c.Branch, Desk: state.Desk, Spec: c.Spec,
	}, err
}
