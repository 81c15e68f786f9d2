// Package secret finds what looks like a credential in lines of text: in changes, in what agents say, in names of
// files, in values of environment variables. It uses three sources: formats of pawl's own (formats.go), the rules that
// gitleaks maintains (gitleaks.toml, MIT license, see gitleaks.LICENSE; copy a newer file over it to update them), and
// values that look random and are assigned to a telling name (assigned.go). It never returns the credential itself, and
// does not find encoded ones. Pure. Start at Find.
package secret

import (
	"cmp"
	"slices"
	"strings"
)

// Found is a credential in a text: what sort it is, and where.
type Found struct {
	Kind       string // "a GitHub token"
	Start, End int    // in bytes
	text       string
}

// Find returns what looks like a credential in a line, each place once, those that pawl knows best first.
func Find(line string) (out []Found) {
	add := func(f Found) {
		if !slices.ContainsFunc(out, func(o Found) bool { return f.Start < o.End && o.Start < f.End }) {
			out = append(out, f)
		}
	}
	rules := all()
	for _, i := range rules.words.in(line) { // pawl's own come first
		if i < len(formats) {
			formats[i].in(line, add)
		} else {
			rules.in(rules.Rules[i-len(formats)], line, add)
		}
	}
	for _, f := range assigned(line) {
		add(f)
	}
	return out
}

// Redact returns a text of several lines with each credential replaced by what it looks like, in square
// brackets, so that the rest can be kept and shown.
func Redact(text string) string {
	var b strings.Builder
	for line := range strings.SplitAfterSeq(text, "\n") {
		found := Find(strings.TrimSuffix(line, "\n"))
		slices.SortStableFunc(found, func(a, b Found) int { return cmp.Compare(a.Start, b.Start) })
		at := 0
		for _, f := range found {
			b.WriteString(line[at:f.Start] + "[" + f.Kind + "]")
			at = f.End
		}
		b.WriteString(line[at:])
	}
	return b.String()
}
