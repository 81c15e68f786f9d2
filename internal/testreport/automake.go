package testreport

import "pawl/internal/lazyregexp"

var (
	automakeIn    = lazyregexp.New(`^Making check in (\S+)$`)
	automakeCount = lazyregexp.New(`^# (TOTAL|PASS|SKIP|XFAIL|FAIL|XPASS|ERROR): +(\d+)$`)
	automakeTest  = lazyregexp.New(`^(PASS|XFAIL|FAIL|XPASS|ERROR): (\S.*)$`)
	automakeTotal = lazyregexp.New(`^# TOTAL: +\d+$`)
)

// readAutomake reads the output of `make check` of automake: a line for each test and a summary for each folder. An
// expected failure counts as a pass, and a pass where a failure was expected counts as a failure.
func readAutomake(c *collector, outputs [][]byte) {
	folder, failed := "", 0
	eachLine(outputs, func(line string) {
		if m := automakeIn.FindStringSubmatch(line); m != nil {
			folder = m[1]
			return
		}
		if m := automakeCount.FindStringSubmatch(line); m != nil {
			switch m[1] {
			case "PASS", "XFAIL":
				c.passed += atoi(m[2])
			case "SKIP":
				c.skipped += atoi(m[2])
			case "FAIL", "XPASS", "ERROR":
				failed += atoi(m[2])
			}
			return
		}
		switch m := automakeTest.FindStringSubmatch(line); {
		case m == nil:
		case m[1] == "PASS", m[1] == "XFAIL":
			c.named(folder, m[2])
		default:
			c.fail(Test{Package: folder, Name: m[2], Message: line})
		}
	})
	c.unnamed(failed)
}
