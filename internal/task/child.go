package task

import (
	"time"

	"pawl/internal/evidence"
)

// The events of which a child loop tells its steward.
const (
	IterationEnded = "iteration_ended"
	ChildAsks      = "gate_opened"
	ChildAnswered  = "gate_closed"
	ChildEnded     = "ended"
	// ChildStands is no event of a loop: it is what reading one finds that goes on and asks nothing.
	ChildStands = "stands"
	// ChildSleeps is that its agent's provider refuses work, until a time that the result has.
	ChildSleeps = "sleep_begun"
)

// ChildSignal is the name of the signal that a child loop sends its steward.
const ChildSignal = "child"

// ChildEvent is its payload.
type ChildEvent struct {
	Loop   string       `json:"loop"`
	Event  string       `json:"event"`
	Gate   *ChildGate   `json:"gate,omitempty"`
	Result *ChildResult `json:"result,omitempty"`
	Seq    int64        `json:"seq,omitempty"` // of the loop's own event, so that one that comes twice counts once
}

// ChildGate is what a child waits for.
type ChildGate struct {
	ID       string    `json:"id"`
	Kind     string    `json:"kind"`
	Summary  string    `json:"summary"`
	Hash     string    `json:"hash,omitempty"`
	Answers  []string  `json:"answers,omitempty"`
	OpenedAt time.Time `json:"openedAt"`
	By       string    `json:"by,omitempty"` // of a pause: who asked for it
}

// ChildResult is where a child stands: at the end of an iteration, or at its own.
type ChildResult struct {
	Status      string            `json:"status"`
	ExitStatus  string            `json:"exitStatus,omitempty"`
	ErrorCode   string            `json:"errorCode,omitempty"`
	Reason      string            `json:"reason,omitempty"`
	Iteration   int               `json:"iteration"`
	Kept        bool              `json:"kept,omitempty"` // of that iteration
	Description string            `json:"description,omitempty"`
	Metric      *evidence.Decimal `json:"metric,omitempty"`
	Tree        string            `json:"tree,omitempty"`
	Head        string            `json:"head,omitempty"`
	Base        string            `json:"base,omitempty"`
	Branch      string            `json:"branch,omitempty"`
	Usage       Usage             `json:"usage"`              // of the whole loop so far
	Steward     string            `json:"steward,omitempty"`  // that started it
	Approved    string            `json:"approved,omitempty"` // by whom its contract was approved: the steward, and for which plan
	Proposal    *ChildProposal    `json:"proposal,omitempty"`
	RateLimit   *RateLimit        `json:"rateLimit,omitempty"` // for which its last agent call failed
}

// ChildProposal is the proposal of a child.
type ChildProposal struct {
	Hash  string `json:"hash"`
	State string `json:"state"`
}

// Complete reports whether the event says what it has to: of which loop, and what came of it.
func (e ChildEvent) Complete() bool {
	switch e.Event {
	case ChildAsks, ChildAnswered:
		return e.Loop != "" && e.Gate != nil
	case IterationEnded, ChildEnded, ChildStands, ChildSleeps:
		return e.Loop != "" && e.Result != nil
	}
	return false
}
