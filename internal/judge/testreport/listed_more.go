package testreport

import (
	"strings"

	"pawl/internal/lib/lazyregexp"
)

// More runners, after the output that their documentation shows. Samples of mix, Catch2, doctest, Ginkgo, gotestsum and
// cucumber-js are from the real programs; the others were written by hand.
var (
	exunitTotal     = lazyregexp.New(`^(?:(?P<all>\d+) doctests?, )?(?:\d+ propert(?:y|ies), )?(?P<ran>\d+) tests?, (?P<failed>\d+) failures?(?:, \d+ excluded)?(?:, (?P<errors>\d+) invalid)?(?:, (?P<skipped>\d+) skipped)?(?:, \d+ excluded)?$`)
	sugarTotal      = lazyregexp.New(`^ +(?:(?P<passed>\d+) passed|(?P<failed>\d+) failed|(?P<errors>\d+) errors?|(?P<skipped>\d+) skipped|(?P<omitted>\d+) xfailed|(?P<more>\d+) xpassed)$`)
	bunTotal        = lazyregexp.New(`^ *(?:(?P<passed>\d+) pass|(?P<failed>\d+) fail|(?P<skipped>\d+) skip|(?P<todo>\d+) todo)$`)
	denoTotal       = lazyregexp.New(`^(?:ok|FAILED) \| (?P<passed>\d+) passed(?: \(\d+ steps?\))?(?: \| (?P<failed>\d+) failed(?: \(\d+ steps?\))?)?(?: \| (?P<skipped>\d+) ignored(?: \(\d+ steps?\))?)?(?: \| \d+ (?:measured|filtered out))* \([\dhms.]+\)$`)
	dotnetTotal     = lazyregexp.New(`^(?:(?:Passed|Failed|Skipped)! +- Failed: +(?P<failed>\d+), Passed: +(?P<passed>\d+), Skipped: +(?P<skipped>\d+), .*|Test summary: total: \d+, failed: (?P<errors>\d+), succeeded: (?P<expected>\d+), skipped: (?P<omitted>\d+), .*| {5}Passed: (?P<good>\d+)| {5}Failed: (?P<bad>\d+)| {4}Skipped: (?P<left>\d+))$`)
	nextestTotal    = lazyregexp.New(`^ +Summary \[ *[\d.]+s\] +\d+(?:/\d+)? tests? run: (?P<counts>(?:.*?, (?P<errors>\d+) timed out)?.*)$`)
	avaTotal        = lazyregexp.New(`^  (?:(?P<passed>\d+) tests? passed|(?P<failed>\d+) tests? failed|(?P<expected>\d+) known failures?|(?P<skipped>\d+) tests? skipped|(?P<todo>\d+) tests? todo|(?P<errors>\d+) (?:uncaught exceptions?|unhandled rejections?))$`)
	jasmineTotal    = lazyregexp.New(`^(?P<ran>\d+) specs?, (?P<failed>\d+) failures?(?:, (?P<skipped>\d+) pending specs?)?$`)
	playwrightTotal = lazyregexp.New(`^  (?:(?P<passed>\d+) passed \([\d.]+(?:ms|s|m|h)\)|(?P<expected>\d+) flaky|(?P<failed>\d+) failed|(?P<errors>\d+) interrupted|(?P<skipped>\d+) skipped|(?P<omitted>\d+) did not run)$`)
	catch2Total     = lazyregexp.New(`^(?:All tests passed \(\d+ assertions? in (?P<ran>\d+) test cases?\)|test cases: +\d+ \| (?P<counts>.*?)(?:\| +\d+ failed as expected)?)$`)
	doctestTotal    = lazyregexp.New(`^\[doctest\] test cases: +\d+ \| +(?P<passed>\d+) passed \| +(?P<failed>\d+) failed \| +(?P<skipped>\d+) skipped$`)
	pestTotal       = lazyregexp.New(`^ +Tests: +(?P<counts>(?:\d+ [a-z]+, )*\d+ [a-z]+) \(\d+ assertions?\)$`)
	sbtTotal        = lazyregexp.New(`^\[(?:info|error)\] (?:Passed|Failed|Error): Total \d+, Failed (?P<failed>\d+), Errors (?P<errors>\d+), Passed (?P<passed>\d+)(?:, (?:Skipped|Ignored) (?P<skipped>\d+))?(?:, [A-Z][a-z]+ \d+)*$`)
	surefireTotal   = lazyregexp.New(`^(?:\[\w+\] )?Tests run: (?P<ran>\d+), Failures: (?P<failed>\d+), Errors: (?P<errors>\d+), Skipped: (?P<skipped>\d+)$`)
)

