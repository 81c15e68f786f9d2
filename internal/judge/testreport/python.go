package testreport

import (
	"cmp"
	"strings"

	"pawl/internal/lib/lazyregexp"
	"pawl/internal/loop"
)

var (
	pytestSection = lazyregexp.New(`^=+ (.+?) =+$`)
	pytestTitle   = lazyregexp.New(`^_{3,} (?:ERROR (?:at setup of|at teardown of|collecting) )?(.+?) _{3,}$`)
	pytestFailed  = lazyregexp.New(`^(FAILED|ERROR) (.+)$`)
	pytestVerbose = lazyregexp.New(`^(\S+\.py::.+?) (PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS)(?: \(.*\))?(?:\s+\[ *\d+%\])?$`)
	pytestTotal   = lazyregexp.New(`^(?:=+ )?((?:\d+ [a-z]+(?:, )?)+) in [\d.]+s(?: \([\d:]+\))?(?: =+)?$`)
	pytestCount   = lazyregexp.New(`(\d+) ([a-z]+)`)
)

// pytestReader reads pytest's report. It finds the names of tests in the short summary or in verbose lines, else only
// in the titles of tracebacks.
type pytestReader struct {
	*collector
	section string
	blocks  []Test // the tracebacks of this session
	tests   []Test // the tests named in this session
	known   map[string]int
}

func readPytest(c *collector, outputs [][]byte) {
	r := &pytestReader{collector: c, known: map[string]int{}}
	eachLine(outputs, r.line)
	r.end()
}

func (r *pytestReader) line(line string) {
	var m match
	inTracebacks, inSummary := r.section == "FAILURES" || r.section == "ERRORS", r.section == "short test summary info"
	switch {
	case m.by(pytestTotal, line):
		r.total(m[1])
	case m.by(pytestSection, line):
		r.section = m[1]
	case inTracebacks && m.by(pytestTitle, line):
		if len(r.blocks) < MaxTests {
			r.blocks = append(r.blocks, Test{Name: m[1], out: &excerpt{}})
		} else {
			r.section = "" // that is enough
		}
	case inTracebacks:
		if n := len(r.blocks); n > 0 {
			r.blocks[n-1].out.line(line)
		}
	case inSummary:
		if m.by(pytestFailed, line) {
			r.name(cutReason(m[2]))
		}
	case m.by(pytestVerbose, line):
		switch m[2] {
		case "PASSED", "XPASS":
			r.named(pytestName(m[1]))
		case "FAILED", "ERROR":
			r.name(m[1], "")
		}
	}
}

// cutReason splits "path::test[a - b] - reason".
func cutReason(s string) (id, reason string) {
	start := 0
	if open, sep := strings.IndexByte(s, '['), strings.Index(s, " - "); open >= 0 && open < sep {
		if end := strings.Index(s, "] - "); end >= 0 {
			start = end
		}
	}
	if sep := strings.Index(s[start:], " - "); sep >= 0 {
		return s[:start+sep], s[start+sep+3:]
	}
	return s, ""
}

// pytestName splits a node ID into file and test.
func pytestName(id string) (file, name string) {
	file, name, _ = strings.Cut(strings.TrimSpace(id), "::")
	return strings.TrimPrefix(file, "collecting "), name
}

func (r *pytestReader) name(id, reason string) {
	file, name := pytestName(id)
	if i, isKnown := r.known[file+"\x00"+name]; isKnown {
		r.tests[i].Message = cmp.Or(r.tests[i].Message, tidy(reason))
		return
	}
	if len(r.tests) >= maxNodes {
		r.Failed++
		return
	}
	r.Broken = r.Broken || name == "" // a file that could not be collected
	r.known[file+"\x00"+name] = len(r.tests)
	r.tests = append(r.tests, Test{Package: file, Name: name, File: file, Message: tidy(loop.Clip(reason, headBytes))})
}

