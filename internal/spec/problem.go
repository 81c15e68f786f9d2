package spec

import (
	"fmt"
	"slices"
	"strings"

	"pawl/internal/lib/list"
)

// Problem is one problem with a spec, in words for its author.
type Problem struct {
	Key  string `json:"key,omitempty"`  // "verify.timeout"; "" is the document itself
	What string `json:"what"`           // what is wrong
	Want string `json:"want,omitempty"` // what would be right
	File string `json:"file,omitempty"` // set by the reader of a file
	Line int    `json:"line,omitempty"`
}

// String returns "pawl.yaml:7: verify.timeout: what; want: what instead", without the parts that are not known.
func (p Problem) String() string {
	text := p.What
	if p.Key != "" {
		text = p.Key + ": " + text
	}
	if p.Want != "" {
		text += "; want: " + p.Want
	}
	switch {
	case p.File != "" && p.Line > 0:
		return fmt.Sprintf("%s:%d: %s", p.File, p.Line, text)
	case p.File != "":
		return p.File + ": " + text
	case p.Line > 0:
		return fmt.Sprintf("line %d: %s", p.Line, text)
	}
	return text
}

// Problems are all problems of a spec, found in one run. As an error it has the code INVALID_SPEC.
type Problems []Problem

// Error returns one line for each problem.
func (p Problems) Error() string {
	return strings.Join(list.Map(p, Problem.String), "\n")
}

// maxProblems is how many problems of one spec are kept. A generated document, or one that is no spec, must not fill
// a screen or a workflow's history.
const maxProblems = 100

// Add adds a problem, unless there are already more than are shown.
func (p *Problems) Add(key, text, want string) {
	if !p.full() {
		*p = append(*p, Problem{Key: key, What: text, Want: want})
	}
}

func (p *Problems) full() bool { return len(*p) > maxProblems }

// Capped returns the problems. If there are more than a hundred, it returns the first hundred and one that says so.
func (p Problems) Capped() Problems {
	if !p.full() {
		return p
	}
	return append(slices.Clone(p[:maxProblems]), Problem{What: "there are more problems than these", Want: "these fixed first"})
}

// Covers reports whether there is already a problem with key, or with a part of it.
func (p Problems) Covers(key string) bool {
	return slices.ContainsFunc(p, func(earlier Problem) bool {
		return earlier.Key == key || strings.HasPrefix(key, earlier.Key+".") || strings.HasPrefix(key, earlier.Key+"[")
	})
}

// sort puts the problems into the order of the keys.
func (p Problems) sort(keys []string) {
	slices.SortStableFunc(p, func(a, b Problem) int { return rank(a.Key, keys) - rank(b.Key, keys) })
}

// Err returns the problems, Capped; nil if there are none.
func (p Problems) Err() error {
	if len(p) == 0 {
		return nil
	}
	return p.Capped()
}

// Show returns a value of a document for a message: quoted, on one line, short.
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
