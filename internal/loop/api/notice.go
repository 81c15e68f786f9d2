package api

import (
	"time"

	"pawl/internal/loop"
)

// Notify asks to notify one receiver of spec.notify.
type Notify struct {
	Ref    string `json:"ref,omitempty"` // "" if the loop has no workspace yet
	To     string `json:"to"`
	Notice Notice `json:"notice"`
}

// Notice is the text for people, and the JSON for a webhook or a command: a gate opened or was not answered in time,
// or the loop ended.
type Notice struct {
	Loop   string      `json:"loop"`
	Kind   string      `json:"kind"`
	Event  loop.Type   `json:"event"` // gate_opened, gate_escalated, or the event of the end
	Status loop.Status `json:"status"`
	Gate   *NoticeGate `json:"gate"` // null at the end
	How    []How       `json:"how"`  // the ways to answer the gate
	Reason string      `json:"reason"`
	Time   time.Time   `json:"time"`
}

// NoticeGate is the gate that waits.
type NoticeGate struct {
	ID      string        `json:"id"`
	Kind    loop.GateKind `json:"kind"`
	Summary string        `json:"summary"`
	Hash    string        `json:"hash,omitempty"`
	Answers []string      `json:"answers"`
}

// How is one way to answer: the signal or update with its JSON input, and a command that sends the same.
type How struct {
	Answer  string         `json:"answer"`
	Payload map[string]any `json:"payload"`
	Command string         `json:"command"`
}
