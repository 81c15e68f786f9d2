package testreport

import "strings"

// suites are the titles above a test in a list in which tests are indented below their suites.
type suites []suite

type suite struct {
	indent int
	title  string
}

// add notes a line that may be the title of a suite: it ends all that are indented as far.
func (s *suites) add(line string) {
	title := strings.TrimLeft(line, " ")
	if title == "" {
		return
	}
	*s = append(s.above(len(line)-len(title)), suite{len(line) - len(title), title})
}

// above returns the suites of a test.
func (s suites) above(indent int) suites {
	for len(s) > 0 && s[len(s)-1].indent >= indent {
		s = s[:len(s)-1]
	}
	return s
}

// path returns the name of a test with those of its suites.
func (s suites) path(indent int, name, separator string) string {
	var parts []string
	for _, suite := range s.above(indent) {
		if suite.indent > 0 {
			parts = append(parts, strings.TrimSpace(suite.title))
		}
	}
	return strings.Join(append(parts, strings.TrimSpace(name)), separator)
}
