package testreport

import "pawl/internal/lazyregexp"

var (
	tallyTotal = lazyregexp.New(`^(PASSED|FAILED): +(\d+)$`)
	tallyTest  = lazyregexp.New(`^FAILED: (.+?)(?: \(at line \d+\))?$`)
)

// readTally reads what small harnesses of C print: the names of the tests that failed, and how many did either.
func readTally(c *collector, outputs [][]byte) {
	counted := 0
	eachLine(outputs, func(line string) {
		switch m := tallyTotal.FindStringSubmatch(line); {
		case m == nil:
			if m := tallyTest.FindStringSubmatch(line); m != nil {
				c.fail(Test{Name: m[1], Message: line})
			}
		case m[1] == "PASSED":
			c.passed += atoi(m[2])
		default:
			counted += atoi(m[2])
		}
	})
	c.unnamed(counted)
}
