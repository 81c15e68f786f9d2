package testreport

import (
	"slices"
	"strings"

	"pawl/internal/lib/lazyregexp"
)

var (
	cargoTest   = lazyregexp.New(`^test (.+?)(?: - should panic)? \.\.\. (ok|FAILED|ignored)\b`)
	cargoBlock  = lazyregexp.New(`^---- (.+?)(?: - should panic)? (?:stdout|stderr) ----$`)
	cargoResult = lazyregexp.New(`^test result: (?:ok|FAILED)\. (\d+) passed; (\d+) failed; (\d+) ignored;`)
	cargoName   = lazyregexp.New(`^ {4}(\S.*)$`)
	cargoTarget = lazyregexp.New(`^\s+(?:Running (?:unittests )?(\S+)|Doc-tests (\S+))`)
	cargoError  = lazyregexp.New(`^error(\[E\d+\])?: `)
	cargoAt     = lazyregexp.New(`(?m)(?:^\s*--> |panicked at )(\S+?\.rs):\d+`)
)

// readCargo reads the output of cargo test, with compiler errors. With --quiet the output names only the failed
// tests, at the end, and counts all.
func readCargo(c *collector, outputs [][]byte) {
	var (
		target          string
		out             *excerpt
		blocks          = excerpts{}
		errors          excerpt
		failed          []string // the names of the target's failed tests
		passed, skipped int      // of the target: how many tests are named
		failedBuild,
		inError, failing, listed bool // failing: within the messages of failed tests; listed: in the list of their names
	)
	named := func(name string) {
		if len(failed) < maxNodes && !slices.Contains(failed, name) {
			failed = append(failed, name)
		}
	}
	flush := func() {
		for _, name := range failed {
			message := blocks[name].String()
			c.fail(Test{Package: target, Name: name, Message: message, File: rustFile(message)})
		}
		failed, out, passed, skipped, failing, listed = nil, nil, 0, 0, false, false
		clear(blocks)
	}
	eachLine(outputs, func(line string) {
		var m match
		switch {
		case m.by(cargoTarget, line):
			flush()
			target = m[1] + m[2]
		case m.by(cargoTest, line):
			switch m[2] {
			case "ok":
				passed++
				c.pass(target, m[1])
			case "ignored":
				skipped++
				c.Skipped++
			default:
				named(m[1])
			}
		case m.by(cargoBlock, line):
			if out, listed = blocks.of(m[1], MaxTests), false; failing {
				named(m[1])
			}
		case m.by(cargoResult, line):
			c.Passed += max(count(atoi(m[1]))-passed, 0)
			c.Failed += max(count(atoi(m[2]))-len(failed), 0)
			c.Skipped += max(count(atoi(m[3]))-skipped, 0)
			flush()
		case line == "failures:" || line == "successes:":
			failing = line == "failures:"
			out, listed = nil, failing
		case listed && m.by(cargoName, line):
			named(m[1])
		case inError && line == "":
			inError = false
		case inError || cargoError().MatchString(line):
			last := strings.HasPrefix(line, "error: could not compile ")
			failedBuild, inError = failedBuild || last, !last
			errors.line(line)
		default:
			out.line(line)
		}
	})
	flush()
	if failedBuild {
		c.Broken = true
		message := errors.String()
		c.fail(Test{Name: "(build)", Message: message, File: rustFile(message)})
	}
}

func rustFile(message string) string {
	if m := cargoAt().FindStringSubmatch(message); m != nil {
		return m[1]
	}
	return ""
}
