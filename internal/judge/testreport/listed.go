package testreport

import (
	"cmp"
	"slices"
	"strings"

	"pawl/internal/lib/lazyregexp"
	"pawl/internal/loop"
)

// listed describes a runner that lists its failing tests, each with its message, and counts all tests in a summary.
// The expressions have named groups.
type listed struct {
	// total matches a line of the summary: ran (all tests), or passed; failed, errors and more (all of them failed);
	// skipped; or counts, each with its word.
	total lazyregexp.Regexp
	// begin and end are around a list of failing tests. Without begin, tests fail anywhere, and end ends a message.
	begin, end lazyregexp.Regexp
	// test is the title of a failing test: pkg or file, and name (in a suite) or the next line. ok and skip are those
	// of other tests. Without test, only the summary is read.
	test, ok, skip lazyregexp.Regexp
	// start is the line before what a test prints, where some of that comes before the title.
	start lazyregexp.Regexp
	// group names the pkg or file of the tests after it, and whether all of them passed.
	group  lazyregexp.Regexp
	nested string // between the titles of suites, where passing tests are indented below them; "" if they are not
	tree   bool   // a title has lines for the suites and the test, up to one that ends with a colon, and is not in the message
	alone  bool   // a title is the whole message
	broken string // the name in the title of a file that can't be loaded
}

// counted matches a number in the summary, with its word.
var counted = lazyregexp.New(`(\d+) (failed|passed|skipped|todo|pending)`)

