package testreport

import (
	"regexp"
	"strings"
)

var (
	cargoTest   = regexp.MustCompile(`^test (.+?)(?: - should panic)? \.\.\. (ok|FAILED|ignored)\b`)
	cargoBlock  = regexp.MustCompile(`^---- (.+?)(?: - should panic)? (?:stdout|stderr) ----$`)
	cargoResult = regexp.MustCompile(`^test result: (?:ok|FAILED)\. (\d+) passed; (\d+) failed; (\d+) ignored;.*?(?:finished in ([\d.]+)s)?$`)
	cargoTarget = regexp.MustCompile(`^\s+(?:Running (?:unittests )?(\S+)|Doc-tests (\S+))`)
	cargoError  = regexp.MustCompile(`^error(\[E\d+\])?: `)
	cargoAt     = regexp.MustCompile(`(?m)(?:^\s*--> |panicked at )(\S+?\.rs):\d+`)
)

// readCargo reads what cargo test prints, compiler errors included.
func readCargo(c *collector, outputs [][]byte) {
	var (
		target string
		out    *excerpt
		blocks = excerpts{}
		errors excerpt
		failed []string // of the target
		failedBuild,
		inError bool
	)
	flush := func() {
		for _, name := range failed {
			message := blocks[name].String()
			c.fail(Test{Package: target, Name: name, Message: message, File: rustFile(message)})
		}
		failed, out = nil, nil
		clear(blocks)
	}
	eachLine(outputs, func(line string) {
		if m := cargoTarget.FindStringSubmatch(line); m != nil {
			flush()
			target = m[1] + m[2]
			return
		}
		if m := cargoTest.FindStringSubmatch(line); m != nil {
			switch m[2] {
			case "ok":
				c.pass(target, m[1])
			case "ignored":
				c.skipped++
			default:
				if len(failed) < maxNodes {
					failed = append(failed, m[1])
				} else {
					c.failed++
				}
			}
			return
		}
		if m := cargoBlock.FindStringSubmatch(line); m != nil {
			out = blocks.of(m[1], MaxTests)
			return
		}
		if m := cargoResult.FindStringSubmatch(line); m != nil {
			c.took(seconds(m[4]))
			flush()
			return
		}
		switch {
		case line == "failures:":
			out = nil
		case strings.HasPrefix(line, "error: could not compile "):
			failedBuild, inError = true, false
			errors.line(line)
		case cargoError.MatchString(line):
			inError = true
			errors.line(line)
		case inError && line == "":
			inError = false
		case inError:
			errors.line(line)
		default:
			out.line(line)
		}
	})
	flush()
	if failedBuild {
		c.broken = true
		message := errors.String()
		c.fail(Test{Name: "(build)", Message: message, File: rustFile(message)})
	}
}

func rustFile(message string) string {
	if m := cargoAt.FindStringSubmatch(message); m != nil {
		return m[1]
	}
	return ""
}
