package testreport

import "pawl/internal/lazyregexp"

var (
	uvuFile  = lazyregexp.New(`^(\S+\.[cm]?[jt]sx?)$`)
	uvuDots  = lazyregexp.New(`\(\d+ / \d+\)$`)
	uvuFail  = lazyregexp.New(`^ +FAIL +(?:(\S.*?) +)?"(.*)"$`)
	uvuCount = lazyregexp.New(`^  (Total|Passed|Skipped|Duration): +([\d.]+)(ms)?$`)
	uvuTotal = lazyregexp.New(`^  Total: +\d+$`)
)

// readUvu reads the output of uvu. With several files, the name of each comes before its dots, and its failures come
// after them. Passing tests have no names.
func readUvu(c *collector, outputs [][]byte) {
	var file string
	total, passed := 0, 0
	eachLine(outputs, func(line string) {
		if m := uvuCount.FindStringSubmatch(line); m != nil {
			c.close()
			switch m[1] {
			case "Total":
				total += atoi(m[2])
			case "Passed":
				passed += atoi(m[2])
			case "Skipped":
				c.skipped += atoi(m[2])
			default:
				c.took(millis(m[2], 1))
			}
			return
		}
		if m := uvuFail.FindStringSubmatch(line); m != nil {
			name := m[2]
			if m[1] != "" {
				name = m[1] + " > " + name
			}
			c.open(Test{Package: file, Name: name, File: file})
			return
		}
		switch m := uvuFile.FindStringSubmatch(line); {
		case m != nil:
			c.close()
			file = m[1]
		case uvuDots.MatchString(line):
			c.close()
		default:
			c.say(line)
		}
	})
	c.close()
	c.passed += passed
	c.unnamed(total - passed) // neither number includes skipped tests
}
