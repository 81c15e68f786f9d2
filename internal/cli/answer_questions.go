package cli

import (
	"context"
	"slices"
	"strings"

	"pawl/config"
	"pawl/internal/govern"
	"pawl/internal/loop"
	"pawl/internal/ui"
)

// question is the text of a question at a gate, and how to read its answer.
type question struct {
	text string
	// read returns the message for a typed line. An empty name means no answer: the question is asked again, or, if
	// the line is empty, the loop waits for an answer from elsewhere.
	read func(g loop.Gate, typed string) (name string, m loop.Message)
	must bool // an empty line is no answer, so the question is asked again
}

// budget returns the loop's budget at this moment.
func (f *follower) budget() loop.Budget { return f.state.Ticking(f.deps.Now()).Budget }

// questionAt returns the question for a gate.
func questionAt(g loop.Gate, b loop.Budget) question {
	switch {
	case g.Kind == loop.GateContract:
		return question{"Approve this contract and start? [y/N] ", readApproval, true}
	case g.Kind == loop.GateDiff:
		return question{"Approve this change? d: show it; y: approve; ff, merge or squash: approve and apply it that way; n: reject; Enter: later ", readApproval, false}
	case g.Kind == loop.GateBudget:
		return question{"New total for " + string(g.Budget) + ", such as " + b.Ample(g.Budget) + "? n: reject; Enter: later ", readLimit, false}
	case len(g.Choices) > 0:
		return question{"Choose " + strings.Join(g.Choices, " or ") + ": ", readChoice, true}
	}
	if g.OffersDiff() {
		return question{"Approve this change? d: show it; y: approve; n: reject; Enter: later ", readApproval, false}
	}
	return question{"Answer " + strings.Join(g.Answers, " or ") + " (Enter: later): ", readWord, false}
}

func readApproval(g loop.Gate, typed string) (string, loop.Message) {
	switch {
	case yes(typed):
		return loop.MessageApprove, loop.Message{Hash: g.Hash}
	case g.Kind == loop.GateDiff && slices.Contains(govern.AppliedAtOnce, typed):
		return loop.MessageApprove, loop.Message{Hash: g.Hash, Apply: typed}
	case no(typed), g.Kind == loop.GateContract: // whatever does not approve a contract declines it
		return loop.MessageReject, loop.Message{Note: "declined at the terminal"}
	}
	return "", loop.Message{}
}

func readLimit(g loop.Gate, typed string) (string, loop.Message) {
	if no(typed) {
		return loop.MessageReject, loop.Message{Note: "declined at the terminal"}
	}
	limits, err := config.Fragment("--limit", []string{string(g.Budget) + "=" + typed})
	if typed == "" || err != nil {
		return "", loop.Message{}
	}
	return loop.MessageExtend, loop.Message{Hash: g.Hash, Limits: limits}
}

func readChoice(g loop.Gate, typed string) (string, loop.Message) {
	for _, choice := range g.Choices {
		if typed == strings.ToLower(choice) {
			return loop.MessageAnswer, loop.Message{Choice: choice}
		}
	}
	return "", loop.Message{}
}

func readWord(g loop.Gate, typed string) (string, loop.Message) {
	if slices.Contains(g.Answers, typed) {
		return typed, loop.Message{Hash: g.Hash}
	}
	return "", loop.Message{}
}

func no(typed string) bool { return slices.Contains([]string{"n", "no", "reject"}, typed) }

func (f *follower) ask() {
	f.asking = true
	f.listen()
	f.screen.Ask(questionAt(*f.gate, f.budget()).text)
}

// answer handles a line of stdin for the open gate. Lines that are typed while nothing is asked are dropped.
func (f *follower) answer(ctx context.Context, line string, open bool) error {
	if !open {
		f.typed = make(chan string) // it never gets a line
		if f.asking {
			f.screen.Print("")
			return f.nobody(*f.gate)
		}
		return nil
	}
	typed := answered(line)
	if f.choosing != nil {
		return f.chosen(ctx, typed)
	}
	if !f.asking {
		return nil
	}
	g := *f.gate
	if g.OffersDiff() && f.reads(ctx, f.s, f.id, patchOf(f.state), line) {
		if f.reading == nil {
			f.ask()
		}
		return nil
	}
	f.asking = false
	q := questionAt(g, f.budget())
	name, m := q.read(g, typed)
	switch {
	case name != "":
		m.By, m.Gate = config.User(), g.ID
		f.send(ctx, name, m)
	case typed == "" && !q.must:
		f.say("waiting for an answer from elsewhere: %s", strings.Join(ui.Commands(f.id, g, f.budget()), ", "))
	default:
		f.ask()
	}
	return nil
}