var (
	rspecTotal    = lazyregexp.New(`^(?P<ran>\d+) examples?, (?P<failed>\d+) failures?(?:, (?P<skipped>\d+) pending)?(?:, (?P<errors>\d+) errors? occurred outside of examples)?$`)
	minitestTotal = lazyregexp.New(`^(?P<ran>\d+) (?:runs|tests), \d+ assertions, (?P<failed>\d+) failures, (?P<errors>\d+) errors(?:, (?P<skipped>\d+) skips.*)?$`)
	testUnitTotal = lazyregexp.New(`^(?P<ran>\d+) tests, \d+ assertions, (?P<failed>\d+) failures, (?P<errors>\d+) errors, (?P<skipped>\d+) pendings(?:, (?P<omitted>\d+) omissions.*)?$`)
	junit4Total   = lazyregexp.New(`^(?:OK \((?P<ran>\d+) tests?\)|Tests run: (?P<all>\d+),  Failures: (?P<failed>\d+))$`)
	platformTotal = lazyregexp.New(`^\[ +(?:(?P<passed>\d+) tests successful|(?P<failed>\d+) tests failed|(?P<errors>\d+) containers failed|(?P<skipped>\d+) tests skipped) +\]$`)
	phpunitTotal  = lazyregexp.New(`^(?:OK \((?P<ran>\d+) tests?, \d+ assertions?\)|Tests: (?P<all>\d+), Assertions: \d+(?:, Errors: (?P<errors>\d+))?(?:, Failures: (?P<failed>\d+))?(?:, [A-Z][A-Za-z ]+: \d+)*?(?:, Skipped: (?P<skipped>\d+))?(?:, [A-Z][A-Za-z ]+: \d+)*\.)$`)
	ctestTotal    = lazyregexp.New(`^\d+% tests passed, (?P<failed>\d+) tests? failed out of (?P<ran>\d+)$`)
	mesonTotal    = lazyregexp.New(`^(?:Ok: +(?P<passed>\d+)|Expected Fail: +(?P<expected>\d+)|Fail: +(?P<failed>\d+)|Unexpected Pass: +(?P<more>\d+)|Timeout: +(?P<errors>\d+)|Skipped: +(?P<skipped>\d+))\s*$`)
	bustedTotal   = lazyregexp.New(`^(?P<passed>\d+) success(?:es)? / (?P<failed>\d+) failures? / (?P<errors>\d+) errors? / (?P<skipped>\d+) pending`)
	gtestTotal    = lazyregexp.New(`^\[ +(?:PASSED +\] (?P<passed>\d+) tests?\.|FAILED +\] (?P<failed>\d+) tests?, listed below:|ERROR +\] (?P<errors>\d+) errors?, listed below:|SKIPPED +\] (?P<skipped>\d+) tests?, listed below:)$`)

	automakeTotal = lazyregexp.New(`^# (?:PASS: +(?P<passed>\d+)|XFAIL: +(?P<expected>\d+)|FAIL: +(?P<failed>\d+)|XPASS: +(?P<more>\d+)|ERROR: +(?P<errors>\d+)|SKIP: +(?P<skipped>\d+))$`)
	mochaTotal    = lazyregexp.New(`^  (?:(?P<passed>\d+) passing|(?P<skipped>\d+) pending|(?P<failed>\d+) failing)(?: \([\d.]+(?:ms|s|m)\))?$`)
	tallyTotal    = lazyregexp.New(`^(?:PASSED: +(?P<passed>\d+)|FAILED: +(?P<failed>\d+))$`)

	rspec = listed{
		total: rspecTotal, begin: lazyregexp.New(`^Failures:$`), end: lazyregexp.New(`^(?:Finished in |Pending:|Failed examples:)`), test: lazyregexp.New(`^ +\d+\) (?P<name>\S.*)$`),
	}
	minitest = listed{
		total: minitestTotal, begin: lazyregexp.New(`^ +\d+\) (?:Failure|Error):$`), end: lazyregexp.New(`^ +\d+\) Skipped:$`), test: lazyregexp.New(`^(?P<pkg>[^\s#]+)#(?P<name>[^\s:\[]+)(?: \[.*\])?:$`),
	}
	testUnit = listed{
		total: testUnitTotal, begin: lazyregexp.New(`^={79}$`), end: lazyregexp.New(`^Finished in `), test: lazyregexp.New(`^(?:Failure|Error): (?P<name>.+)\((?P<pkg>[^()]+)\)(?::.*)?$`),
	}
	// JUnit has two programs of its own: JUnitCore, and the console of its platform.
	junit4 = listed{
		total: junit4Total, begin: lazyregexp.New(`^There (?:was|were) \d+ failures?:$`), end: lazyregexp.New(`^FAILURES!!!$`), test: lazyregexp.New(`^\d+\) (?P<name>.+)\((?P<pkg>[\w.$]+)\)$`),
	}
	platform = listed{
		total: platformTotal, begin: lazyregexp.New(`^Failures \(\d+\):$`), end: lazyregexp.New(`^Test run finished after `), test: lazyregexp.New(`^  [\w ]+:(?P<name>\S.*)$`),
	}
	phpunit = listed{
		total: phpunitTotal, begin: lazyregexp.New(`^There (?:was|were) \d+ (?:error|failure)s?:$`), end: lazyregexp.New(`^(?:There (?:was|were) \d+ |--$|(?:FAILURES|ERRORS|WARNINGS|OK)\b)`),
		test: lazyregexp.New(`^\d+\) (?P<pkg>[\w\\]+)::(?P<name>.+)$`),
	}
	ctest = listed{
		total: ctestTotal, start: lazyregexp.New(`^ *Start +\d+: `), test: lazyregexp.New(`^ *\d+/\d+ Test +#\d+: (?P<name>.+?) \.*(?:[A-Z][a-z ]+)?\*\*\*(?:Failed|Timeout|Exception|Not Run)`),
		ok: lazyregexp.New(`^ *\d+/\d+ Test +#\d+: (?P<name>.+?) \.+ +Passed `), skip: lazyregexp.New(`^ *\d+/\d+ Test +#\d+: .+\*\*\*Skipped`),
	}
	meson = listed{
		total: mesonTotal, end: lazyregexp.New(`^$`), test: lazyregexp.New(`^ *\d+/\d+ (?P<name>\S.*?) +(?:FAIL|TIMEOUT|ERROR|UNEXPECTEDPASS) +[\d.]+s`),
		ok: lazyregexp.New(`^ *\d+/\d+ (?P<name>\S.*?) +(?:OK|EXPECTEDFAIL) +[\d.]+s`),
	}
	busted = listed{total: bustedTotal, end: lazyregexp.New(`^Pending -> `), test: lazyregexp.New(`^(?:Failure|Error) -> (?P<pkg>\S+)(?: @ \d+)?$`)}
	gtest  = listed{ // of GoogleTest, and of busted
		total: gtestTotal, start: lazyregexp.New(`^\[ RUN +\] `), end: lazyregexp.New(`^(?:\[(?:-{10}|={10})\].*|)$`), test: lazyregexp.New(`^\[ +(?:FAILED|ERROR) +\] (?:(?P<pkg>\S+) @ \d+: )?(?P<name>.+?)(?: \([\d.]+ ms\))?$`),
		ok: lazyregexp.New(`^\[ +OK \] (?:(?P<pkg>\S+) @ \d+: )?(?P<name>.+?)(?: \([\d.]+ ms\))?$`),
	}
	automake = listed{ // with a summary for each folder
		total: automakeTotal, group: lazyregexp.New(`^Making check in (?P<pkg>\S+)$`), alone: true,
		test: lazyregexp.New(`^(?:FAIL|XPASS|ERROR): (?P<name>\S.*)$`), ok: lazyregexp.New(`^(?:PASS|XFAIL): (?P<name>\S.*)$`),
	}
	jest = listed{ // names passing tests if it is verbose or runs one file
		nested: " › ", ok: lazyregexp.New(`^(?P<indent> +)[✓√] (?P<name>\S.*?)(?: \([\d.]+ m?s\))?$`),
		total: lazyregexp.New(`^Tests: +(?P<counts>.+, )?\d+ total`), group: lazyregexp.New(`^(?:FAIL|(?P<passed>PASS)) +(?:\./)?(?P<file>\S.*?)(?: \([\d.]+ m?s\))?$`),
		test: lazyregexp.New(`^  ● (?P<name>.+)$`), broken: "Test suite failed to run",
		end: lazyregexp.New(`^(?:Test Suites: |Summary of all failing tests|  ● (?:Console|Cannot log after tests are done\. Did you forget to wait for something async in your test\?)$)`),
	}
	vitest = listed{ // printed to pipes, the names of failing tests come after the counts
		total: lazyregexp.New(`^ +Tests +(?P<counts>.*)(?:\(\d+\)|no tests)$`), end: lazyregexp.New(`^⎯⎯⎯`),
		test: lazyregexp.New(`^ *FAIL +(?P<file>\S.*?)(?: > (?P<name>.+)| \[ .*)?$`),
	}
	uvu = listed{ // the name of each of several files comes before its dots; passing tests have no names
		total: lazyregexp.New(`^  (?:Total: +(?P<ran>\d+)|Passed: +(?P<passed>\d+)|Skipped: +(?P<skipped>\d+))$`), group: lazyregexp.New(`^(?P<file>\S+\.[cm]?[jt]sx?)$`),
		test: lazyregexp.New(`^ +FAIL +(?:(?P<suite>\S.*?) +)?"(?P<name>.*)"$`), end: lazyregexp.New(`\(\d+ / \d+\)$`),
	}
	mocha = listed{
		nested: " > ", ok: lazyregexp.New(`^(?P<indent> +)[✔✓√] (?P<name>\S.*?)(?: \(\d+ms\))?$`), end: lazyregexp.New(`^> \S`), // of npm, before the next run
		total: mochaTotal, begin: lazyregexp.New(`^  \d+ failing(?: \([\d.]+(?:ms|s|m)\))?$`), test: lazyregexp.New(`^  \d+\) (?P<name>.+)$`), tree: true,
	}
	// tally is the form of small test harnesses in C.
	tally = listed{total: tallyTotal, test: lazyregexp.New(`^FAILED: (?P<name>.+?)(?: \(at line \d+\))?$`), alone: true}
)

