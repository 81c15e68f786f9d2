package testreport

import (
	"strings"

	"pawl/internal/lib/lazyregexp"
	"pawl/internal/loop"
)

var (
	nodeTest  = lazyregexp.New(`^( *)(✔|✖|﹣|▶) (.+?)(?: \([\d.]+ms\))?(?: # (SKIP|TODO).*)?$`)
	nodeCount = lazyregexp.New(`^ℹ (pass|fail|cancelled|skipped|todo|duration_ms) ([\d.]+)$`)
	nodeAt    = lazyregexp.New(`^test at (.+?):\d+:\d+$`)
)

// nodeReader reads the normal output of node --test: a tree of all tests with two spaces for each level, the counts,
// then the failing tests again.
type nodeReader struct {
	*collector
	suites []string // the open suites, the outermost first
	tests  []*Test
	bare   map[string][]*Test // the tests by their own names, without those that were also named at the end
	out    *excerpt
	end    bool   // the tree has ended
	file   string // the file of the failing test that is named next
	failed int
}

func readNode(c *collector, outputs [][]byte) {
	r := &nodeReader{collector: c, bare: map[string][]*Test{}}
	eachLine(outputs, r.line)
	for _, t := range r.tests {
		c.fail(*t)
	}
	c.unnamed(r.failed)
}

func (r *nodeReader) line(line string) {
	var m match
	switch {
	case m.by(nodeCount, line):
		r.out, r.end = nil, true
		switch m[1] {
		case "fail", "cancelled":
			r.failed += atoi(m[2])
		case "skipped", "todo":
			r.Skipped += atoi(m[2])
		case "pass":
			r.Passed += atoi(m[2])
		}
	case r.end && m.by(nodeAt, line):
		r.file, r.out = m[1], nil
	case !m.by(nodeTest, line):
		r.out.line(line)
	case r.end && m[2] == "✖" && r.file != "":
		r.again(m[3])
	case !r.end:
		r.tree(len(m[1])/2, m[2], m[3], m[4] != "")
	}
}

// maxDepth is a limit of nesting that no real suite reaches.
const maxDepth = 100

// tree reads a line of the tree of tests.
func (r *nodeReader) tree(level int, mark, name string, excused bool) {
	level = min(level, len(r.suites), maxDepth)
	closes := level < len(r.suites) && r.suites[level] == name
	r.suites, r.out = r.suites[:level], nil
	path := strings.Join(append(append([]string{}, r.suites...), name), " > ")
	switch {
	case mark == "▶":
		r.suites = append(r.suites, loop.Clip(name, maxName))
	case closes, excused: // the tests of a suite count, not the suite
	case mark == "✔":
		r.named("", path)
	case mark == "✖" && len(r.tests) < maxNodes:
		r.out = &excerpt{}
		t := &Test{Name: path, out: r.out}
		r.tests, r.bare[name] = append(r.tests, t), append(r.bare[name], t)
	}
}

// again reads a failing test at the end, which has its file.
func (r *nodeReader) again(name string) {
	file := r.file
	r.file, r.out = "", nil
	if tests := r.bare[name]; len(tests) > 0 {
		t := tests[0]
		t.File, r.bare[name] = file, tests[1:]
		if t.out.String() == "" {
			r.out = t.out // this version of node has the message only here
		}
	} else if len(r.tests) < MaxTests {
		r.out = &excerpt{}
		r.tests = append(r.tests, &Test{Name: name, File: file, out: r.out})
	}
}
