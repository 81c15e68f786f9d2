package cli

import (
	"context"
	"slices"
	"strings"

	"pawl/config"
	"pawl/internal/cli/render"
	"pawl/internal/loop"
	"pawl/internal/loop/rules"
	"pawl/internal/spec/kind"
)

// budget returns the loop's budget at this moment.
func (f *follower) budget() loop.Budget { return f.state.Ticking(f.deps.Now()).Budget }

// questionAt returns the question for a gate of a loop of that kind.
func questionAt(k kind.Kind, g loop.Gate, b loop.Budget) string {
	switch {
	case g.Kind == loop.GateContract:
		return "v shows all of it. Approve this contract and start? [y/n] "
	case g.Kind == loop.GateDiff:
		return "Approve this change? d: show it; y: approve; ff, merge or squash: approve and apply it that way; n: reject (" + afterRejection(k, b) + "); Enter: later "
	case g.Kind == loop.GateBudget:
		return "New total for " + string(g.Budget) + ", such as " + b.Ample(g.Budget) + "? n: reject; Enter: later "
	case len(g.Choices) > 0:
		return "Choose " + strings.Join(g.Choices, " or ") + ": "
	case g.OffersDiff():
		return "Approve this change? d: show it; y: approve; n: reject; Enter: later "
	}
	return "Answer " + strings.Join(g.Answers, " or ") + " (Enter: later): "
}

// afterRejection says what follows when the change as a whole is rejected.
func afterRejection(k kind.Kind, b loop.Budget) string {
	if k.TriesAgain && b[loop.Iterations].UsedUp() {
		return "no iteration is left"
	}
	return k.Rejected
}

// whyAt asks why a contract or a change is rejected, and says what follows where the question did not; approved says that
// a contract was. No agent reads the reason if the loop ends with it.
func whyAt(k kind.Kind, g loop.Gate, b loop.Budget, approved bool) string {
	last := b[loop.Iterations].UsedUp()
	follows, recorded := "", last
	switch {
	case g.Kind == loop.GateContract && !approved, g.Kind == loop.GateBudget:
		follows, recorded = "The loop ends. ", true
	case g.Kind == loop.GateContract:
		recorded = true
	case g.Kind == loop.GateDiff:
		recorded = last || !k.TriesAgain
	case g.Kind == loop.GateNewFiles:
		follows = "The change is undone. "
	}
	if recorded {
		return follows + "Why? (for the record; Enter: no reason) "
	}
	return follows + "Why? (the agent reads it; Enter: no reason) "
}

// reply returns the message for a line that is typed at a gate. An empty name means no answer.
func reply(g loop.Gate, typed string) (name string, m loop.Message) {
	approves := g.Kind == loop.GateContract || g.OffersDiff()
	switch {
	case approves && yes(typed):
		return loop.MessageApprove, loop.Message{Hash: g.Hash}
	case g.Kind == loop.GateDiff && slices.Contains(rules.AppliedAtOnce, typed):
		return loop.MessageApprove, loop.Message{Hash: g.Hash, Apply: typed}
	case no(typed) && (approves || g.Kind == loop.GateBudget):
		return loop.MessageReject, loop.Message{Note: "declined at the terminal"}
	case approves: // no answer
	case g.Kind == loop.GateBudget:
		if limits, err := config.Fragment("--limit", []string{string(g.Budget) + "=" + typed}); typed != "" && err == nil {
			return loop.MessageExtend, loop.Message{Hash: g.Hash, Limits: limits}
		}
	case len(g.Choices) > 0:
		if i := slices.IndexFunc(g.Choices, func(choice string) bool { return strings.ToLower(choice) == typed }); i >= 0 {
			return loop.MessageAnswer, loop.Message{Choice: g.Choices[i]}
		}
	case slices.Contains(g.Answers, typed):
		return typed, loop.Message{Hash: g.Hash}
	}
	return "", loop.Message{}
}

func no(typed string) bool { return slices.Contains([]string{"n", "no", "reject"}, typed) }

func (f *follower) ask() {
	f.asking, f.why = true, false
	f.listen()
	f.askNow(questionAt(f.kind, *f.gate, f.budget()))
}

// askAgain asks what is asked now once more.
func (f *follower) askAgain() {
	if f.why {
		f.askWhy()
		return
	}
	f.ask()
}

// askWhy asks for the reason of a rejection, which the next agent call is told.
func (f *follower) askWhy() {
	f.why = true
	f.askNow(whyAt(f.kind, *f.gate, f.budget(), f.approved))
}

// answer handles a line of stdin for the open gate. A line that is typed while nothing is asked answers nothing; if a gate
// is open, its question comes again.
func (f *follower) answer(ctx context.Context, line string, open bool) error {
	if !open {
		f.typed = make(chan string) // it never gets a line
		if f.choosing != nil {
			f.choosing = nil
			f.asking = f.gate != nil
			f.say("the input has ended; %s", f.prospect())
		}
		if f.asking {
			return f.nobody(*f.gate, "the input has ended")
		}
		return nil
	}
	typed := answered(line)
	if f.choosing != nil {
		return f.chosen(ctx, line)
	}
	if !f.asking {
		if f.gate != nil && typed != "" {
			f.ask()
		}
		return nil
	}
	g := *f.gate
	if f.why {
		f.asking, f.why = false, false
		f.send(ctx, loop.MessageReject, loop.Message{By: config.User(), Gate: g.ID, Note: strings.TrimSpace(line)})
		return nil
	}
	if g.OffersDiff() && f.readsChange(ctx, f.s, f.id, patchOf(f.state), line) {
		if f.reading == nil {
			f.ask()
		}
		return nil
	}
	if g.Kind == loop.GateContract && f.readsContract(line) {
		if f.reading == nil {
			f.ask()
		}
		return nil
	}
	name, m := reply(g, typed)
	if name == loop.MessageReject {
		f.askWhy()
		return nil
	}
	f.asking = false
	switch {
	case name != "":
		m.By, m.Gate = config.User(), g.ID
		f.send(ctx, name, m)
	case typed == "" && len(g.Choices) == 0 && g.Kind != loop.GateContract: // the others are asked for again
		f.say("waiting for an answer from elsewhere: %s", strings.Join(render.Commands(f.id, g, f.budget()), ", "))
	case typed == "":
		f.ask()
	default:
		f.say("%q is no answer to this", render.Clean(typed))
		f.ask()
	}
	return nil
}
