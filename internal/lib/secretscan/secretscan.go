// Package secretscan finds text that looks like a credential, one line at a time: in changes, in what agents say, in
// names of files, in values of environment variables. It uses three sources: pawl's own formats (formats.go), the
// rules that gitleaks maintains (gitleaks.toml, MIT license, see gitleaks.LICENSE; to update the rules, copy a newer
// file over it), and values that look random and are assigned to a telling name (assigned.go). It never returns the
// credential itself, and does not find encoded ones. The package is pure. Start at Find.
package secretscan

import (
	"cmp"
	"slices"
	"strings"
)

// Found is a credential in a text: its kind, and where it is.
type Found struct {
	Kind       string // "a GitHub token"
	Start, End int    // offsets in bytes
	text       string
}

// Find returns the texts in a line that look like credentials. They do not overlap: pawl's own formats come before
// the rules, and both before assigned values.
func Find(line string) (out []Found) {
	add := func(f Found) {
		if !slices.ContainsFunc(out, func(o Found) bool { return f.Start < o.End && o.Start < f.End }) {
			out = append(out, f)
		}
	}
	forms, hints := all()
	for _, i := range hints.in(line) { // pawl's own formats come first
		forms[i].in(line, add)
	}
	for _, f := range assigned(line) {
		add(f)
	}
	return out
}

// Redact returns a text, of one or more lines, in which the kind of each credential, in square brackets, replaces the
// credential. The rest can then be kept and shown.
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
