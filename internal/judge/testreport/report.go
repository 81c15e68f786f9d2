// Package testreport reads the output of test commands: which tests failed and why. It reads `go test -json`, `jest --json`,
// JUnit XML, CTRF and TAP, and, as far as possible, the normal output of go test, pytest, unittest, cargo, jest, vitest, uvu,
// mocha, node, automake, ctest, meson, GoogleTest, prove, busted, RSpec, Minitest, test-unit, PHPUnit,
// JUnit's own programs, shunit2 and small test harnesses in C, and of those in listed_more.go. Deliver uses it to compare two runs (Compare), to recognise a
// failure that occurred before (Signature), and to describe failures to a fixer (Digest).
//
// It never decides whether tests passed: the exit status of the command does. A report never turns a failure into a
// success; fewer passing tests, or more failures than on the unchanged code, make a success a failure.
//
// The readers are pawl's own, also those for JUnit and TAP. Real output is mixed with other lines, cut off in the
// middle, and not always well-formed, and the libraries for these formats expect a whole document.
//
// It is pure and accepts any bytes. It needs time linear in their number and keeps a limited part of them. Start at
// Read.
package testreport

import (
	"cmp"
	"hash/fnv"
	"maps"
	"slices"
	"strings"

	"pawl/internal/lib/lazyregexp"
	"pawl/internal/lib/list"
	"pawl/internal/loop"
)

// The limits of a report.
const (
	MaxTests   = 1000      // failing tests that are listed
	maxName    = 300       // bytes of a name
	maxNamed   = 250_000   // tests that are told apart by name, passing and failing
	maxNames   = 20_000    // passing tests whose names are kept
	maxLine    = 64 << 10  // bytes of a line that are read
	maxNodes   = 10_000    // tests whose package, or whose test that they are part of, is not known yet
	maxPending = 16 << 20  // bytes of output kept of tests that have not ended yet
	headBytes  = 2 << 10   // bytes from the start of a test's message
	tailBytes  = 1 << 10   // bytes from the end of a test's message
	tailOutput = 2 << 10   // bytes from the end of the whole output
	maxCount   = 1_000_000 // a higher number of tests in a summary can't be true
)

// Report is the result of one run of a test command. Its JSON leaves out the names of the tests that passed: Compare
// needs them only of the later report.
type Report struct {
	Format  string `json:"format,omitempty"` // "go-json", "pytest", "go, pytest", …; "" if no format was recognised
	Passed  int    `json:"passed"`
	Failed  int    `json:"failed"` // if parts of a test failed, the parts count and not the test
	Skipped int    `json:"skipped"`
	// Broken says that something could not be built, loaded or finished, so that tests are missing.
	Broken bool `json:"broken,omitempty"`
	// Partial says that a part of the output was left out, so that tests may be missing.
	Partial bool   `json:"partial,omitempty"`
	Failing []Test `json:"failing,omitempty"` // the first MaxTests, in the order of the output
	// Tail is the end of the output, if no failing test was found in it.
	Tail string `json:"tail,omitempty"`

	empty  string              // the format of an output in which no test ran
	passed map[uint64]struct{} // the tests and packages that passed, by hash
	names  []Test              // the first maxNames of passed
	naming bool                // passing tests are named in the output
}

// Test is one failing test. Name is "" if a whole package or file failed, for example because it could not be built.
// Package is the unit by which the runner groups tests: package, class or file.
type Test struct {
	Package string `json:"package,omitempty"`
	Name    string `json:"name,omitempty"`
	File    string `json:"file,omitempty"`
	Message string `json:"message,omitempty"` // an excerpt of what it printed

	out *excerpt // becomes Message when the test is recorded
}

// ID returns a name of the test that is the same in all runs.
func (t Test) ID() string {
	switch {
	case t.Name == "":
		return t.Package
	case t.Package == "":
		return t.Name
	}
	return t.Package + " " + t.Name
}

// IDs returns the IDs of the listed failing tests.
func (r Report) IDs() []string {
	return list.Map(r.Failing, func(t Test) string { return t.ID() })
}

