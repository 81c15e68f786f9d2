package testreport

import "pawl/internal/lazyregexp"

var (
	tallyTotal = lazyregexp.New(`^(PASSED|FAILED): +(\d+)$`)
	tallyTest  = lazyregexp.New(`^FAILED: (.+?)(?: \(at line \d+\))?$`)
)

// readTally reads the output of small test harnesses in C: the names of the failed tests, and the counts of passed
// and failed tests.
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
