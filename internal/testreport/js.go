package testreport

import (
	"strings"

	"pawl/internal/lazyregexp"
)

var (
	jestFile   = lazyregexp.New(`^(FAIL|PASS) +(\S.*?)(?: \([\d.]+ m?s\))?$`)
	jestBlock  = lazyregexp.New(`^  ● (.+)$`)
	jestTests  = lazyregexp.New(`^Tests: +(.+, )?\d+ total`)
	jestTime   = lazyregexp.New(`^Time: +([\d.]+) s`)
	jsCount    = lazyregexp.New(`(\d+) (failed|passed|skipped|todo|pending)`)
	vitestFail = lazyregexp.New(`^ *FAIL +(\S.*)$`)
	vitestSum  = lazyregexp.New(`^ +Tests +(.*\(\d+\)|no tests)$`)
	vitestTime = lazyregexp.New(`^ +Duration +([\d.]+)(ms|s)\b`)
)

// noTest has titles of jest's blocks that are not failures.
var noTest = map[string]bool{"Console": true, "Cannot log after tests are done. Did you forget to wait for something async in your test?": true}

// readJest reads the output of jest. It does not name passing tests.
func readJest(c *collector, outputs [][]byte) {
	var file string
	counted := 0
	eachLine(outputs, func(line string) {
		if m := jestFile.FindStringSubmatch(line); m != nil {
			c.close()
			file = strings.TrimPrefix(m[2], "./")
			if m[1] == "PASS" {
				c.pass(file, "")
			}
			return
		}
		if m := jestBlock.FindStringSubmatch(line); m != nil {
			c.close()
			if !noTest[m[1]] {
				c.broken = c.broken || m[1] == "Test suite failed to run"
				c.open(Test{Package: file, Name: m[1], File: file})
			}
			return
		}
		switch {
		case strings.HasPrefix(line, "Test Suites: "), strings.HasPrefix(line, "Summary of all failing tests"):
			c.close()
		case jestTests.MatchString(line):
			c.close()
			counted += jsTotal(c, line)
		case jestTime.MatchString(line):
			c.took(seconds(jestTime.FindStringSubmatch(line)[1]))
		default:
			c.say(line)
		}
	})
	c.close()
	c.unnamed(counted)
}

// jsTotal records the counts of a summary, and returns how many tests failed. Their names may come later: vitest
// prints them to standard error.
func jsTotal(c *collector, line string) (failed int) {
	for _, m := range jsCount.FindAllStringSubmatch(line, 10) {
		switch n := atoi(m[1]); m[2] {
		case "passed":
			c.passed += n
		case "failed":
			failed += n
		default:
			c.skipped += n
		}
	}
	return failed
}

func readVitest(c *collector, outputs [][]byte) {
	counted := 0
	eachLine(outputs, func(line string) {
		if m := vitestFail.FindStringSubmatch(line); m != nil {
			file, name, named := strings.Cut(m[1], " > ")
			if !named { // a file that can't be loaded: " FAIL  a.test.ts [ a.test.ts ]"
				file, _, _ = strings.Cut(file, " [ ")
				c.broken = true
			}
			c.open(Test{Package: file, Name: name, File: file})
			return
		}
		switch {
		case strings.HasPrefix(line, "⎯⎯⎯"):
			c.close()
		case vitestSum.MatchString(line):
			c.close()
			counted += jsTotal(c, line)
		case vitestTime.MatchString(line):
			m := vitestTime.FindStringSubmatch(line)
			c.took(millis(m[1], unit[m[2]]))
		default:
			c.say(line)
		}
	})
	c.close()
	c.unnamed(counted)
}

var (
	mochaTotal = lazyregexp.New(`^  (\d+) (passing|pending|failing)(?: \(([\d.]+)(ms|s|m)\))?$`)
	mochaTitle = lazyregexp.New(`^  (\d+)\) (.+)$`)
)

// readMocha reads the end of mocha's report: the counts, then the failures with their titles.
func readMocha(c *collector, outputs [][]byte) {
	var (
		titled  bool // the title of the open failure is complete
		failing bool // the list of failures has begun
		counted int
	)
	eachLine(outputs, func(line string) {
		if m := mochaTotal.FindStringSubmatch(line); m != nil {
			c.close()
			switch n := atoi(m[1]); m[2] {
			case "passing":
				c.passed += n
				c.took(millis(m[3], unit[m[4]]))
			case "pending":
				c.skipped += n
			default:
				failing, counted = true, counted+n
			}
			return
		}
		if !failing {
			return
		}
		text := strings.TrimSpace(line)
		m := mochaTitle.FindStringSubmatch(line)
		switch {
		case m != nil:
			c.open(Test{Name: strings.TrimSuffix(m[2], ":")})
			titled = strings.HasSuffix(m[2], ":")
		case c.test != nil && !titled && text != "" && len(c.test.Name) < maxName:
			c.test.Name += " > " + strings.TrimSuffix(text, ":")
			titled = strings.HasSuffix(text, ":")
		default:
			titled = true
			c.say(line)
		}
	})
	c.close()
	c.unnamed(counted)
}
