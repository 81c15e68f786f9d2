package metric

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"pawl/internal/lib/lazyregexp"
)

// MaxDescription is the maximum length of a description, in runes.
const MaxDescription = 200

// Description makes the sentence for the commit message and the results file from an agent's text. It is the first
// line that is not blank, without escape sequences, control characters, bidirectional overrides and the mark of a
// heading, trimmed, with at most 200 runes.
func Description(raw string) string { return FirstLine(raw, MaxDescription) }

// FirstLine is Description with another length.
func FirstLine(raw string, limit int) string {
	raw = raw[:min(len(raw), 64<<10)] // the first line, not a transcript
	raw = string(Plain([]byte(raw)))
	for line := range strings.FieldsFuncSeq(raw, func(r rune) bool { return r == '\n' || r == '\r' }) {
		// Git reads a line that begins with # as a comment, and agents write headings.
		if line = clean(strings.TrimLeft(strings.TrimSpace(line), "#"), limit); line != "" {
			return line
		}
	}
	return ""
}

// clean makes text fit for one field of one line: valid UTF-8, with spaces for control characters and for line and
// paragraph separators, without characters that change the direction of text, trimmed, and cut to at most that many
// runes.
func clean(s string, limit int) string {
	s = strings.TrimSpace(s)
	if len(s) > 8*limit { // the rest will be cut anyway
		s = s[:8*limit]
	}
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsControl(r), r == '\u2028', r == '\u2029':
			return ' '
		case unicode.Is(unicode.Bidi_Control, r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
	s = strings.TrimSpace(s)
	if utf8.RuneCountInString(s) > limit {
		s = strings.TrimSpace(string([]rune(s)[:limit-1])) + "…"
	}
	return s
}

// Split splits a description of several changes. "improve X and remove Y" becomes "improve X", which is for this
// iteration, and "remove Y", which is the next idea (P2). Each part is of one change and not empty. A description without
// any words has no parts.
func Split(description string) []string {
	start, end := conjunction(description)
	if start >= 0 {
		return append(Split(description[:start]), Split(description[end:])...)
	}
	if part := strings.Trim(description, " \t,;"); part != "" {
		return []string{part}
	}
	return nil
}

// and matches the first "and", or "&", that is not a part of a longer word.
var and = lazyregexp.New(strings.ReplaceAll(`(?i)(?:^|[^J])(and)(?:[^J]|$)|(?:^|[^J&])(&)(?:[^J&]|$)`, "J", `\pL\p{Nd}\pM_\-`))

// conjunction returns where the first "and" of s begins and ends, or -1. This is the source's mechanical test and nothing
// more: the word in any case, or a "&" that stands alone, with no letter, digit, underscore or hyphen beside it. "expand",
// "R&D", "and_then" and "search-and-replace" name one change. Commas and semicolons do not count, because a rule that
// guesses would reject good changes.
func conjunction(s string) (start, end int) {
	m := and().FindStringSubmatchIndex(s)
	if m == nil {
		return -1, -1
	}
	return max(m[2], m[4]), max(m[3], m[5])
}

// Fingerprint returns the words of a description in lower case, without punctuation and articles.
func Fingerprint(description string) string {
	words := strings.FieldsFunc(strings.ToLower(description), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_'
	})
	words = slices.DeleteFunc(words, func(w string) bool { return w == "a" || w == "an" || w == "the" })
	return strings.Join(words, " ")
}

// Counted returns a number of things in words: 1 file, 2 files, 2 entries, 2 fixes.
func Counted(n int, noun string) string {
	stem, entry := strings.CutSuffix(noun, "try")
	switch {
	case n == 1:
	case entry:
		noun = stem + "tries"
	case strings.HasSuffix(noun, "x"):
		noun += "es"
	default:
		noun += "s"
	}
	return strconv.Itoa(n) + " " + noun
}