var (
	ginkgoTotal   = lazyregexp.New(`^(?:SUCCESS|FAIL)! -- (?P<passed>\d+) Passed \| (?P<failed>\d+) Failed \| (?:\d+ Flaked \| )?(?P<skipped>\d+) Pending \| (?P<omitted>\d+) Skipped$`)
	ginkgoShort   = lazyregexp.New(`^\[\d+\] .+ - \d+/\d+ specs (.*)SUCCESS! [\d.]+[µmnsh]`)
	gotestsumEnd  = lazyregexp.New(`^DONE (?:\d+ runs, )?(?P<ran>\d+) tests?(?:, (?P<skipped>\d+) skipped)?(?:, (?P<failed>\d+) failures?)?(?:, \d+ errors?)? in [\d.]+s$`)
	cucumberTotal = lazyregexp.New(`^\d+ [Ss]cenarios?(?: \((?P<counts>(?:.*?(?P<errors>\d+) undefined)?.*)\))?$`)
	behaveTotal   = lazyregexp.New(`^(?P<passed>\d+) scenarios? passed, (?P<failed>\d+) failed(?:, (?P<errors>\d+) error)?, (?P<skipped>\d+) skipped(?:, .*)?$`)
	dartTotal     = lazyregexp.New(`^\d\d:\d\d \+(?P<passed>\d+)(?: ~(?P<skipped>\d+))?(?: -(?P<failed>\d+))?: (?:All (?:other )?tests passed!|Some tests failed\.|All tests skipped\.)$`)
	testthatTotal = lazyregexp.New(`^\[ FAIL (?P<failed>\d+) \| WARN \d+ \| SKIP (?P<skipped>\d+) \| PASS (?P<passed>\d+) \]$`)
	clojureTotal  = lazyregexp.New(`^(?:Ran (?P<ran>\d+) tests containing \d+ assertions\.|(?P<failed>\d+) failures, (?P<errors>\d+) errors\.)$`)
	bazelTotal    = lazyregexp.New(`^Executed \d+ out of \d+ tests?: (?:(?P<passed>\d+) tests? pass(?:es)?)?.*\.$`)
	zigTotal      = lazyregexp.New(`^(?:All (?P<good>\d+) tests passed\.|(?P<passed>\d+) passed; (?P<skipped>\d+) skipped; (?P<failed>\d+) failed\.)$`)
	elmTotal      = lazyregexp.New(`^(?:Passed: +(?P<passed>\d+)|Failed: +(?P<failed>\d+)|Skipped: +(?P<skipped>\d+)|Todo: +(?P<todo>\d+))$`)
	tastyTotal    = lazyregexp.New(`^(?:All (?P<ran>\d+) tests passed|(?P<failed>\d+) out of (?P<all>\d+) tests failed) \([\d.]+s\)$`)
	crystalTotal  = lazyregexp.New(`^(?P<ran>\d+) examples, (?P<failed>\d+) failures, (?P<errors>\d+) errors, (?P<skipped>\d+) pending$`)
	alcotestTotal = lazyregexp.New(`^(?:Test Successful|(?P<failed>\d+) failures?!) in [\d.]+s\. (?P<ran>\d+) tests? run\.$`)
)

// dotnetTook is how VSTest writes how long a test took: < 1 ms, 12 ms, 1 m 2 s.
const dotnetTook = `(?:<? ?[\d.]+ ?m?s|\d+ ?[hm](?: \d+ ?[ms])?)`

