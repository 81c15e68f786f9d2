// Package rules holds the rules that decide how a loop continues: what people's messages do at gates, when a budget
// or a stop condition ends a loop, and what each end is called. It is pure: tables and functions over loop.State.
// Start at Answer and Ways for people, at Stop for Improve's machine and at Course for Deliver's, at ReadReview for
// reviewers, at Ends for the names of ends.
package rules

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"pawl/internal/fault"
	"pawl/internal/loop"
	"pawl/internal/spec"
	"pawl/internal/spec/kind"
)

// Reply is the effect of a message: the events that it causes, and one line for its sender.
type Reply struct {
	Text   string
	Events []loop.Event
}

// minHash is the number of hex digits of a hash that an approval must give at least (E3).
const minHash = 16

// Answer returns what a message does to a loop in that state and with that spec, or why it is refused. It changes
// nothing: the caller applies the events. The validator of an update calls this function and drops the result. An
// answer is for the gate that is open now, never for the next one.
func Answer(s loop.State, sp spec.Spec, name string, m loop.Message) (Reply, error) {
	reply, err := answer(s, sp, name, m)
	return reply, fault.About(fault.Loop(s.Loop), err)
}

func answer(s loop.State, sp spec.Spec, name string, m loop.Message) (Reply, error) {
	if s.Status.Ended() {
		return Reply{}, fault.New(Closed(name), "the loop has ended (%s)", s.Status)
	}
	switch name {
	case loop.MessagePause:
		return pause(s, m)
	case loop.MessageHalt:
		if s.HaltRequested != "" {
			return Reply{Text: "already halting"}, nil
		}
		return received(name, m, "halting", HaltReason(name, m)), nil
	case loop.MessageSteer:
		if strings.TrimSpace(m.Note) == "" {
			return Reply{}, fault.New(fault.InvalidMessage, "steer needs a note: the guidance for the agent").
				Advise("Write it behind the ID: `pawl steer ID \"try a table instead\"`.")
		}
		if n := len(s.Guidance); n >= loop.KeepNotes {
			return Reply{}, fault.New(fault.TooManyNotes, "%d notes wait for the next agent call already", n)
		}
		return received(name, m, "the next agent call is told", ""), nil
	case loop.MessageSetMode:
		return setMode(s, m)
	}
	if AnswersGates(name) {
		reply, err := answerGate(s, sp, name, m)
		given := s.Given
		if s.Answered != nil {
			given = append(slices.Clip(given), *s.Answered)
		}
		if err != nil {
			return reply, Refused(err, given, name, m.Choice, m.Gate, m.Hash)
		}
		earlier := Repeated(given, name, "", m.Hash)
		if earlier != nil && name == loop.MessageApprove && s.Gate.Kind == loop.GateContract && m.Gate == "" {
			// A contract that is amended back to an earlier one has its hash. What approved it then must not do so now.
			return Reply{}, AnsweredBefore(fault.GateClosed, *earlier, name, m.Choice).Advise(NameIt(*s.Gate))
		}
		return reply, nil
	}
	return Reply{}, fault.New(fault.InvalidMessage, "there is no message %q", name)
}

// Heard returns a reply to guidance, or why it is refused: it needs an agent call to come. Rules below 6 take it always.
func Heard(s loop.State, version int, reply Reply) (Reply, error) {
	if version < 6 {
		return reply, nil
	}
	atChange := s.Gate != nil && s.Gate.Kind == loop.GateDiff
	k, err := kind.Of(s.Kind)
	switch {
	case s.HaltRequested != "":
		return Reply{}, fault.New(fault.InvalidMessage, "the loop is being ended: no agent call follows").
			Advise("Start another loop with this in its goal.")
	case !atChange || err != nil:
		return reply, nil
	case !k.TriesAgain || s.Budget.Exhausted() != "":
		return Reply{}, fault.New(fault.InvalidMessage, "no agent call is left: the loop waits only for an answer about its change").
			Advise("Approve or reject the change, and start another loop with this in its goal.")
	}
	reply.Text = "the next agent call is told; one follows only if the change is rejected"
	return reply, nil
}

// Closed returns why a message is refused when nothing waits for it: `continue` needs a pause, an answer needs a gate.
func Closed(message string) fault.Code {
	if message == loop.MessageContinue {
		return fault.LoopNotPaused
	}
	return fault.GateClosed
}

// Repeated returns the earlier answer that this one repeats, or nil: the answer to the gate that it names, or the same
// message with the same hash.
func Repeated(given []loop.Answer, message, gate, hash string) *loop.Answer {
	for _, a := range slices.Backward(given) {
		if a.Gate == gate || message == a.Message && names(a.Hash, hash) {
			return &a
		}
	}
	return nil
}

