package spec

import (
	"fmt"
	"slices"
	"strings"
)

// Problem is one thing that is wrong with a spec, in words for whoever wrote it.
type Problem struct {
	Key  string `json:"key,omitempty"`  // "verify.timeout"; "" is the document itself
	What string `json:"what"`           // what is wrong
	Want string `json:"want,omitempty"` // what would be right
	File string `json:"file,omitempty"` // filled in by who read the document from a file
	Line int    `json:"line,omitempty"`
}

// String is "pawl.yaml:7: verify.timeout: what; want: what instead", without the parts that are
// not known.
func (p Problem) String() string {
	var b strings.Builder
	if p.File != "" {
		b.WriteString(p.File)
		b.WriteString(":")
	}
	if p.Line > 0 {
		if p.File == "" {
			b.WriteString("line ")
		}
		fmt.Fprintf(&b, "%d:", p.Line)
	}
	if b.Len() > 0 {
		b.WriteString(" ")
	}
	if p.Key != "" {
		b.WriteString(p.Key)
		b.WriteString(": ")
	}
	b.WriteString(p.What)
	if p.Want != "" {
		b.WriteString("; want: ")
		b.WriteString(p.Want)
	}
	return b.String()
}

// Problems is everything that is wrong with a spec, found in one go. It is an error with the
// code INVALID_SPEC in the contract's table of ends.
type Problems []Problem

// Error has one line for each problem.
func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, problem := range p {
		lines[i] = problem.String()
	}
	return strings.Join(lines, "\n")
}

// maxProblems is how many are said of one spec: it must not fill a screen, or a workflow's history,
// with what somebody generated or mistook for one.
const maxProblems = 100

// Add notes a problem, unless there are more than will be said already.
func (p *Problems) Add(key, what, want string) {
	if !p.full() {
		*p = append(*p, Problem{Key: key, What: what, Want: want})
	}
}

func (p *Problems) full() bool { return len(*p) > maxProblems }

// Capped returns the problems; of more than a hundred the first ones, and one that says so.
func (p Problems) Capped() Problems {
	if !p.full() {
		return p
	}
	return append(slices.Clone(p[:maxProblems]), Problem{What: "there are more problems than these", Want: "these fixed first"})
}

// Covers says whether something is known to be wrong with key already, or with what holds it.
func (p Problems) Covers(key string) bool {
	return slices.ContainsFunc(p, func(known Problem) bool {
		return known.Key == key || strings.HasPrefix(key, known.Key+".") || strings.HasPrefix(key, known.Key+"[")
	})
}

// Err is the problems, Capped; nil when there are none.
func (p Problems) Err() error {
	if len(p) == 0 {
		return nil
	}
	return p.Capped()
}

// Show is a value of a document in a message: quoted, on one line, short.
func Show(v any) string {
	var s string
	switch v := v.(type) {
	case string:
		s = fmt.Sprintf("%q", v)
	case []any:
		return "a list"
	case map[string]any:
		return "an object"
	case nil, struct{}:
		return "nothing"
	default:
		s = fmt.Sprint(v)
	}
	if r := []rune(s); len(r) > 80 {
		s = string(r[:79]) + "…"
	}
	return s
}
