package render

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// color matches the sequences with which paint colours text. Nobody else's text has any.
var color = regexp.MustCompile("^\x1b\\[[0-9;]*m")

// wrap breaks text into lines of at most width columns, between words if that is possible. A colour that is in force
// at a break is ended there and begins again on the next line. Without a width, it does not break.
func wrap(text string, width int) []string { return wrapped(text, width, width, nextWord) }

// wrapProse is wrap for what a person reads and copies from. A command in backticks is a word, and no address, path or
// name is broken: the terminal wraps one that no line can hold. The first line has a width of its own.
func wrapProse(text string, first, width int) []string {
	return wrapped(text, first, width, nextQuoted)
}

// wrapped is wrap for words that next finds at the beginning of a text. The lines after the first have width columns.
func wrapped(text string, first, width int, next func(text string) (word string, whole bool)) []string {
	room := first
	if room < 1 || columns(strip(text)) <= room {
		return []string{text}
	}
	var lines []string
	var line strings.Builder
	used, active := 0, ""

	breakLine := func() {
		broken := strings.TrimRight(line.String(), " ")
		if active != "" {
			broken += reset
		}
		lines = append(lines, broken)
		line.Reset()
		line.WriteString(active)
		used = 0
		room = width
	}

	for text != "" {
		if sequence := color.FindString(text); sequence != "" {
			line.WriteString(sequence)
			text = text[len(sequence):]
			active = sequence
			if sequence == reset {
				active = ""
			}
			continue
		}
		word, whole := next(text)
		text = text[len(word):]
		length := columns(strings.TrimRight(word, " "))
		if used > 0 && used+length > room {
			breakLine()
		}
		for length > room && !whole { // a word that no line can hold
			part := clipped(word, room)
			line.WriteString(part)
			word = word[len(part):]
			length = columns(strings.TrimRight(word, " "))
			breakLine()
		}
		line.WriteString(word)
		used += columns(word)
	}
	if used > 0 {
		lines = append(lines, strings.TrimRight(line.String(), " "))
	} else if len(lines) > 0 && active == "" {
		lines[len(lines)-1] += line.String() // the end of a colour
	}
	return lines
}

// nextWord returns the beginning of text up to the next word or colour. Such a word may be broken.
func nextWord(text string) (word string, whole bool) {
	for i := range text {
		switch {
		case i > 0 && text[i] == '\x1b':
			return text[:i], false
		case i > 0 && text[i-1] == ' ' && text[i] != ' ':
			return text[:i], false
		}
	}
	return text, false
}

// nextQuoted is nextWord for sentences: a space between two backticks ends no word, and such a word is not broken.
func nextQuoted(text string) (word string, whole bool) {
	for word, _ = nextWord(text); strings.Count(word, "`")%2 == 1; {
		rest := text[len(word):]
		if !strings.Contains(rest, "`") {
			return word, whole
		}
		following, _ := nextWord(rest)
		word += following
	}
	return word, strings.Contains(word, "`") || copied(strings.TrimRight(word, " "))
}

// name matches what people copy in one piece: paths, names, hashes, options. Lists in braces and texts in quotes are none.
var name = regexp.MustCompile(`^[\p{L}\p{N}/._:;,()@+=~%?&#-]+$`)

// copied reports whether a word is something that people copy: an address, a path or a name. Text in a script without
// blanks is no word of that kind.
func copied(word string) bool {
	switch {
	case strings.Contains(word, "://"):
		return true
	case strings.Contains(word, "/"):
		return name.MatchString(word)
	}
	return name.MatchString(word) && columns(word) == utf8.RuneCountInString(word)
}

// clipped returns the beginning of a word that fits into width columns, and at least one character.
func clipped(word string, width int) string {
	end := len(word)
	used := 0
	for i, r := range word {
		used += columns(string(r))
		if used > width && i > 0 {
			end = i
			break
		}
	}
	return word[:end]
}

// strip returns text without colours.
func strip(text string) string {
	if !strings.Contains(text, "\x1b") {
		return text
	}
	return anyColor.ReplaceAllString(text, "")
}

var anyColor = regexp.MustCompile("\x1b\\[[0-9;]*m")

// broken wraps text that stands behind indent columns, if lines are to be broken.
func (s Style) broken(text string, indent int) []string {
	if !s.Wrap {
		return []string{text}
	}
	width := max(narrowest, s.Width-1-indent)
	return wrapProse(text, width, width)
}

// narrowest is the least width into which text is wrapped.
const narrowest = 20

// Hang wraps sentences for a terminal. The lines after the first begin with indent spaces, fewer on a terminal that has
// no room for them.
func (s Style) Hang(text string, indent int) string {
	if !s.Wrap {
		return text
	}
	indent = max(0, min(indent, s.Width-1-narrowest))
	words := strings.TrimLeft(text, " ")
	margin := text[:len(text)-len(words)]
	lines := wrapProse(words, max(narrowest, s.Width-1-len(margin)), max(narrowest, s.Width-1-indent))
	return margin + strings.Join(lines, "\n"+strings.Repeat(" ", indent))
}
