// Package render renders what pawl shows at a terminal: the progress of a loop, its contract and gates, its events, its
// course and its report. It turns plain values into text. It asks nobody anything, does not know Temporal, and
// decides nothing. Start at Style, whose methods render, then Screen, which writes lines and the one moving line to a
// terminal.
//
// The rules of output:
//
//   - What a command was asked for goes to stdout, everything else to stderr. This package writes only to the writer
//     that it gets.
//   - Nothing moves unless it is a terminal. Elsewhere there is one plain line per event of note.
//   - Colour is used only on a terminal and without NO_COLOR, and never as the only carrier of a meaning.
//   - Text that others wrote (agents, file names, notes, commands) is shown without invisible characters, or with them
//     written out: it must not be able to move the cursor or hide.
//   - Times for people are in their time zone. Durations have at most two units.
//   - A wait says what it waits for, how long it has waited, and exactly how to answer.
//   - Messages of the program itself begin with "pawl: ", in lower case, without a full stop if they are one sentence.
package render

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mattn/go-runewidth"

	"pawl/internal/lib/list"
	"pawl/internal/lib/text/visible"
	"pawl/internal/metric"
)

// Style says how text is rendered: with or without colour, how wide, in which time zone.
type Style struct {
	Color bool
	Width int
	Wrap  bool // long lines are broken at Width
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

// Bold returns the text in bold if there is colour.
func (s Style) Bold(text string) string { return s.paint(bold, text) }

// Dim returns the text faint if there is colour.
func (s Style) Dim(text string) string { return s.paint(dim, text) }

func (s Style) zone() *time.Location { return cmp.Or(s.Zone, time.Local) }

// Clean makes other people's text fit for one line. Control characters and line breaks become spaces; characters that
// have no width or change the direction of text are written out.
func Clean(text string) string { return visible.Clean(text) }

// written makes other people's text fit for several lines, because nothing may hide in a contract.
func written(text string) []string {
	return list.Map(strings.Split(strings.TrimRight(text, "\n"), "\n"), func(line string) string { return visible.Line(line, nil) })
}

// columns returns how wide text is at a terminal: wide characters take two columns, accents none.
func columns(text string) int { return runewidth.StringWidth(text) }

// clip cuts text to at most n columns.
func clip(text string, n int) string { return runewidth.Truncate(text, max(0, n), "…") }

// pad fills text up to n columns, on the right.
func pad(text string, n int) string { return runewidth.FillRight(text, n) }

// padLeft fills text up to n columns, on the left.
func padLeft(text string, n int) string { return runewidth.FillLeft(text, n) }

// plural returns "1 iteration", "2 iterations".
func plural(n int, word string) string { return metric.Counted(n, word) }

// first returns the first of some names, at most n, and how many more there are. count is how many there are in all.
func first(n int, names []string, count int, between string) string {
	names = names[:min(len(names), n)]
	return Clean(strings.Join(names, between)) + above(0, " and ", count-len(names), " more")
}

// titled returns a title with what it is about on one line, "" if there is nothing.
func titled(title string, list []string, between string) string {
	return Around(title, Clean(strings.Join(list, between)), "")
}

// Around returns a text with what belongs before and after it, "" if there is no text.
func Around(prefix, text, suffix string) string {
	if text == "" {
		return ""
	}
	return prefix + text + suffix
}

// known is Around for a value that may be unknown.
func known[T any](prefix string, value *T, suffix string) string {
	if value == nil {
		return ""
	}
	return prefix + fmt.Sprint(*value) + suffix
}

// above is Around for a number that is of note only above a bound.
func above(bound int, prefix string, n int, suffix string) string {
	if n <= bound {
		return ""
	}
	return prefix + itoa(n) + suffix
}

// joined joins the texts that are not empty.
func joined(between string, parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), between)
}

// fields are names with values, one below the other. A value of several lines stays in its column.
type fields struct {
	style Style
	width int
	b     strings.Builder
}

func (s Style) fields(width int) *fields { return &fields{style: s, width: width} }

// add writes a field. It leaves out empty lines, and a field without any line.
func (f *fields) add(name string, lines ...string) {
	for _, line := range lines {
		if line == "" {
			continue
		}
		for _, part := range f.style.broken(line, f.width+4) {
			f.b.WriteString(strings.TrimRight("  "+f.style.Dim(pad(name, f.width))+"  "+part, " ") + "\n")
			name = ""
		}
	}
}

// commands writes a field of commands. Each stays on one line, however narrow the terminal is, so that people can copy it.
func (f *fields) commands(name string, commands ...string) {
	for _, command := range commands {
		f.b.WriteString("  " + f.style.Dim(pad(name, f.width)) + "  " + command + "\n")
		name = ""
	}
}

// beside returns commands in one line if it is wide enough, else one a line.
func (f *fields) beside(commands []string) []string {
	line := strings.Join(commands, " · ")
	if !f.style.Wrap || columns(line)+f.width+4 < f.style.Width {
		return []string{line}
	}
	return commands
}

func (f *fields) String() string { return strings.TrimSuffix(f.b.String(), "\n") }

// leastLast is how many columns of a terminal the last column of a table has at least, if others can be left out.
const leastLast = 10

// table renders rows under a head. Each column is as wide as its widest cell; the last one takes the rest. On a terminal
// that is too narrow, it leaves out columns, those of minor first.
func (s Style) table(head []string, rows [][]string, minor ...string) string {
	head, rows = slices.Clone(head), list.Map(rows, slices.Clone)
	widths := make([]int, len(head))
	for _, row := range append([][]string{head}, rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], columns(cell))
		}
	}
	for _, name := range minor {
		if !s.Wrap || fixedWidth(widths)+leastLast <= s.Width {
			break
		}
		index := slices.Index(head, name)
		if index < 0 {
			continue
		}
		head, widths = slices.Delete(head, index, index+1), slices.Delete(widths, index, index+1)
		for i := range rows {
			rows[i] = slices.Delete(rows[i], index, index+1)
		}
	}
	line := func(row []string) string {
		var b strings.Builder
		for i, cell := range row {
			if i == len(row)-1 {
				b.WriteString(clip(cell, max(10, s.Width-columns(b.String()))))
				break
			}
			b.WriteString(pad(cell, widths[i]) + "  ")
		}
		return strings.TrimRight(b.String(), " ")
	}
	return strings.Join(append([]string{s.Dim(line(head))}, list.Map(rows, line)...), "\n")
}

// fixedWidth returns how wide the columns of a table before the last one are, with the blanks behind them.
func fixedWidth(widths []int) int {
	total := 0
	for _, width := range widths[:len(widths)-1] {
		total += width + 2
	}
	return total
}
