package launch

import (
	"pawl/internal/evidence"
	"pawl/internal/loop"
	"pawl/internal/spec"
	"pawl/internal/steward"
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

// TasksView is what the query `tasks` answers: tasks from a position on, and how many there are.
type TasksView struct {
	Tasks  []steward.Task `json:"tasks"`
	Count  int            `json:"count"`
	Next   int            `json:"next,omitempty"` // where the rest begins, 0 where there is none
	Ledger string         `json:"ledger"`
}

// GatesView is what the query `gates` answers.
type GatesView struct {
	Gates  []loop.Gate `json:"gates"`
	Count  int         `json:"count"`
	Next   int         `json:"next,omitempty"` // where the rest begins, 0 where there is none
	Ledger string      `json:"ledger"`
}