// Refused returns the refusal of an answer. If the answer repeats one that was given before, the refusal says so.
func Refused(err error, given []loop.Answer, message, choice, gate, hash string) error {
	f, ok := errors.AsType[*fault.Error](err)
	earlier := Repeated(given, message, gate, hash)
	if !ok || earlier == nil {
		return err
	}
	return AnsweredBefore(f.Code, *earlier, message, choice)
}

// AnsweredBefore returns the refusal of an answer to a gate that is closed, with the answer that closed it.
func AnsweredBefore(code fault.Code, earlier loop.Answer, message, choice string) *fault.Error {
	text := strings.Join(strings.Fields(earlier.Message+" "+earlier.Choice), " ") + " by " + cmp.Or(earlier.By, "a person")
	if message != earlier.Message || choice != earlier.Choice {
		return fault.New(code, "the gate %s is closed: %s", earlier.Gate, text)
	}
	return fault.New(code, "the gate %s was answered like this already: %s", earlier.Gate, text).
		AdviseAbout("An answer counts once. `{show}` says what the {word} waits for now, if anything.")
}

// NameIt advises how to answer a gate by a hash by which another gate was answered before.
func NameIt(g loop.Gate) string {
	return fmt.Sprintf(`An answer counts once. If you mean the gate %[1]s, which has the same hash, name it: {"gate": %[1]q}, or --gate %[1]s.`, g.ID)
}

// names reports whether a person who gives these digits names that hash.
func names(hash, digits string) bool {
	return len(digits) >= minHash && strings.HasPrefix(strings.ToLower(hash), strings.ToLower(digits))
}

// HaltReason returns why a loop ends that gets a message, "" if the message does not end it.
func HaltReason(name string, m loop.Message) string {
	switch {
	case name == loop.MessageHalt:
		return cmp.Or(m.Note, "halted by "+cmp.Or(m.By, "a person"))
	case name == loop.MessageSetMode && m.Mode != spec.ModeMission:
		return fmt.Sprintf("the mode was changed to %s by %s", m.Mode, cmp.Or(m.By, "a person"))
	}
	return ""
}

// setMode ends a loop whose mode is changed away from mission, for good (A5).
func setMode(s loop.State, m loop.Message) (Reply, error) {
	switch {
	case !slices.Contains([]string{spec.ModeAnswer, spec.ModePlan, spec.ModeMission}, m.Mode):
		return Reply{}, fault.New(fault.InvalidMessage, "%q is not a mode", clip(m.Mode)).Advise("Choose one of: answer, plan, mission.")
	case m.Mode == spec.ModeMission:
		return Reply{Text: "the mode is mission already"}, nil
	case s.HaltRequested != "":
		return Reply{Text: "already halting"}, nil
	}
	return received(loop.MessageSetMode, m, "halting", HaltReason(loop.MessageSetMode, m)), nil
}

// answerGate checks an answer against the one gate that is open.
func answerGate(s loop.State, sp spec.Spec, name string, m loop.Message) (Reply, error) {
	g := s.Gate
	if g == nil {
		switch {
		case name != loop.MessageContinue:
			return Reply{}, fault.New(fault.GateClosed, "no gate is open: there is nothing to %s", name)
		case s.PauseRequested && s.PauseAt != loop.PauseNow:
			return received(name, m, "the pause is withdrawn", ""), nil
		case s.PauseRequested:
			return Reply{}, fault.New(fault.LoopNotPaused, "the loop is still pausing").Advise("Wait until it is paused, then continue.")
		case s.Sleep != nil:
			return received(name, m, triedAgain(*s.Sleep), ""), nil
		}
		return Reply{}, fault.New(fault.LoopNotPaused, "the loop is %s, there is nothing to continue", s.Status)
	}
	if m.Gate != "" && m.Gate != g.ID {
		return Reply{}, fault.New(fault.GateMismatch, "the answer is for gate %s, but %s waits", clip(m.Gate), g.ID)
	}
	if answers := g.Answers; !slices.Contains(Answers(g.Kind), name) || answers != nil && !slices.Contains(answers, name) {
		code := fault.GateMismatch
		if name == loop.MessageContinue {
			code = fault.LoopNotPaused
		}
		return Reply{}, fault.New(code, "gate %s (%s) is answered by %s, not by %s", g.ID, g.Kind, strings.Join(g.Answers, " or "), name)
	}
	if err := CheckHash(*g, name, m.Hash); err != nil {
		return Reply{}, err
	}
	if name == loop.MessageAnswer && !slices.Contains(g.Choices, m.Choice) {
		return Reply{}, fault.New(fault.InvalidMessage, "%q is not a choice here", clip(m.Choice)).
			Advise("Choose one of: " + strings.Join(g.Choices, ", ") + ".")
	}
	if m.Apply != "" && (g.Kind != loop.GateDiff || name != loop.MessageApprove || !slices.Contains(AppliedAtOnce, m.Apply)) {
		return Reply{}, fault.New(fault.InvalidMessage, "apply is %q", clip(m.Apply)).
			Advise("With the approval of a diff it may be one of: " + strings.Join(AppliedAtOnce, ", ") + ".")
	}
	a := loop.Answer{Gate: g.ID, Message: name, Choice: m.Choice, By: m.By, Note: m.Note, Apply: m.Apply}
	if m.Hash != "" {
		a.Hash = g.Hash
	}
	var err error
	switch name {
	case loop.MessageExtend:
		a.Amendment, err = extension(s, sp, *g, m)
	case loop.MessageAmend:
		a.Amendment, err = amendment(sp, *g, m)
	}
	if err != nil {
		return Reply{}, err
	}
	return Reply{
		Text:   fmt.Sprintf("%s: %s", g.ID, name),
		Events: []loop.Event{{Type: loop.GateClosed, By: m.By, Note: m.Note, Answer: &a, Gate: g, Message: name}},
	}, nil
}

