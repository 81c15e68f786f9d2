package loop

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"

	"pawl/internal/fault"
)

// Message is what a person sends to a loop, by signal or by update: one JSON object. Every field is optional unless
// the gate needs it.
type Message struct {
	By     string `json:"by,omitempty"`
	Note   string `json:"note,omitempty"`
	Gate   string `json:"gate,omitempty"`
	Hash   string `json:"hash,omitempty"`
	Choice string `json:"choice,omitempty"`
	// Apply says how an approved diff is applied at once: ff, merge or squash.
	Apply string `json:"apply,omitempty"`
	// Mode is the new mode of setMode.
	Mode string `json:"mode,omitempty"`
	// Limits are the limits that extend raises; Spec is the fragment of amend. Both have the spec's own keys.
	Limits json.RawMessage `json:"limits,omitempty"`
	Spec   json.RawMessage `json:"spec,omitempty"`
}

// The names of the messages.
const (
	MessageApprove  = "approve"
	MessageReject   = "reject"
	MessageAnswer   = "answer"
	MessageAmend    = "amend"
	MessageExtend   = "extend"
	MessagePause    = "pause"
	MessageContinue = "continue"
	MessageHalt     = "halt"
	MessageSteer    = "steer"
	MessageSetMode  = "setMode"
)

// Messages are the names of the messages that a loop accepts, in the order in which people see them.
var Messages = []MessageName{
	{MessageApprove, "Approve what waits at a gate: {\"hash\": \"<at least 16 hex digits>\", \"by\": \"you\"}"},
	{MessageReject, "Refuse what waits at a gate: {\"by\": \"you\", \"note\": \"why\"}"},
	{MessageAnswer, "Answer a question: {\"choice\": \"<one of those listed>\", \"note\": \"\"}"},
	{MessageAmend, "Correct a command that is at fault, or approve a tool that was denied (approvals.tools): {\"spec\": {\"verify\": {\"command\": \"...\"}}}; the new contract is approved next"},
	{MessageExtend, "Raise a budget that is used up: {\"limits\": {\"iterations\": 20}, \"hash\": \"<the gate's>\"}"},
	{MessagePause, "Pause now; the step that is running is interrupted and repeated on continue. {\"choice\": \"step\"} pauses before the next step, {\"choice\": \"iteration\"} before the next iteration, and interrupts nothing"},
	{MessageContinue, "Go on after a pause, a breakpoint or a block; withdraw a pause that has not come yet"},
	{MessageHalt, "End the loop for good, with its report"},
	{MessageSteer, "Guidance for the next agent call: {\"note\": \"...\"}"},
	{MessageSetMode, "Change the mode; away from mission ends the loop for good: {\"mode\": \"plan\"}"},
}

// When a pause begins: at once, interrupting the running step; before the next step; before the next iteration.
const (
	PauseNow       = ""
	PauseStep      = "step"
	PauseIteration = "iteration"
)

// MessageName is a message's name and what it does.
type MessageName struct{ Name, Description string }

// maxText is the largest size of a text field of a message, in bytes.
const maxText = 4096

// DecodeMessage reads a loop message from its payload. Errors are those of Decode.
func DecodeMessage(payload []byte) (Message, error) {
	return Decode(payload, func(m Message) []Text {
		return []Text{{"by", m.By}, {"note", m.Note}, {"gate", m.Gate}, {"hash", m.Hash}, {"choice", m.Choice},
			{"apply", m.Apply}, {"mode", m.Mode}, {"limits", string(m.Limits)}, {"spec", string(m.Spec)}}
	})
}

// Text is a text field of a message, whose length is limited.
type Text struct{ Name, Value string }

// Decode reads the payload of a message to a loop or a steward. Nothing, null and {} are the empty message. Anything
// else that is not one object of known fields is an error, INVALID_MESSAGE, and Decode never guesses. texts returns
// the fields whose length is limited.
func Decode[M any](payload []byte, texts func(M) []Text) (M, error) {
	var m, zero M
	if len(bytes.TrimSpace(payload)) == 0 {
		return zero, nil
	}
	d := json.NewDecoder(bytes.NewReader(payload))
	d.DisallowUnknownFields()
	if err := d.Decode(&m); err != nil {
		return zero, fault.New(fault.InvalidMessage, "the payload is not a message: %s", Plain(err))
	}
	if d.More() {
		return zero, fault.New(fault.InvalidMessage, "the payload is more than one JSON object")
	}
	for _, f := range texts(m) {
		if len(f.Value) > maxText {
			return zero, fault.New(fault.InvalidMessage, "%s is %d bytes long; %d are allowed", f.Name, len(f.Value), maxText)
		}
	}
	return m, nil
}

// Plain returns what is wrong with a payload, without Go's type names.
func Plain(err error) string {
	t, mistyped := errors.AsType[*json.UnmarshalTypeError](err)
	switch {
	case mistyped && t.Field != "":
		want := "a text"
		switch t.Type.Kind() {
		case reflect.Int:
			want = "a whole number"
		case reflect.Struct:
			want = "an object"
		}
		return fmt.Sprintf("%s must be %s, and not of type %s", t.Field, want, t.Value)
	case mistyped:
		return fmt.Sprintf("it must be an object, and not of type %s", t.Value)
	}
	return strings.TrimPrefix(err.Error(), "json: ")
}

// Clip cuts text to at most n bytes at a rune boundary, and marks the cut with "…" if there is room for the mark.
func Clip(text string, n int) string {
	if len(text) <= n {
		return text
	}
	mark := "…"
	if n < len(mark) {
		mark = ""
	}
	cut := max(0, n-len(mark))
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + mark
}
