package task

import (
	"time"

	"pawl/internal/metric"
)

// The events that a child loop reports to its steward.
const (
	IterationEnded = "iteration_ended"
	ChildAsks      = "gate_opened"
	ChildAnswered  = "gate_closed"
	ChildEnded     = "ended"
	// ChildStands is not an event of a loop: the steward has read a loop that is running and asks nothing.
	ChildStands = "stands"
	// ChildSleeps: the provider of its agent refuses work until a time in the result.
	ChildSleeps = "sleep_begun"
)

// ChildSignal is the name of the signal that a child loop sends its steward.
const ChildSignal = "child"

// ChildEvent is the payload of that signal.
type ChildEvent struct {
	Loop   string       `json:"loop"`
	Event  string       `json:"event"`
	Gate   *ChildGate   `json:"gate,omitempty"`
	Result *ChildResult `json:"result,omitempty"`
	Seq    int64        `json:"seq,omitempty"` // of the loop's own event, so an event that comes twice counts once
}

// ChildGate is the gate for which a child waits.
type ChildGate struct {
	ID       string    `json:"id"`
	Kind     string    `json:"kind"`
	Summary  string    `json:"summary"`
	Hash     string    `json:"hash,omitempty"`
	Answers  []string  `json:"answers,omitempty"`
	OpenedAt time.Time `json:"openedAt"`
	By       string    `json:"by,omitempty"` // who asked for it, if it is a pause
}

// ChildResult is the progress of a child at the end of an iteration, or at its end.
type ChildResult struct {
	Status      string          `json:"status"`
	ExitStatus  string          `json:"exitStatus,omitempty"`
	ErrorCode   string          `json:"errorCode,omitempty"`
	Reason      string          `json:"reason,omitempty"`
	Iteration   int             `json:"iteration"`
	Kept        bool            `json:"kept,omitempty"` // of that iteration
	Description string          `json:"description,omitempty"`
	Metric      *metric.Decimal `json:"metric,omitempty"`
	Tree        string          `json:"tree,omitempty"`
	Head        string          `json:"head,omitempty"`
	Base        string          `json:"base,omitempty"`
	Branch      string          `json:"branch,omitempty"`
	Usage       Usage           `json:"usage"`              // of the whole loop so far
	Steward     string          `json:"steward,omitempty"`  // that started the loop
	Approved    string          `json:"approved,omitempty"` // who approved its contract, and for which plan
	Proposal    *ChildProposal  `json:"proposal,omitempty"`
	RateLimit   *RateLimit      `json:"rateLimit,omitempty"` // because of which its last agent call failed
}

// ChildProposal is the proposal of a child.
type ChildProposal struct {
	Hash  string `json:"hash"`
	State string `json:"state"`
	// Marked says that only a person may approve it, and Why what is wrong with it.
	Marked bool   `json:"marked,omitempty"`
	Why    string `json:"why,omitempty"`
}

// Unseen reports whether only a person may approve the proposal, and none has.
func (p *ChildProposal) Unseen() bool { return p != nil && p.Marked && p.State == "open" }

// Complete reports whether the event has what its type requires: the loop, and a gate or a result.
func (e ChildEvent) Complete() bool {
	switch e.Event {
	case ChildAsks, ChildAnswered:
		return e.Loop != "" && e.Gate != nil
	case IterationEnded, ChildEnded, ChildStands, ChildSleeps:
		return e.Loop != "" && e.Result != nil
	}
	return false
}
