package ui

import (
	"strings"
	"time"

	"pawl/internal/loop"
	"pawl/internal/spec"
)

// Gate says what a loop waits for, since when, and exactly how to answer. The budget is that of the
// loop.
func (s Style) Gate(id string, g loop.Gate, b loop.Budget, now time.Time) string {
	var w strings.Builder
	w.WriteString(s.Bold("Waiting: "+Clean(g.Summary)) + "\n")
	w.WriteString(s.Dim("gate "+Clean(g.ID)+" ("+string(g.Kind)+"), open for "+Duration(now.Sub(g.OpenedAt))+", since "+s.when(g.OpenedAt)) + "\n")
	if g.Kind == loop.GateDiff {
		w.WriteString("  pawl diff " + Quote(id) + "\n")
	}
	for _, c := range Commands(id, g, b) {
		w.WriteString("  " + c + "\n")
	}
	if hint := hints[g.Kind]; hint != "" {
		w.WriteString(s.Dim("  "+hint) + "\n")
	}
	return strings.TrimSuffix(w.String(), "\n")
}

// hints are what the commands alone don't say.
var hints = map[loop.GateKind]string{
	loop.GateBudget:   "A limit is the whole of it from now on, not what is added. Others may be raised too.",
	loop.GateDiff:     "Approving alone changes nothing of yours: `pawl apply` does, at any time. --apply may be ff, merge or squash.",
	loop.GateQuestion: "What may be amended: " + strings.Join(spec.Amendable, ", ") + ". The amended contract is to be approved next.",
}

// Commands are the shell commands that answer a gate of a loop with that budget, ready to be copied.
func Commands(id string, g loop.Gate, b loop.Budget) []string {
	var all []string
	hash := ""
	if g.Hash != "" {
		hash = " --hash " + first(g.Hash, 16)
	}
	for _, answer := range g.Answers {
		command := "pawl " + answer + " " + Quote(id)
		switch answer {
		case "approve":
			all = append(all, command+hash)
			if g.Kind == loop.GateDiff {
				all = append(all, command+hash+" --apply ff")
			}
		case "extend":
			all = append(all, command+" --limit "+string(g.Budget)+"="+b.Ample(g.Budget)+hash)
		case "amend":
			all = append(all, command+" --set verify.command='...'")
		case "answer":
			for _, choice := range g.Choices {
				all = append(all, command+" "+Quote(choice))
			}
		default:
			all = append(all, command)
		}
	}
	if len(g.Answers) == 1 { // nothing that says no: there is always the end
		all = append(all, "pawl halt "+Quote(id))
	}
	return all
}

// Quote makes text one word of the shell.
func Quote(text string) string {
	safe := text != ""
	for _, r := range text {
		if !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/:@%+=,-", r) {
			safe = false
		}
	}
	if safe {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// when is a time for people: today's without the date.
func (s Style) when(t time.Time) string {
	if t.IsZero() {
		return "–"
	}
	return t.In(s.zone()).Format(time.DateTime)
}