// format is a format of test results. If sign matches a line, the output may have this format. read reads the
// results.
type format struct {
	name    string
	machine bool // a format for machines: if it has results, other formats are ignored. Not TAP, which is mixed with other output
	sign    lazyregexp.Regexp
	read    func(c *collector, outputs [][]byte)
}

// formats are tried in this order. One command may run several runners without a machine format (make test). A test
// point of TAP has a number or a dash, which distinguishes it from "ok  \tpackage" of go test.
var formats = []format{
	{"go-json", true, lazyregexp.New(`^\{.*"Action":"`), readGoJSON},
	{"ctrf", true, ctrfSign, readCTRF},
	{"jest-json", true, jestSign, readJestJSON},
	{"junit", true, lazyregexp.New(`<testsuite`), readJUnit},
	{"tap", false, lazyregexp.New(`^(?:TAP version |1\.\.\d+\b|(?:not )?ok (?: *\d+(?: |$)| *- ))`), readTAP},
	{"go", false, lazyregexp.New(`^(?:\s*--- (?:FAIL|PASS|SKIP): \S+ \([\d.]+s\)|(?:FAIL|ok  )\t\S+(?:[ \t]|$)|\?   \t\S+\t\[no test files\])`), readGo},
	{"pytest", false, lazyregexp.New(`^(?:=.* test session starts |(?:=+ )?no tests ran in |` + pytestTotal().String() + `)`), readPytest},
	{"unittest", false, unitRan, readUnittest},
	{"cargo", false, lazyregexp.New(`^(?:test result: |error: could not compile )`), readCargo},
	{"jest", false, lazyregexp.New(`^Tests: +(.+, )?\d+ total`), jest.read},
	{"vitest", false, lazyregexp.New(`^ +Tests +(.*\(\d+\)|no tests)$`), vitest.read},
	{"uvu", false, lazyregexp.New(`^  Total: +\d+$`), uvu.read},
	{"mocha", false, lazyregexp.New(`^  \d+ (?:passing|failing)(?: \([\d.]+(?:ms|s|m)\))?$`), mocha.read},
	{"node", false, lazyregexp.New(`^ℹ tests `), readNode},
	{"automake", false, lazyregexp.New(`^# TOTAL: +\d+$`), automake.read},
	{"tally", false, tallyTotal, tally.read},
	{"prove", false, proveTotal, readProve},
	{"ctest", false, ctestTotal, ctest.read},
	{"meson", false, lazyregexp.New(`^Ok: +\d+\s*$`), meson.read},
	{"gtest", false, lazyregexp.New(`^\[==========\] `), gtest.read},
	{"busted", false, bustedTotal, busted.read},
	{"rspec", false, rspecTotal, rspec.read},
	{"minitest", false, minitestTotal, minitest.read},
	{"test-unit", false, testUnitTotal, testUnit.read},
	{"junit4", false, junit4Total, junit4.read},
	{"junit-platform", false, platformTotal, platform.read},
	{"shunit2", false, shunitRan, readShunit},
	{"phpunit", false, phpunitTotal, phpunit.read},
	{"exunit", false, lazyregexp.New(`^(?:Running ExUnit with seed: |Finished in [\d.]+ seconds \([\d.]+s )`), exunit.read},
	{"pytest-sugar", false, lazyregexp.New(`^Results \([\d.]+(?:s|m\d.*)\):$`), sugar.read},
	{"bun", false, lazyregexp.New(`^Ran \d+ tests? across \d+ files?\.`), bun.read},
	{"deno", false, denoTotal, deno.read},
	{"dotnet", false, lazyregexp.New(`^(?:(?:Passed|Failed|Skipped)! +- Failed: +\d+, |Test summary: total: \d+, |Total tests: \d+$)`), dotnet.read},
	{"nextest", false, nextestTotal, nextest.read},
	{"ava", false, lazyregexp.New(`^  \d+ tests? (?:passed|failed)$`), ava.read},
	{"jasmine", false, jasmineTotal, jasmine.read},
	{"playwright", false, lazyregexp.New(`^Running \d+ tests? using \d+ workers?`), playwright.read},
	{"catch2", false, catch2Total, catch2.read},
	{"doctest", false, doctestTotal, doctest.read},
	{"pest", false, pestTotal, pest.read},
	{"sbt", false, sbtTotal, sbt.read},
	{"scalatest", false, scalatestTotal, readScalatest},
	{"surefire", false, surefireTotal, surefire.read},
	{"swift", false, swiftEnd, readSwift},
	{"ginkgo", false, ginkgoSign, readGinkgo},
	{"gotestsum", false, gotestsumEnd, readGotestsum},
	{"cucumber", false, cucumberTotal, cucumber.read},
	{"behave", false, behaveTotal, behave.read},
	{"dart", false, dartTotal, dart.read},
	{"testthat", false, testthatTotal, testthat.read},
	{"clojure", false, lazyregexp.New(`^Ran \d+ tests containing \d+ assertions\.$`), clojure.read},
	{"bazel", false, bazelTotal, bazel.read},
	{"zig", false, zigTotal, zig.read},
	{"elm-test", false, lazyregexp.New(`^TEST RUN (?:PASSED|FAILED)`), elm.read},
	{"tasty", false, tastyTotal, tasty.read},
	{"crystal", false, crystalTotal, crystal.read},
	{"alcotest", false, alcotestTotal, alcotest.read},
}

