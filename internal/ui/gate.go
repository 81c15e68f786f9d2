package ui

import (
	"strings"
	"time"

	"pawl/internal/loop"
)

// Gate says what a loop waits for, since when, and exactly how to answer.
func (s Style) Gate(id string, g loop.Gate, now time.Time) string {
	var b strings.Builder
	b.WriteString(s.Bold("Waiting: "+Clean(g.Summary)) + "\n")
	b.WriteString(s.Dim("gate "+Clean(g.ID)+" ("+string(g.Kind)+"), open for "+Duration(now.Sub(g.OpenedAt))+", since "+s.when(g.OpenedAt)) + "\n")
	for _, c := range Commands(id, g) {
		b.WriteString("  " + c + "\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// Commands are the shell commands that answer a gate, ready to be copied.
func Commands(id string, g loop.Gate) []string {
	var all []string
	for _, answer := range g.Answers {
		command := "pawl " + answer + " " + Quote(id)
		switch answer {
		case "approve":
			if g.Hash != "" {
				command += " --hash " + first(g.Hash, 16)
			}
			all = append(all, command)
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
