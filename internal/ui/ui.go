// Package ui is what pawl shows at a terminal: the progress of a loop, its contract and gates,
// its events, its course and its report. Everything here turns plain values into text; it asks
// nobody anything, knows no Temporal and decides nothing. Start at Style, whose methods render,
// then Screen, which puts lines and the one moving line on a terminal.
//
// The rules of output:
//
//   - What a command was asked for goes to stdout, everything else to stderr. This package writes
//     only where it is told to.
//   - Nothing moves unless it is a terminal; elsewhere there is one plain line per event of note.
//   - Colour only on a terminal and without NO_COLOR, and never as the only bearer of a meaning.
//   - What others wrote (agents, file names, notes, commands) is shown with what can't be seen taken out or
//     written out: it must not be able to move the cursor or hide.
//   - Times for people are in their time zone; durations have at most two units.
//   - A wait says what it waits for, for how long it has, and exactly how to answer.
//   - Messages of the program itself begin with "pawl: ", in lower case, without a full stop where
//     they are one sentence.
package ui

import (
	"os"
	"strings"
	"time"

	"github.com/mattn/go-runewidth"

	"pawl/internal/evidence"
	"pawl/internal/visible"
)

// Style is how text is rendered: with or without colour, how wide, in which time zone.
type Style struct {
	Color bool
	Width int
	Zone  *time.Location
}

const (
	reset  = "\x1b[0m"
	bold   = "\x1b[1m"
	dim    = "\x1b[2m"
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	cyan   = "\x1b[36m"

	reverse = "\x1b[7m"
)

func (s Style) paint(color, text string) string {
	if !s.Color || text == "" {
		return text
	}
	return color + text + reset
}

// Bold returns the text in bold where there is colour.
func (s Style) Bold(text string) string { return s.paint(bold, text) }

// Dim returns the text faint where there is colour.
func (s Style) Dim(text string) string { return s.paint(dim, text) }

func (s Style) zone() *time.Location {
	if s.Zone == nil {
		return time.Local
	}
	return s.Zone
}

// colorWanted follows https://no-color.org: any value but the empty one means no colour.
func colorWanted() bool { return os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" }

// Clean makes what others wrote fit for one line: control characters and line breaks become spaces, and
// what has no width, or changes the direction of text, is written out.
func Clean(text string) string { return visible.Clean(text) }

// written makes what others wrote fit for several lines: in a contract nothing may hide.
func written(text string) []string {
	var lines []string
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		lines = append(lines, visible.Line(line, nil))
	}
	return lines
}

// columns is how wide text is at a terminal: wide characters take two columns, accents none.
func columns(text string) int { return runewidth.StringWidth(text) }

// clip cuts text to at most n columns.
func clip(text string, n int) string { return runewidth.Truncate(text, max(0, n), "…") }

// pad fills text up to n columns, on the right.
func pad(text string, n int) string { return runewidth.FillRight(text, n) }

// padLeft fills text up to n columns, on the left.
func padLeft(text string, n int) string { return runewidth.FillLeft(text, n) }

// plural is "1 iteration", "2 iterations".
func plural(n int, word string) string { return evidence.Counted(n, word) }
