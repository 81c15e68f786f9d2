package launch

import (
	"encoding/json"
	"fmt"

	"pawl/internal/loop"
	"pawl/internal/metric"
	"pawl/internal/spec"
	"pawl/internal/steward"
)

// IterationsView answers the query `iterations`: the last ones, their number, and the ledger commit that has all.
type IterationsView struct {
	Iterations []loop.Iteration `json:"iterations"`
	Count      int              `json:"count"`
	Ledger     string           `json:"ledger"`
}

// EventsView is the answer to the query `events`: the last ones, or those after a given sequence number.
type EventsView struct {
	Events []loop.Event `json:"events"`
	Seq    int64        `json:"seq"`
	Ledger string       `json:"ledger"`
}

// ContractView answers the query `contract`: all that the hash covers, and more that a person wants to know before.
type ContractView struct {
	Contract    *loop.Contract  `json:"contract"`
	Spec        spec.Spec       `json:"spec"`
	Baseline    *metric.Decimal `json:"baseline"`
	InScope     int             `json:"inScope"`
	Protections []string        `json:"protections"`
	Claims      int             `json:"claims,omitempty"` // how many claims about the sandbox were tried
	Lacks       []string        `json:"lacks,omitempty"`  // what the sandbox does not protect
	Notes       []string        `json:"notes,omitempty"`  // what a person should know before approving
	Environment []string        `json:"environment"`      // the worker's variables that the agent and the commands get
}

// TasksView is the answer to the query `tasks`: tasks from a position on, and how many there are.
type TasksView struct {
	Tasks  []steward.Task `json:"tasks"`
	Count  int            `json:"count"`
	Next   int            `json:"next,omitempty"` // where the rest begins, 0 if there is none
	Ledger string         `json:"ledger"`
}

// GatesView is the answer to the query `gates`.
type GatesView struct {
	Gates  []loop.Gate `json:"gates"`
	Count  int         `json:"count"`
	Next   int         `json:"next,omitempty"` // where the rest begins, 0 if there is none
	Ledger string      `json:"ledger"`
}

// Number reads the argument of a query, a whole number; 0 without one.
func Number(argument json.RawMessage) (int, error) {
	return read[int](argument, "a whole number such as 10")
}

// Text reads the argument of a query, a text; "" without one.
func Text(argument json.RawMessage) (string, error) {
	return read[string](argument, `a text such as "retry"`)
}

// read reads the argument of a query, which, if it took a T itself, would answer a mistake with Go's types.
func read[T any](argument json.RawMessage, want string) (value T, err error) {
	if len(argument) > 0 && json.Unmarshal(argument, &value) != nil {
		return *new(T), fmt.Errorf("the argument must be %s, not %s", want, loop.Clip(string(argument), 80))
	}
	return value, nil
}