var (
	exunit = listed{
		total: exunitTotal, test: lazyregexp.New(`^ +\d+\) (?P<name>(?:test|doctest|property|feature) .+) \((?P<pkg>[\w.]+)\)$`), end: lazyregexp.New(`^Finished in `),
	}
	sugar = listed{total: sugarTotal, test: lazyregexp.New(`^ +- (?P<file>\S+?):\d+ (?P<name>\S.*)$`), alone: true}
	bun   = listed{ // what a test prints comes before its title
		total: bunTotal, group: lazyregexp.New(`^(?P<file>\S+\.[cm]?[jt]sx?):$`), alone: true,
		test: lazyregexp.New(`^ *(?:✗|\(fail\)) (?P<name>.+?)(?: \[[\d.]+m?s\])?$`), ok: lazyregexp.New(`^ *(?:✓|\(pass\)) (?P<name>.+?)(?: \[[\d.]+m?s\])?$`),
	}
	deno = listed{
		total: denoTotal, begin: lazyregexp.New(`^ ERRORS $`), end: lazyregexp.New(`^ FAILURES $`),
		test: lazyregexp.New(`^(?P<name>.+) => (?P<file>\S+?):\d+:\d+$`), ok: lazyregexp.New(`^(?P<name>\S.*) \.\.\. ok \([\dhms.]+\)$`),
	}
	dotnet = listed{
		total: dotnetTotal, test: lazyregexp.New(`^ +Failed (?P<name>\S.*?) \[` + dotnetTook + `\]$`), ok: lazyregexp.New(`^ +Passed (?P<name>\S.*?) \[` + dotnetTook + `\]$`),
	}
	nextest = listed{
		total: nextestTotal, test: lazyregexp.New(`^ +(?:FAIL|TIMEOUT|ABORT|SIG[A-Z]+) \[[ >\d.]+s\] +(?:\( *\d+/\d+\) )?(?P<pkg>\S+) (?P<name>\S.*)$`),
		ok: lazyregexp.New(`^ +(?:PASS|LEAK) \[[ \d.]+s\] +(?:\( *\d+/\d+\) )?(?P<pkg>\S+) (?P<name>\S.*)$`),
	}
	ava = listed{
		total: avaTotal, test: lazyregexp.New(`^  ✘ \[fail\]: (?P<name>.+?)(?: (?:Error thrown in test|Rejected promise returned by test))?$`), alone: true,
		ok: lazyregexp.New(`^  ✔ (?P<name>.+?)(?: \([\d.]+m?s\))?$`),
	}
	jasmine = listed{
		total: jasmineTotal, begin: lazyregexp.New(`^Failures:$`), end: lazyregexp.New(`^Pending:$`), test: lazyregexp.New(`^\d+\) (?P<name>.+)$`),
	}
	playwright = listed{
		total: playwrightTotal, test: lazyregexp.New(`^  \d+\) (?:\[.+?\] › )?(?P<pkg>\S+?):\d+:\d+ › (?P<name>.+?)(?: ─*)?$`),
		ok: lazyregexp.New(`^  ✓ +\d+ (?:\[.+?\] › )?(?P<pkg>\S+?):\d+:\d+ › (?P<name>.+?) \([\d.]+m?s\)$`),
	}
	catch2  = listed{total: catch2Total, test: lazyregexp.New(`^(?P<name>\S+?:\d+): FAILED:$`), end: lazyregexp.New(`^[=-]{79}$`)}
	doctest = listed{total: doctestTotal, test: lazyregexp.New(`^TEST CASE:  (?P<name>.+)$`), end: lazyregexp.New(`^={70,}$`)}
	pest    = listed{
		total: pestTotal, group: lazyregexp.New(`^ +(?:PASS|FAIL|WARN) +(?P<pkg>\S+)$`), alone: true,
		test: lazyregexp.New(`^  ⨯ (?P<name>.+?)(?: +[\d.]+s)?$`), ok: lazyregexp.New(`^  ✓ (?P<name>.+?)(?: +[\d.]+s)?$`),
	}
	sbt      = listed{total: sbtTotal, test: lazyregexp.New(`^\[\w+\] +- (?P<name>.+) \*\*\* FAILED \*\*\*`)}
	surefire = listed{
		total: surefireTotal, test: lazyregexp.New(`^(?:\[ERROR\] )?(?P<name>\S.*?) (?:--| ) ?Time elapsed: [\d.,]+ s(?:ec)? +<<< (?:FAILURE|ERROR)!$`), end: lazyregexp.New(`^\[INFO\] *$`),
	}
)

// Some of these are read for their counts only.
var (
	ginkgo = listed{
		total: ginkgoTotal, test: lazyregexp.New(`^ +\[(?:FAIL|TIMEDOUT|PANICKED!)\] (?P<name>\S.*)$`), alone: true,
	}
	gotestsum = listed{
		total: gotestsumEnd, test: lazyregexp.New(`^=== FAIL: (?P<pkg>\S+) (?P<name>\S*) ?\([\d.]+s\)$`), end: lazyregexp.New(`^=== (?:Skipped$|Errors$|SKIP: )`),
		ok: lazyregexp.New(`^PASS (?P<name>\S+\.(?:Test|Example|Fuzz)\S*) \([\d.]+s\)$`),
	}
	cucumber = listed{
		total: cucumberTotal, begin: lazyregexp.New(`^Failures:$`), end: lazyregexp.New(`^Warnings:$`), test: lazyregexp.New(`^\d+\) Scenario: (?P<name>.+?) # (?P<file>\S+?):\d+$`),
	}
	behave   = listed{total: behaveTotal, test: lazyregexp.New(`^  (?P<file>\S+\.feature):\d+ +(?P<name>\S.*)$`), begin: lazyregexp.New(`^Failing scenarios:$`), end: lazyregexp.New(`^$`), alone: true}
	dart     = listed{total: dartTotal, test: lazyregexp.New(`^\d\d:\d\d \+\d+(?: ~\d+)? -\d+: (?P<name>.+) \[E\]$`)}
	testthat = listed{total: testthatTotal}
	clojure  = listed{total: clojureTotal, test: lazyregexp.New(`^(?:FAIL|ERROR) in \((?P<name>[^)]+)\)`), end: lazyregexp.New(`^$`)}
	bazel    = listed{
		total: bazelTotal, alone: true,
		test: lazyregexp.New(`^(?P<name>//\S+) +(?:FAILED|TIMEOUT)\b`), ok: lazyregexp.New(`^(?P<name>//\S+) +(?:\(cached\) )?PASSED in `),
	}
	zig      = listed{total: zigTotal}
	elm      = listed{total: elmTotal}
	tasty    = listed{total: tastyTotal}
	crystal  = listed{total: crystalTotal, begin: rspec.begin, end: rspec.end, test: rspec.test}
	alcotest = listed{total: alcotestTotal}
)

