package ui

import (
	"strings"

	"pawl/internal/shell"
)

// Trouble renders what keeps a loop from continuing.
func (s Style) Trouble(loop, what string) string {
	first, _, _ := strings.Cut(what, "\n")
	return s.paint(red, "trouble") + "  " + Clean(loop) + ": " + Clean(first)
}

// Mended renders what was damaged in a loop and is mended, one line each, "" for nothing.
func (s Style) Mended(what []string) string {
	var lines []string
	for _, line := range what {
		lines = append(lines, s.paint(yellow, "mended")+"  "+Clean(line))
	}
	return strings.Join(lines, "\n")
}

// mendedLast renders the last mending, and how many came before.
func (s Style) mendedLast(loop string, what []string) string {
	text := s.paint(yellow, "mended") + "  " + Clean(loop) + ": " + Clean(what[len(what)-1])
	if more := len(what) - 1; more > 0 {
		text += " (and " + itoa(more) + " before: pawl show " + shell.Quote(loop) + ")"
	}
	return text
}