// noTests matches what runners print, instead of a summary, if they found no test and exit with 0 nevertheless. That of jest is
// of a real run, the others follow the runners' sources.
var noTests = map[string]lazyregexp.Regexp{
	"jest":     lazyregexp.New(`^No tests found, exiting with code 0$`),
	"vitest":   lazyregexp.New(`^No test files found, exiting with code 0$`),
	"ctest":    lazyregexp.New(`^No tests were found!!!$`),
	"meson":    lazyregexp.New(`^No tests defined\.$`),
	"dotnet":   lazyregexp.New(`^No test (?:is available in|matches the given testcase filter) `),
	"exunit":   lazyregexp.New(`^There are no tests to run$`),
	"surefire": lazyregexp.New(`^(?:\[INFO\] )?No tests to run\.$`),
	"phpunit":  lazyregexp.New(`^No tests executed!$`),
	"sbt":      lazyregexp.New(`^\[info\] No tests (?:were executed|to run for .*)$`),
}

// Read returns the report of one run of a test command. The outputs are standard output and standard error, in that
// order, and then report files.
func Read(outputs ...[]byte) Report {
	seen, partial := sniff(outputs)
	r := read(outputs, seen, partial)
	machine := slices.ContainsFunc(formats, func(f format) bool { return f.machine && f.name == r.Format })
	if machine && r.Failed == 0 && !r.Broken {
		// One runner may report success while another runner of the same command fails.
		for _, f := range formats {
			seen[f.name] = seen[f.name] && !f.machine
		}
		if second := read(outputs, seen, partial); second.Failed > 0 || second.Broken {
			second.Format += ", " + r.Format
			second.Passed, second.Skipped = second.Passed+r.Passed, second.Skipped+r.Skipped
			second.naming = second.naming || r.naming
			maps.Copy(second.passed, r.passed)
			second.names = append(second.names, r.names...)
			return second
		}
	}
	return r
}

// read reads the results in the formats of seen.
func read(outputs [][]byte, seen map[string]bool, partial bool) Report {
	c := &collector{Report: Report{Partial: partial, passed: map[uint64]struct{}{}}, index: map[uint64]int{}, parents: map[uint64]struct{}{}}
	var found []string
	empty := ""
	for _, f := range formats {
		if !seen[f.name] {
			continue
		}
		booked := c.booked()
		c.before = len(c.index)
		f.read(c, outputs)
		if c.booked() == booked {
			empty = cmp.Or(empty, f.name)
			continue
		}
		if found = append(found, f.name); f.machine {
			break
		}
	}
	r := c.report()
	r.Format = strings.Join(found, ", ")
	if len(found) == 0 && !partial {
		r.empty = empty
	}
	if r.Failed == 0 {
		r.Tail = tailOf(outputs, tailOutput)
	}
	return r
}

