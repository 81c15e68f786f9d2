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

// budget returns the loop's budget at this moment.
func (f *follower) budget() loop.Budget { return f.state.Ticking(f.deps.Now()).Budget }

// questionAt returns the question for a gate.
func questionAt(g loop.Gate, b loop.Budget) string {
	switch {
	case g.Kind == loop.GateContract:
		return "v shows all of it. Approve this contract and start? [y/N] "
	case g.Kind == loop.GateDiff:
		return "Approve this change? d: show it; y: approve; ff, merge or squash: approve and apply it that way; n: reject; Enter: later "
	case g.Kind == loop.GateBudget:
		return "New total for " + string(g.Budget) + ", such as " + b.Ample(g.Budget) + "? n: reject; Enter: later "
	case len(g.Choices) > 0:
		return "Choose " + strings.Join(g.Choices, " or ") + ": "
	case g.OffersDiff():
		return "Approve this change? d: show it; y: approve; n: reject; Enter: later "
	}
	return "Answer " + strings.Join(g.Answers, " or ") + " (Enter: later): "
}

// reply returns the message for a line that is typed at a gate. An empty name means no answer.
func reply(g loop.Gate, typed string) (name string, m loop.Message) {
	approves := g.Kind == loop.GateContract || g.OffersDiff()
	switch {
	case approves && yes(typed):
		return loop.MessageApprove, loop.Message{Hash: g.Hash}
	case g.Kind == loop.GateDiff && slices.Contains(govern.AppliedAtOnce, typed):
		return loop.MessageApprove, loop.Message{Hash: g.Hash, Apply: typed}
	case no(typed) && (approves || g.Kind == loop.GateBudget), g.Kind == loop.GateContract: // whatever does not approve a contract declines it
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
	f.asking = true
	f.listen()
	f.screen.Ask(questionAt(*f.gate, f.budget()))
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
	if g.Kind == loop.GateContract && f.readsContract(line) {
		f.ask()
		return nil
	}
	f.asking = false
	name, m := reply(g, typed)
	switch {
	case name != "":
		m.By, m.Gate = config.User(), g.ID
		f.send(ctx, name, m)
	case typed == "" && len(g.Choices) == 0: // a choice is asked for again
		f.say("waiting for an answer from elsewhere: %s", strings.Join(ui.Commands(f.id, g, f.budget()), ", "))
	default:
		f.ask()
	}
	return nil
}
