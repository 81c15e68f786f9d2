package testreport

import (
	"strings"

	"pawl/internal/lib/lazyregexp"
)

var (
	shunitRan   = lazyregexp.New(`^Ran (\d+) tests?\.$`)
	shunitTest  = lazyregexp.New(`^test\w+$`)
	shunitError = lazyregexp.New(`^shunit2:ERROR (test\w+)\(\) `)
)

// readShunit reads the output of shunit2: the name of each test, then what it says. What a test returns is on standard
// error. The total counts tests that ran, and assertions that failed.
func readShunit(c *collector, outputs [][]byte) {
	var name string
	failed, ran := map[string]bool{}, 0
	fails := func(name, line string) {
		if !failed[name] && len(failed) < maxNodes {
			c.open(Test{Name: name})
		}
		failed[name] = true
		c.say(line)
	}
	eachLine(outputs, func(line string) {
		if m := shunitRan().FindStringSubmatch(line); m != nil {
			c.close()
			ran, name = ran+atoi(m[1]), ""
		} else if m := shunitError().FindStringSubmatch(line); m != nil {
			fails(m[1], line)
			c.close()
		} else if shunitTest().MatchString(line) {
			c.close()
			name = line
		} else if name != "" && strings.HasPrefix(line, "ASSERT:") {
			fails(name, line)
		} else {
			c.say(line)
		}
	})
	c.close()
	c.Passed += max(ran-len(failed), 0)
}
