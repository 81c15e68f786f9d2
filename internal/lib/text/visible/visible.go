// Package visible writes out the parts of a text that people could not see or that a terminal would obey: control
// characters, characters that change the direction of text, characters without width, blanks that are not spaces, and
// bytes that are not text. It leaves everything else as it is. Pure. Start at Line.
package visible

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Line returns a line in which everything can be seen. Tabs stay, since they indent. mark is given what is
// written out, to make it stand out; nil leaves it.
func Line(line string, mark func(string) string) string {
	if plainly(line) {
		return line
	}
	if mark == nil {
		mark = func(s string) string { return s }
	}
	var b strings.Builder
	for i, r := range line {
		switch {
		case r == utf8.RuneError && line[i] != 0xEF: // U+FFFD itself begins with that
			b.WriteString(mark(fmt.Sprintf(`\x%02x`, line[i])))
		case Shows(r):
			b.WriteRune(r)
		case r == '\r':
			b.WriteString(mark(`\r`))
		default:
			b.WriteString(mark(fmt.Sprintf(`\u{%x}`, r)))
		}
	}
	return b.String()
}

// Clean returns a text as one line: control characters and line breaks are spaces, everything else that
// can't be seen is written out.
func Clean(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
	return strings.TrimSpace(Line(text, nil))
}

// plainly reports whether a line is of printable ASCII and tabs alone, as most are.
func plainly(line string) bool {
	for i := range len(line) {
		if c := line[i]; c != '\t' && (c < ' ' || c > '~') {
			return false
		}
	}
	return true
}

// Shows reports whether people can see a character, and see what it is. U+2800 is a braille cell without
// a dot.
func Shows(r rune) bool {
	return r == '\t' || unicode.IsPrint(r) && r != '\u2800' &&
		!unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}