// read reads the output of the runner.
func (f listed) read(c *collector, outputs [][]byte) {
	var ran, passed, failed, skipped int
	sums := map[string]*int{
		"ran": &ran, "all": &ran, "passed": &passed, "expected": &passed, "failed": &failed, "errors": &failed, "more": &failed,
		"skipped": &skipped, "omitted": &skipped, "todo": &skipped, "pending": &skipped,
		"good": &passed, "bad": &failed, "left": &skipped,
	}
	inside, untitled := f.begin == nil, false // untitled: the name of the open test is the next line
	titled := false                           // the title of the open test goes on
	var open Test
	var pkg, file string
	var above suites
	tests := f.group == nil // the lines are those of passing tests and their suites, where they are nested
	previous := (*excerpt)(nil)
	eachLine(outputs, func(line string) {
		if m := groups(f.total, line); m != nil {
			c.close()
			for name, sum := range sums {
				*sum += atoi(m[name])
			}
			for _, n := range counted().FindAllStringSubmatch(m["counts"], 10) {
				*sums[n[2]] += atoi(n[1])
			}
			previous, titled = nil, false
			inside = inside || f.begin().MatchString(line)
			return
		}
		switch {
		case untitled:
			untitled, open.Name = false, line
			c.open(open)
		case f.group != nil && f.group().MatchString(line):
			c.close()
			above, tests = nil, true
			m := groups(f.group, line)
			if pkg, file = cmp.Or(m["pkg"], m["file"]), m["file"]; m["passed"] != "" {
				c.pass(pkg, "")
			}
		case f.begin != nil && f.begin().MatchString(line):
			c.close()
			inside = true
		case f.start != nil && f.start().MatchString(line):
			c.close()
			previous = &excerpt{}
		case f.end != nil && f.end().MatchString(line):
			c.close()
			inside = f.begin == nil
		case f.ok != nil && f.passes(line, tests, inside):
			c.close()
			m := groups(f.ok, line)
			name := m["name"]
			if f.nested != "" {
				name = above.path(len(m["indent"]), name, f.nested)
			}
			c.named(cmp.Or(m["pkg"], pkg), name)
			previous = nil
		case f.skip != nil && f.skip().MatchString(line):
			c.close()
			skipped++
		case inside && f.test != nil && f.test().MatchString(line):
			tests = tests && f.group == nil
			m := groups(f.test, line)
			open = Test{Package: cmp.Or(m["pkg"], m["file"], pkg), Name: m["name"], File: cmp.Or(m["file"], file)}
			if m["suite"] != "" {
				open.Name = m["suite"] + " > " + open.Name
			}
			if open.File == "" && !f.tree { // otherwise the title says no more than the name
				open.Message = loop.Clip(tidy(line), headBytes)
			}
			if _, titled := m["name"]; !titled {
				c.close()
				untitled = true
				break
			}
			c.Broken = c.Broken || open.Name == f.broken
			if f.tree {
				var whole bool
				open.Name, whole = strings.CutSuffix(open.Name, ":")
				titled = !whole
			}
			c.open(open)
			if previous != nil {
				c.say(previous.String())
				previous = nil
			}
			if f.alone {
				c.close()
			}
		case titled && strings.TrimSpace(line) != "" && len(c.test.Name) < maxName:
			part, whole := strings.CutSuffix(strings.TrimSpace(line), ":")
			c.test.Name, titled = c.test.Name+" > "+part, !whole
		case previous != nil:
			previous.line(line)
		default:
			titled = false
			c.say(line)
			above.add(line)
			if line == "" && f.group != nil {
				tests = false
			}
		}
	})
	c.close()
	c.Skipped += count(skipped)
	if slices.Contains(f.total().SubexpNames(), "passed") {
		failed = max(failed, ran-passed) // uvu's numbers do not include skipped tests
	} else {
		passed = max(passed, ran-failed-skipped)
	}
	c.Passed += count(passed)
	c.unnamed(failed)
}

// passes reports whether a line is that of a test that passed. A message may quote such lines, where tests are nested.
func (f listed) passes(line string, tests, failures bool) bool {
	if f.nested != "" && (!tests || f.begin != nil && failures) {
		return false
	}
	return f.ok().MatchString(line)
}

// groups returns the named groups of a match, nil if the expression does not match.
func groups(e lazyregexp.Regexp, line string) map[string]string {
	m := e().FindStringSubmatch(line)
	if m == nil {
		return nil
	}
	verdicts := map[string]string{}
	for i, name := range e().SubexpNames() {
		if name != "" {
			verdicts[name] = m[i]
		}
	}
	return verdicts
}
