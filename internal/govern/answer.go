// Package govern holds the rules by which a loop may go on: how people's messages meet gates,
// when a budget or a stop condition ends a loop, and how each end is called. Pure: tables and
// functions over loop.State. Start at Answer for people, at Stop for the machine, at Ends for
// the names of ends.
package govern

import (
	"fmt"
	"slices"
	"strings"

	"pawl/internal/fault"
	"pawl/internal/loop"
)

// Reply is what a message did: the events it causes and one line for its sender.
type Reply struct {
	Text   string
	Events []loop.Event
}

// minHash is how many hex digits of a hash an approval must name (E3).
const minHash = 16

// answers is the contract's table of gates: which messages close which gate.
var answers = map[loop.GateKind][]string{
	loop.GatePause:      {"continue"},
	loop.GateBreakpoint: {"continue"},
	loop.GateContract:   {"approve", "reject"},
	loop.GateGuard:      {"continue", "reject"},
	loop.GateQuestion:   {"answer"},
}

// Answers returns the messages that close a gate of that kind.
func Answers(kind loop.GateKind) []string { return answers[kind] }

// Answer says what a message does to a loop in that state, or why it is refused. It changes
// nothing: the caller applies the events. An update's validator is this function, run dry. An
// answer is for the gate that is open now, never for the next one.
func Answer(s loop.State, name string, m loop.Message) (Reply, error) {
	if s.Status.Ended() {
		return Reply{}, fault.New(fault.GateClosed, "the loop has ended (%s)", s.Status)
	}
	switch name {
	case "pause":
		if s.PauseRequested || s.Status == loop.Paused {
			return Reply{Text: "already paused"}, nil
		}
		return received(name, m, "pausing", ""), nil
	case "halt":
		if s.HaltRequested != "" {
			return Reply{Text: "already halting"}, nil
		}
		return received(name, m, "halting", orElse(m.Note, "halted by "+orElse(m.By, "a person"))), nil
	case "steer":
		if strings.TrimSpace(m.Note) == "" {
			return Reply{}, fault.New(fault.InvalidMessage, "steer needs a note: what should the agent be told?")
		}
		return received(name, m, "the next agent call is told", ""), nil
	case "continue", "approve", "reject", "answer":
		return answerGate(s, name, m)
	}
	return Reply{}, fault.New(fault.InvalidMessage, "there is no message %q", name)
}

// answerGate checks an answer against the one gate that is open.
func answerGate(s loop.State, name string, m loop.Message) (Reply, error) {
	g := s.Gate
	if g == nil {
		if name == "continue" && s.PauseRequested {
			return Reply{}, fault.New(fault.LoopNotPaused, "the loop is still pausing").Advise("Wait until it is paused, then continue.")
		}
		if name == "continue" {
			return Reply{}, fault.New(fault.LoopNotPaused, "the loop is %s, there is nothing to continue", s.Status)
		}
		return Reply{}, fault.New(fault.GateClosed, "no gate is open: there is nothing to %s", name)
	}
	if m.Gate != "" && m.Gate != g.ID {
		return Reply{}, fault.New(fault.GateMismatch, "the answer is for gate %s, but %s waits", clip(m.Gate), g.ID)
	}
	if !slices.Contains(answers[g.Kind], name) {
		code := fault.GateMismatch
		if name == "continue" {
			code = fault.LoopNotPaused
		}
		return Reply{}, fault.New(code, "gate %s (%s) is answered by %s, not by %s", g.ID, g.Kind, strings.Join(g.Answers, " or "), name)
	}
	if err := checkHash(*g, name, m); err != nil {
		return Reply{}, err
	}
	if name == "answer" && !slices.Contains(g.Choices, m.Choice) {
		return Reply{}, fault.New(fault.InvalidMessage, "%q is not a choice here", clip(m.Choice)).
			Advise("Choose one of: " + strings.Join(g.Choices, ", ") + ".")
	}
	a := loop.Answer{Gate: g.ID, Message: name, Choice: m.Choice, By: m.By, Note: m.Note}
	return Reply{
		Text:   fmt.Sprintf("%s: %s", g.ID, name),
		Events: []loop.Event{{Type: loop.GateClosed, By: m.By, Note: m.Note, Answer: &a, Gate: g, Message: name}},
	}, nil
}

// checkHash holds an approval to exactly what was reviewed. A refusal may name no hash, but not
// a wrong one.
func checkHash(g loop.Gate, name string, m loop.Message) error {
	if g.Hash == "" || (name != "approve" && m.Hash == "") {
		return nil
	}
	if len(m.Hash) < minHash {
		return fault.New(fault.HashMismatch, "%s needs the hash of what is approved, at least its first %d digits", name, minHash).
			Advise("The gate's hash begins with " + g.Hash[:minHash] + ".")
	}
	if !strings.HasPrefix(strings.ToLower(g.Hash), strings.ToLower(m.Hash)) {
		return fault.New(fault.HashMismatch, "the hash %s is not that of what waits (%s)", clip(m.Hash), g.Hash[:minHash])
	}
	return nil
}

func received(name string, m loop.Message, text, reason string) Reply {
	return Reply{Text: text, Events: []loop.Event{{
		Type: loop.MessageReceived, Message: name, By: m.By, Note: m.Note, Reason: reason,
	}}}
}

func clip(s string) string { return loop.Clip(s, 80) }

func orElse(s, other string) string {
	if s != "" {
		return s
	}
	return other
}
