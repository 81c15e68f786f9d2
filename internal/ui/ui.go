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
//   - What others wrote (agents, file names, notes, commands) is shown with its control characters
//     taken out or made visible: it must not be able to move the cursor or hide.
//   - Times for people are in their time zone; durations have at most two units.
//   - A wait says what it waits for, for how long it has, and exactly how to answer.
//   - Messages of the program itself begin with "pawl: ", in lower case, without a full stop where
//     they are one sentence.
package ui

import (
	"fmt"
	"os"
	"strings"
	"time"
	"unicode"

	"github.com/mattn/go-runewidth"
)

// Style is how text is rendered: with or without colour, how wide, in which time zone.
type Style struct {
	Color bool
	Width int
	Zone  *time.Location
}

// Plain is the style without a terminal.
var Plain = Style{Width: 100, Zone: time.Local}

const (
	reset  = "\x1b[0m"
	bold   = "\x1b[1m"
	dim    = "\x1b[2m"
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	cyan   = "\x1b[36m"
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

// Clean makes what others wrote fit for one line: control characters, line breaks and what
// changes the direction of text become spaces or go.
func Clean(text string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		switch {
		case unicode.IsControl(r), r == '\u2028', r == '\u2029':
			return ' '
		case unicode.Is(unicode.Bidi_Control, r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD")))
}

// visible makes what others wrote fit for several lines, with control characters written out:
// in a contract nothing may hide.
func visible(text string) []string {
	var lines []string
	for line := range strings.SplitSeq(strings.TrimRight(strings.ToValidUTF8(text, "\uFFFD"), "\n"), "\n") {
		var b strings.Builder
		for _, r := range line {
			if (unicode.IsControl(r) && r != '\t') || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029' {
				fmt.Fprintf(&b, "\\u{%x}", r)
				continue
			}
			b.WriteRune(r)
		}
		lines = append(lines, b.String())
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
func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return itoa(n) + " " + word + "s"
}