// sniff returns the formats that the outputs may have, and whether output was left out.
func sniff(outputs [][]byte) (seen map[string]bool, partial bool) {
	seen = map[string]bool{}
	signs := signsByStart()
	eachLine(outputs, func(line string) {
		if strings.HasPrefix(line, "[pawl: ") && strings.HasSuffix(line, " bytes left out here]") {
			partial = true
		}
		if line == "" {
			return
		}
		for _, sign := range signs[line[0]] {
			if !seen[sign.format] && sign.MatchString(line) {
				seen[sign.format] = true
			}
		}
	})
	return seen, partial
}

// collector is a report in the making: it collects the results of all formats, within the limits.
type collector struct {
	Report                      // so far; Failed counts the failures without a name
	test    *Test               // the open test
	index   map[uint64]int      // the position in Failing of each failing test, -1 beyond the limit
	before  int                 // the size of index before the present format
	parents map[uint64]struct{} // tests that failed because a part of them did
}

// booked returns a number that changes with each result.
func (c *collector) booked() int {
	n := c.Passed + c.Failed + c.Skipped + len(c.index)
	if c.Broken {
		n++
	}
	return n
}

// pass records a test that passed, or a package if name is "".
func (c *collector) pass(pkg, name string) {
	if clean(name) != "" {
		c.Passed++
	}
	c.named(pkg, name)
}

// named is pass for a test that a summary counts.
func (c *collector) named(pkg, name string) {
	pkg, name = clean(pkg), clean(name)
	c.naming = c.naming || name != ""
	if len(c.passed) >= maxNamed {
		return
	}
	passed := len(c.passed)
	c.passed[hashOf(pkg, name)] = struct{}{}
	if len(c.passed) > passed && len(c.names) < maxNames {
		c.names = append(c.names, Test{Package: strings.Clone(pkg), Name: strings.Clone(name)})
	}
}

// open begins a failing test. say adds the lines of its message, until close.
func (c *collector) open(t Test) {
	c.close()
	t.out = &excerpt{}
	c.test = &t
}

// say adds a line to the open test; without one the line is dropped.
func (c *collector) say(line string) {
	if c.test != nil {
		c.test.out.line(line)
	}
}

func (c *collector) close() {
	if c.test != nil {
		c.fail(*c.test)
	}
	c.test = nil
}

// unnamed records the failures that a summary counts in addition to the named ones.
func (c *collector) unnamed(counted int) { c.Failed += max(count(counted)-(len(c.index)-c.before), 0) }

// fail records a failing test, once for each name. A later message is only used if there was none.
func (c *collector) fail(t Test) {
	t.Package, t.Name, t.File = clean(t.Package), clean(t.Name), clean(t.File)
	if t.out != nil {
		t.Message, t.out = cmp.Or(t.out.String(), t.Message), nil
	}
	key := hashOf(t.Package, t.Name)
	if i, isKnown := c.index[key]; isKnown {
		if i >= 0 && c.Failing[i].Message == "" {
			c.Failing[i].Message = t.Message
		}
		return
	}
	if len(c.index) >= maxNamed {
		c.Failed++
		return
	}
	c.index[key] = -1
	if len(c.Failing) < MaxTests {
		c.index[key] = len(c.Failing)
		c.Failing = append(c.Failing, t)
	}
}

// parent marks a test that fails only because of its parts.
func (c *collector) parent(pkg, name string) {
	if len(c.parents) < maxNamed {
		c.parents[hashOf(clean(pkg), clean(name))] = struct{}{}
	}
}

func (c *collector) report() Report {
	r := c.Report
	for key := range c.index {
		if _, parent := c.parents[key]; !parent {
			r.Failed++
		}
	}
	r.Failing = list.Filter(r.Failing, func(t Test) bool {
		_, parent := c.parents[hashOf(t.Package, t.Name)]
		return !parent
	})
	return r
}

// count limits a number from a summary line.
func count(n int) int { return min(max(n, 0), maxCount) }

func hashOf(pkg, name string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(pkg))
	h.Write([]byte{0})
	h.Write([]byte(name))
	return h.Sum64()
}

// clean returns a name for one line: printable, valid, of limited length.
func clean(name string) string {
	name = strings.ToValidUTF8(name, "?")
	name = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, name)
	return loop.Clip(strings.TrimSpace(name), maxName)
}
