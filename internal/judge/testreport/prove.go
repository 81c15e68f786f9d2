package testreport

import (
	"cmp"
	"strings"

	"pawl/internal/lib/lazyregexp"
)

var (
	proveTotal  = lazyregexp.New(`^Files=\d+, Tests=(\d+), `)
	proveFile   = lazyregexp.New(`^(\S+) \.+ (ok|skipped: .*)$`)
	proveListed = lazyregexp.New(`^(\S+) +\(Wstat: (\d+)\b.*Tests: \d+ Failed: (\d+)\)$`)
	perlFailed  = lazyregexp.New(`^#   Failed (\(TODO\) )?test(?: '(.*)')?(?: (at (.*) line \d+)\.)?$`)
	perlAt      = lazyregexp.New(`^#   at (.+) line \d+\.$`)
)

// todo is the name of a test that is expected to fail.
const todo = "(TODO)"

// readProve reads what Perl's prove prints without -v: a line for each file, and a summary of the files that failed, or in
// which tests passed that need not (TODO). The names of the tests are in what the tests print on standard error. With -v, the output is TAP.
func readProve(c *collector, outputs [][]byte) {
	type file struct {
		name   string
		failed bool
		says   excerpt
	}
	var files []*file
	var tests []Test
	var message excerpt // of the open test; parts of a test come before it
	ran, failed, verbose := 0, 0, false
	eachLine(outputs, func(line string) {
		verbose = verbose || tapTest().MatchString(line) && !proveFile().MatchString(line)
		diagnosis := strings.TrimLeft(line, " ")
		var m match
		switch {
		case m.by(proveFile, line):
			if m[2] == "ok" {
				c.pass(m[1], "")
			} else {
				c.Skipped++
			}
		case m.by(proveTotal, line):
			ran += atoi(m[1])
		case m.by(proveListed, line):
			failed += atoi(m[3])
			if len(files) < MaxTests {
				files = append(files, &file{name: m[1], failed: m[2] != "0" || m[3] != "0"})
			}
		case len(files) > 0 && strings.HasPrefix(line, "  ") && !strings.HasPrefix(line, "   "):
			last := files[len(files)-1]
			last.says.line(line)
			if strings.HasPrefix(line, "  Parse errors:") {
				c.Broken, last.failed = true, true
			}
		case !strings.HasPrefix(diagnosis, "#") || len(tests) >= MaxTests:
		case m.by(perlFailed, line):
			t := Test{Package: m[4], Name: cmp.Or(m[2], m[3]), out: &excerpt{}}
			t.out.line(message.String())
			message = excerpt{}
			if m[1] != "" {
				t.Name = todo
			}
			tests = append(tests, t)
		case len(tests) > 0 && tests[len(tests)-1].Package == "" && m.by(perlAt, line):
			tests[len(tests)-1].Package = m[1]
		case line != diagnosis:
			message.line(line)
		case len(tests) > 0 && strings.HasPrefix(line, "#    "):
			tests[len(tests)-1].out.line(strings.TrimPrefix(line, "#"))
		}
	})
	if verbose || ran+len(files) == 0 {
		return
	}
	for _, f := range files {
		if !f.failed {
			c.pass(f.name, "")
			continue
		}
		named := false
		for _, t := range tests {
			if t.Package == f.name && t.Name != todo {
				named = true
				if t.out.String() == "" {
					t.out.line(f.says.String())
				}
				c.fail(t)
			}
		}
		if !named {
			c.fail(Test{Package: f.name, Message: f.says.String()})
		}
	}
	c.Passed += count(ran - failed)
	c.unnamed(failed)
}