// total reads the last line of a session.
func (r *pytestReader) total(counts string) {
	failed := 0
	for _, m := range pytestCount().FindAllStringSubmatch(counts, 10) {
		switch n := atoi(m[1]); m[2] {
		case "passed", "xpassed":
			r.Passed += n
		case "skipped", "xfailed":
			r.Skipped += n
		case "failed", "error", "errors":
			failed += n
		}
	}
	named := r.end()
	r.Failed += max(failed-named, 0)
}

// end records the results of a session and returns the number of its failing tests.
func (r *pytestReader) end() int {
	blocks := map[string][]*excerpt{} // tests with the same name in several files come in the same order
	for _, b := range r.blocks {
		blocks[b.Name] = append(blocks[b.Name], b.out)
	}
	for _, t := range r.tests {
		title := cmp.Or(strings.ReplaceAll(t.Name, "::", "."), t.Package)
		if out := blocks[title]; len(out) > 0 {
			if text := out[0].String(); strings.Contains(text, t.Message) {
				t.Message = text
			} else {
				t.Message += "\n" + text // the reason, on one line, before its traceback
			}
			blocks[title] = out[1:]
		}
		r.fail(t)
	}
	n := len(r.tests)
	if n == 0 { // no test is named: only the titles have names
		for _, b := range r.blocks {
			r.fail(b)
		}
		n = len(r.blocks)
	}
	r.blocks, r.tests, r.section = nil, nil, ""
	clear(r.known)
	return n
}

var (
	unitTitle   = lazyregexp.New(`^(FAIL|ERROR): (\S+)(?: \(([^)]*)\))?(.*)$`)
	unitVerbose = lazyregexp.New(`^\s*(\S+) \(([^)]+)\)(.*?) \.\.\. (ok|FAIL|ERROR|skipped.*|expected failure)$`)
	unitRan     = lazyregexp.New(`^Ran (\d+) tests? in [\d.]+s$`)
	unitTotal   = lazyregexp.New(`^(?:OK|FAILED)(?: \((.*)\))?$`)
	unitCount   = lazyregexp.New(`([a-z ]+)=(\d+)`)
)

func readUnittest(c *collector, outputs [][]byte) {
	var (
		heading bool // the line before was a row of =
		ran     int
		failed  = map[string]bool{} // the failed tests of this run; a test with failed subtests counts once
	)
	eachLine(outputs, func(line string) {
		var m match
		switch {
		case len(line) >= 70 && strings.Trim(line, "=") == "":
			c.close()
			heading = true
			return
		case heading:
			if m.by(unitTitle, line) {
				pkg, name := unitName(m[2], m[3], m[4])
				c.Broken = c.Broken || strings.HasSuffix(pkg, "._FailedTest") // a module that can't be imported
				c.open(Test{Package: pkg, Name: name})
				if len(failed) < maxNodes {
					failed[pkg+" "+m[2]] = true
				}
			}
		case len(line) >= 70 && strings.Trim(line, "-") == "":
		case m.by(unitRan, line):
			c.close()
			ran = atoi(m[1])
		case ran > 0 && m.by(unitTotal, line):
			skipped := 0
			for _, m := range unitCount().FindAllStringSubmatch(m[1], 10) {
				if kind := strings.TrimSpace(m[1]); kind == "skipped" || kind == "expected failures" {
					skipped += atoi(m[2])
				}
			}
			c.Skipped += skipped
			c.Passed += max(ran-skipped-len(failed), 0)
			ran = 0
			clear(failed)
		case c.test != nil:
			c.say(line)
		case m.by(unitVerbose, line) && m[4] == "ok":
			c.named(unitName(m[1], m[2], m[3]))
		}
		heading = false
	})
	c.close()
}

// unitName separates class and test in "test_a (module.Class.test_a) (i=0)". Older versions of Python do not have the
// test in the brackets.
func unitName(name, place, rest string) (pkg, test string) {
	return strings.TrimSuffix(place, "."+name), strings.TrimSpace(name + rest)
}
