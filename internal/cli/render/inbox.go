package render

import (
	"strings"
	"time"

	"pawl/internal/client"
	"pawl/internal/lib/list"
	"pawl/internal/loop/rules"
	"pawl/internal/steward"
)

// Inbox renders several questions: whose it is and what it asks, and below it the first of its answers.
func (s Style) Inbox(items []client.Waiting, now time.Time) string {
	var b strings.Builder
	for _, w := range items {
		b.WriteString(s.inboxLine(w, now) + "\n")
		b.WriteString("  " + firstAnswer(w) + "\n")
	}
	b.WriteString(s.Hang(s.Dim("The whole of a question, with its other answers: pawl show ID, or pawl steward show NAME TASK"), 2))
	return b.String()
}

// inboxLine says who asks what, and how long ago.
func (s Style) inboxLine(w client.Waiting, now time.Time) string {
	subject := "loop " + Clean(w.Loop)
	if w.Loop == "" {
		subject = "steward " + Clean(w.Steward) + Around(", task ", Clean(w.Gate.Task), "")
	}
	question, _, _ := strings.Cut(w.Gate.Summary, "\n")
	rest := Around(" (", Ago(w.Gate.OpenedAt, now), ")") + "  " + Clean(question)
	return s.Hang(s.Bold(subject)+rest, 4)
}

// firstAnswer returns the command of the answer that a question offers first.
func firstAnswer(w client.Waiting) string {
	commands := Commands(w.Loop, w.Gate, w.Budget)
	if w.Loop == "" {
		commands = list.Map(steward.Ways(w.Steward, w.Gate), func(way rules.Way) string { return way.Command })
	}
	if len(commands) == 0 {
		return ""
	}
	return commands[0]
}
