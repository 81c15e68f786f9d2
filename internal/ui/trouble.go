package ui

import "strings"

// Trouble says what keeps a loop from going on.
func (s Style) Trouble(loop, what string) string {
	first, _, _ := strings.Cut(what, "\n")
	return s.paint(red, "trouble") + "  " + Clean(loop) + ": " + Clean(first)
}
