package render

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"pawl/internal/lib/list"
	"pawl/internal/lib/shell"
	"pawl/internal/loop"
	"pawl/internal/loop/rules"
	"pawl/internal/steward"
)

// Gate renders what a loop waits for, since when, and exactly how to answer. The budget is that of the loop.
func (s Style) Gate(id string, g loop.Gate, b loop.Budget, now time.Time) string {
	var commands []string
	if g.OffersDiff() {
		commands = append(commands, "pawl diff "+shell.Quote(id))
	}
	return s.waiting(g, now, append(commands, Commands(id, g, b)...), hint(id, g))
}

// StewardGate is Gate for a gate of the steward of that name.
func (s Style) StewardGate(name string, g loop.Gate, now time.Time) string {
	return s.stewardGate(name, g, now, false)
}

// stewardGate is StewardGate, on the screen of the task whose plan it may be about or elsewhere.
func (s Style) stewardGate(name string, g loop.Gate, now time.Time, planBelow bool) string {
	hint := ""
	switch {
	case g.Kind == loop.GateQuestion && slices.Contains(g.Choices, steward.Replan):
		hint = "With --note TEXT, replan tells the planner what you want. A task that brings its own plan keeps it."
	case g.Kind == steward.GateDrift:
		hint = steward.AsFound
	case g.Kind == steward.GateTier && planBelow:
		hint = "The plan is below."
	case g.Kind == steward.GateTier:
		hint = "The plan: " + shell.Join("pawl", "steward", "show", name, g.Task)
	}
	return s.waiting(g, now, list.Map(steward.Ways(name, g), command), hint)
}

// Asked renders what a loop waits for, for a person who is asked about it below: what the answers do where the question
// does not say it, and what can't be answered there.
func (s Style) Asked(id string, g loop.Gate) string {
	first, points := g.Listed()
	lines := []string{s.Hang(s.Bold("Waiting: "+Clean(first)), 2)}
	for _, point := range points {
		lines = append(lines, s.Hang("  - "+Clean(point), 4))
	}
	if g.Kind != loop.GateQuestion && g.Kind != loop.GateGuard {
		return strings.Join(lines, "\n")
	}
	for _, w := range rules.Ways(id, g, nil) {
		line := w.Message + ": " + w.What
		if choice, ok := w.Payload["choice"]; ok {
			line = fmt.Sprint(choice) + ": " + w.What
		}
		if w.Message == loop.MessageAmend {
			line = "to change the spec first, from another terminal: `" + w.Command + "`"
		}
		lines = append(lines, s.Hang("  "+line, 4))
	}
	return strings.Join(lines, "\n")
}

func command(w rules.Way) string { return w.Command }

func (s Style) waiting(g loop.Gate, now time.Time, commands []string, hint string) string {
	var w strings.Builder
	first, points := g.Listed()
	w.WriteString(s.Hang(s.Bold("Waiting: "+Clean(first)), 2) + "\n")
	for _, point := range points {
		w.WriteString(s.Hang("  - "+Clean(point), 4) + "\n")
	}
	about := Around(" of task ", Clean(g.Task), "")
	if !g.OpenedAt.IsZero() { // it is zero for a steward that is paused
		about += ", open for " + Duration(now.Sub(g.OpenedAt)) + ", since " + s.since(g.OpenedAt, now)
	}
	w.WriteString(s.Hang(s.Dim("gate "+Clean(g.ID)+" ("+string(g.Kind)+")"+about), 2) + "\n")
	for _, c := range commands {
		w.WriteString("  " + c + "\n")
	}
	if hint != "" {
		w.WriteString(s.Hang("  "+s.Dim(hint), 2) + "\n")
	}
	return strings.TrimSuffix(w.String(), "\n")
}

// hint returns what the commands that answer a loop's gate do not explain.
func hint(id string, g loop.Gate) string {
	switch g.Kind {
	case loop.GateBudget:
		return "The limit is the new total, not the increase. You may raise other limits too."
	case loop.GateDiff:
		return "Approving alone changes nothing in your repository; `pawl apply` does, at any time. --apply may be " + strings.Join(rules.AppliedAtOnce, ", ") + "."
	case loop.GateContract:
		return "The whole contract: " + shell.Join("pawl", "show", id)
	case loop.GateQuestion:
		return strings.TrimSpace(choices(g) + " " + amending(g))
	}
	return ""
}

// choices returns what the choices of a question do.
func choices(g loop.Gate) string {
	answers := list.Filter(rules.Ways("", g, nil), func(w rules.Way) bool { return w.Message == loop.MessageAnswer })
	return strings.Join(list.Map(answers, func(w rules.Way) string { return fmt.Sprintf("%v: %s.", w.Payload["choice"], w.What) }), " ")
}

// amending returns what a person may amend at a question, "" for nothing.
func amending(g loop.Gate) string {
	if g.Answers != nil && !slices.Contains(g.Answers, loop.MessageAmend) {
		return ""
	}
	return "You may amend: " + strings.Join(rules.AmendableAt(g), ", ") + ". The amended contract must be approved next."
}

// Commands returns the shell commands that answer a gate of a loop with that budget, ready to be copied.
func Commands(id string, g loop.Gate, b loop.Budget) []string {
	commands := list.Map(rules.Ways(id, g, b), command)
	if len(g.Answers) == 1 { // no answer says no: the person can always end the loop
		commands = append(commands, shell.Join("pawl", loop.MessageHalt, id))
	}
	return commands
}

// since returns a time for people, with its date if that is not today's.
func (s Style) since(t, now time.Time) string {
	if day := t.In(s.zone()).Format(time.DateOnly); !t.IsZero() && day == now.In(s.zone()).Format(time.DateOnly) {
		return t.In(s.zone()).Format(time.TimeOnly)
	}
	return s.when(t)
}

// when returns a time for people, with its date, "" for none.
func (s Style) when(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.In(s.zone()).Format(time.DateTime)
}