// ginkgoSign is a summary of Ginkgo, whole or of a suite that passed among several.
var ginkgoSign = lazyregexp.New(`^(?:(?:SUCCESS|FAIL)! -- \d+ Passed |\[\d+\] .+ - \d+/\d+ specs )`)

// readGinkgo counts the marks of suites that passed, of which Ginkgo prints no summary if there are several.
func readGinkgo(c *collector, outputs [][]byte) {
	ginkgo.read(c, outputs)
	eachLine(outputs, func(line string) {
		if m := ginkgoShort().FindStringSubmatch(line); m != nil {
			c.Passed += strings.Count(m[1], "•")
			c.Skipped += strings.Count(m[1], "S") + strings.Count(m[1], "P")
		}
	})
}

// goTestLine matches the lines of go test, which gotestsum shows in some of its formats.
var goTestLine = lazyregexp.New(`^(?:ok  \t|\s*--- (?:PASS|FAIL|SKIP): )`)

// readGotestsum reads the output of gotestsum, unless it has that of go test.
func readGotestsum(c *collector, outputs [][]byte) {
	shown := false
	eachLine(outputs, func(line string) { shown = shown || goTestLine().MatchString(line) })
	if !shown {
		gotestsum.read(c, outputs)
	}
}

// scalatestTotal matches the summary of ScalaTest, which sbt sums up once more.
var scalatestTotal = lazyregexp.New(`^(?:\[\w+\] )?Tests: succeeded (?P<passed>\d+), failed (?P<failed>\d+), canceled (?P<skipped>\d+), ignored (?P<omitted>\d+), pending (?P<pending>\d+)$`)

var scalatest = listed{total: scalatestTotal, test: sbt.test}

// readScalatest reads ScalaTest's summary where sbt has none: in its own runner, in mill, behind a filter.
func readScalatest(c *collector, outputs [][]byte) {
	summed := false
	eachLine(outputs, func(line string) { summed = summed || sbtTotal().MatchString(line) })
	if !summed {
		scalatest.read(c, outputs)
	}
}

// swiftTest matches the line of a test of XCTest or of Swift Testing.
var swiftTest = lazyregexp.New(`^(?:Test Case '(?P<case>[^']+)' (?P<ended>passed|failed|skipped) \([\d.]+ seconds\)\.?|(?:✔|✘|➜|[^ -~]) Test (?P<name>[^ ].*?) (?P<done>passed|failed|skipped)(?: after [\d.]+ seconds.*|\.|: .*)?)$`)

// swiftEnd is a line that a run of XCTest or of Swift Testing has.
var swiftEnd = lazyregexp.New(`^(?:\s+Executed \d+ tests?, with |. Test run with \d+ tests? )`)

// swiftRun matches the total of Swift Testing, which looks like the line of a test.
var swiftRun = lazyregexp.New(`^run with \d+ tests?`)

// swiftTotal matches the totals of XCTest and of Swift Testing.
var swiftTotal = lazyregexp.New(`^(?:\s+Executed (?P<ran>\d+) tests?, with (?:(?P<skipped>\d+) tests? skipped and )?(?P<failed>\d+) failures?|. Test run with (?P<all>\d+) tests? .*passed)`)

// readSwift counts the lines of tests, since the totals of XCTest contain each other. Without such lines, the largest total
// counts.
func readSwift(c *collector, outputs [][]byte) {
	booked := c.booked()
	var ran, failed, skipped int
	eachLine(outputs, func(line string) {
		if total := groups(swiftTotal, line); total != nil {
			if n := atoi(total["ran"]) + atoi(total["all"]); n > ran {
				ran, failed, skipped = n, atoi(total["failed"]), atoi(total["skipped"])
			}
		}
		m := groups(swiftTest, line)
		if m == nil || swiftRun().MatchString(m["name"]) {
			return
		}
		name := m["case"] + m["name"]
		switch m["ended"] + m["done"] {
		case "passed":
			c.pass("", name)
		case "failed":
			c.fail(Test{Name: name, Message: line})
		case "skipped":
			c.Skipped++
		}
	})
	if c.booked() == booked {
		failed = min(failed, ran)
		c.Passed += max(0, ran-failed-skipped)
		c.Failed, c.Skipped = c.Failed+failed, c.Skipped+skipped
	}
}
