// Package delivery has what somebody outside sent to a trigger (S5), as data: cleaned, limited, marked as untrusted,
// and put into the template of a task. It knows no protocol and no secret (internal/integrations/trigger does), and decides nothing
// about the task. Pure. Start at Event, then Fill.
package delivery

import (
	"slices"
	"strings"
	"unicode"

	"pawl/internal/lib/text/markdown"
	"pawl/internal/loop"
)

// Event is the content of one delivery. Its texts are unchanged.
type Event struct {
	// Key identifies what the delivery is about. Two deliveries with the same key are the same task.
	Key string
	// Delivery identifies the delivery itself, so that a repeated one is recognised.
	Delivery string

	Title  string
	Body   string
	Name   string // the name of the workflow, the check, the alert or the kind of event
	Action string // what happened: failure, opened, labeled, firing
	Repo   string
	Branch string
	Commit string
	URL    string
	Labels []string
}

// The limits of what comes in, in bytes.
const (
	maxLine   = 200
	maxURL    = 1000
	maxBody   = 12 << 10
	maxLabels = 20
	maxFilled = 60 << 10 // a task's body, before the notice; a task may have 64 kB
)

// values are the cleaned values for a template. L decides how a line prints, B how the body does.
type values[L, B ~string] struct {
	Title, Name, Action, Repo, Branch, Commit, URL L
	Labels                                         labels[L]
	Body                                           B
}

type labels[L ~string] []L

// Has reports whether one of the labels has that name: `{{if .Labels.Has "bug"}}`.
func (l labels[L]) Has(name string) bool { return slices.Contains(l, L(name)) }

// marked prints as code in Markdown, so that a reader sees where foreign words begin and end.
type marked string

func (m marked) String() string {
	if m == "" {
		return ""
	}
	return "`" + strings.ReplaceAll(string(m), "`", "'") + "`"
}

// fenced prints as a block that is marked as untrusted. Nothing in it can end it.
type fenced string

func (b fenced) String() string { return markdown.Fenced("untrusted", string(b)) }

func valuesOf[L, B ~string](e Event, body func(string) string) values[L, B] {
	v := values[L, B]{
		Title: L(line(e.Title, maxLine)), Name: L(line(e.Name, maxLine)), Action: L(line(e.Action, maxLine)), Repo: L(line(e.Repo, maxLine)),
		Branch: L(line(e.Branch, maxLine)), Commit: L(line(e.Commit, maxLine)), URL: L(line(e.URL, maxURL)), Body: B(body(e.Body)),
	}
	for _, l := range e.Labels {
		if len(v.Labels) == maxLabels {
			break
		}
		if l = line(l, maxLine); l != "" {
			v.Labels = append(v.Labels, L(l))
		}
	}
	return v
}

// Line returns text as one line of at most 200 bytes, without control characters and invisible characters.
func Line(text string) string { return line(text, maxLine) }

// line returns text as one line of at most n bytes, without control characters and invisible characters.
func line(text string, n int) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unseen(r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(loop.Clip(text, 8*n), "?"))
	return loop.Clip(strings.Join(strings.Fields(text), " "), n)
}

// block is line for a text of several lines.
func block(text string, n int) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(loop.Clip(text, 2*n), "?"), "\r\n", "\n")
	return loop.Clip(strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r == '\r', r == '\u2028', r == '\u2029':
			return '\n'
		case unseen(r):
			return -1
		}
		return r
	}, text), n)
}

// unseen reports whether r is a control character, a format character (direction, joiner, tag) or a private one.
func unseen(r rune) bool { return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Cs) }