// extension returns the fragment of the spec that raises a budget. The new limit must be above what is used up.
func extension(s loop.State, sp spec.Spec, g loop.Gate, m loop.Message) (json.RawMessage, error) {
	if len(m.Limits) == 0 {
		return nil, fault.New(fault.InvalidMessage, "extend needs limits").
			Advise(fmt.Sprintf(`Give the new total: {"limits": {%q: ...}}.`, g.Budget))
	}
	fragment, err := json.Marshal(map[string]json.RawMessage{"limits": m.Limits})
	if err != nil {
		return nil, fault.New(fault.InvalidMessage, "limits: %v", err)
	}
	amended, err := sp.Amend(fragment, spec.Extendable)
	if err != nil {
		return nil, fault.New(fault.InvalidMessage, "%v", err)
	}
	if budget := s.Budget.WithLimits(Limits(amended)); budget[g.Budget].Limit != nil && budget[g.Budget].Remaining.Sign() <= 0 {
		return nil, fault.New(fault.InvalidMessage, "limits.%s has to be more than %s, which is used up already", g.Budget, g.Budget.In(budget[g.Budget].Used)).
			Advise(fmt.Sprintf("Give a higher total, such as %s=%s.", g.Budget, s.Budget.Ample(g.Budget)))
	}
	return fragment, nil
}

// AmendableAt are the keys of the spec that an answer to a question may amend.
func AmendableAt(g loop.Gate) []string {
	if slices.Contains(g.Choices, GoOn) { // after an agent was not allowed to use a tool
		return spec.Approvable
	}
	return spec.Amendable
}

// amendment returns the fragment of the spec that corrects a command or approves a tool. It has to change something.
func amendment(sp spec.Spec, g loop.Gate, m loop.Message) (json.RawMessage, error) {
	if len(m.Spec) == 0 {
		return nil, fault.New(fault.InvalidMessage, "amend needs spec").
			Advise(`Give the correction: {"spec": {"verify": {"command": "..."}}}.`)
	}
	amended, err := sp.Amend(m.Spec, AmendableAt(g))
	if err != nil {
		return nil, fault.New(fault.InvalidMessage, "%v", err)
	}
	if reflect.DeepEqual(amended, sp) {
		return nil, fault.New(fault.InvalidMessage, "that changes nothing: the spec has this value already, or the value is empty")
	}
	return m.Spec, nil
}

// CheckHash makes sure that an approval, or an extension, names exactly what was reviewed; else HASH_MISMATCH. A
// refusal may name no hash, but not a wrong one.
func CheckHash(g loop.Gate, name, hash string) error {
	if g.Hash == "" || (name != loop.MessageApprove && name != loop.MessageExtend && hash == "") {
		return nil
	}
	if len(hash) < minHash {
		return fault.New(fault.HashMismatch, "%s needs the gate's hash, at least its first %d digits", name, minHash).
			Advise("The gate's hash begins with " + g.Hash[:minHash] + ".")
	}
	if !strings.HasPrefix(strings.ToLower(g.Hash), strings.ToLower(hash)) {
		return fault.New(fault.HashMismatch, "what waits has the hash %s, not %s", g.Hash[:minHash], clip(hash))
	}
	return nil
}

func received(name string, m loop.Message, text, reason string) Reply {
	return Reply{Text: text, Events: []loop.Event{{
		Type: loop.MessageReceived, Message: name, By: m.By, Note: m.Note, Reason: reason,
	}}}
}

func clip(s string) string { return loop.Clip(s, 80) }

// triedAgain says what follows a sleep.
func triedAgain(l loop.Sleep) string {
	if l.Step != "" {
		return l.Step + " runs again"
	}
	return "the agent is called again"
}
