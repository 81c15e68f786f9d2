package workflows

import (
	"slices"

	"go.temporal.io/sdk/workflow"

	"pawl/internal/evidence"
	"pawl/internal/govern"
	"pawl/internal/loop"
	"pawl/internal/spec"
)

// IterationsView is what the query `iterations` answers: the last ones, how many there are, and
// the ledger commit that has them all.
type IterationsView struct {
	Iterations []loop.Iteration `json:"iterations"`
	Count      int              `json:"count"`
	Ledger     string           `json:"ledger"`
}

// EventsView is what the query `events` answers: the last ones, those after a sequence number
// where one is given.
type EventsView struct {
	Events []loop.Event `json:"events"`
	Seq    int64        `json:"seq"`
	Ledger string       `json:"ledger"`
}

// checkMessage decodes a message and asks what it does. It changes nothing.
func (r *run) checkMessage(name string, payload []byte) (govern.Reply, error) {
	m, err := loop.DecodeMessage(payload)
	if err != nil {
		return govern.Reply{}, err
	}
	s := r.State()
	if r.rules < refusesNotes {
		s.Guidance = nil // the oldest of too many is dropped
	}
	return govern.Answer(s, r.spec, name, m)
}

func (r *run) handleQueries(ctx workflow.Context) error {
	queries := []struct {
		name, description string
		handler           any
	}{
		{"state", "The loop's state", func() (loop.State, error) { return r.State(), nil }},
		{"iterations", "The last iterations", func() (IterationsView, error) {
			s := r.State()
			return IterationsView{s.Iterations, s.KeptCount + s.Discarded, s.Ledger}, nil
		}},
		{"events", "The last events; the argument, a number, asks for those after it", func(after int64) (EventsView, error) {
			return EventsView{Events: r.Since(after), Seq: r.State().Seq, Ledger: r.Ledger()}, nil
		}},
		{"gate", "What the loop waits for, if anything", func() (*loop.Gate, error) { return r.State().Gate, nil }},
		{"contract", "What was or is to be approved", func() (ContractView, error) { return r.contractView(), nil }},
	}
	for _, q := range queries {
		if err := workflow.SetQueryHandlerWithOptions(ctx, q.name, q.handler, workflow.QueryHandlerOptions{Description: q.description}); err != nil {
			return err
		}
	}
	return nil
}

// ContractView is what the query `contract` answers: everything that the hash binds, and what
// a person wants to know before approving it.
type ContractView struct {
	Contract    *loop.Contract    `json:"contract"`
	Spec        spec.Spec         `json:"spec"`
	Baseline    *evidence.Decimal `json:"baseline"`
	InScope     int               `json:"inScope"`
	Protections []string          `json:"protections"`
	Environment []string          `json:"environment"` // what of the worker's agent and commands get
}

func (r *run) contractView() ContractView {
	return ContractView{r.State().Contract, r.spec, r.State().Baseline, r.host.Opened.InScope, r.protections(), r.host.Opened.Environment}
}

// protections are those that hold everywhere, and those that the loop's host has told of.
func (r *run) protections() []string {
	return Protected(r.host.Opened.Protections)
}

// Protected are the protections of a host that has told of its own.
func Protected(byHost []string) []string {
	if len(byHost) == 0 {
		return Protections
	}
	return append(slices.Clone(Protections[:2]), byHost...)
}

// Protections are what holds whatever the agent does, the first two on every host; the last is of
// hosts that tell nothing about a sandbox.
var Protections = []string{
	"the agent works on a clone of its own; your branch and tree are never touched",
	"changes outside the scope and to sealed files never reach the branch",
	"no sandbox: agent and commands run with your rights on this machine, and could reach $PAWL_HOME, the engine and its UI",
}
