package testreport

import (
	"strings"

	"pawl/internal/lib/lazyregexp"
)

var (
	goVerdict = lazyregexp.New(`^\s*--- (FAIL|PASS|SKIP): (\S+) \([\d.]+s\)`)
	goEnd     = lazyregexp.New(`^(FAIL|ok  |\?   )\t(\S+)(?:[ \t]+(?:\(cached\)|[\d.]+s)?(.*))?$`)
	goBuild   = lazyregexp.New(`^# (\S+)(?: \[\S+\])?$`)
)

// goTextReader reads the normal output of go test. The name of a package comes after its tests.
type goTextReader struct {
	*collector
	out     *excerpt // where lines go
	loose   *excerpt // output of the package that belongs to no test
	failing []Test   // failed tests of the package, which is not named yet
	passing []string // passed tests of the package
	running excerpts // what tests have printed so far, with -v
	builds  excerpts // errors of packages that could not be built, by name
	unbuilt []string // the packages that failed without a test
}

func readGo(c *collector, outputs [][]byte) {
	loose := &excerpt{}
	r := &goTextReader{collector: c, out: loose, loose: loose, running: excerpts{}, builds: excerpts{}}
	eachLine(outputs, r.line)
	r.flush("")
	for _, pkg := range r.unbuilt { // the compiler's errors may come last, because they are on standard error
		r.failGo(Test{Package: pkg, out: r.builds[pkg]})
	}
}

func (r *goTextReader) line(line string) {
	var m match
	switch {
	case strings.HasPrefix(line, "=== "):
		if f := strings.Fields(line); len(f) == 3 {
			r.out = r.running.of(f[2], maxNodes)
		}
	case m.by(goVerdict, line):
		r.verdict(m[1], m[2])
	case m.by(goEnd, line):
		r.packageEnd(strings.TrimSpace(m[1]), m[2], m[3])
	case m.by(goBuild, line):
		r.out = r.builds.of(m[1], MaxTests)
	case line == "FAIL" || line == "PASS":
		r.out = r.loose
	default:
		r.out.line(line)
	}
}

func (r *goTextReader) verdict(verdict, name string) {
	out := r.running[name]
	if out == nil {
		out = &excerpt{}
	}
	delete(r.running, name)
	r.out = r.loose
	switch verdict {
	case "PASS":
		if len(r.passing) < maxNodes {
			r.passing = append(r.passing, name)
		} else {
			r.Passed++
		}
	case "SKIP":
		r.Skipped++
	case "FAIL":
		r.out = out // without -v its output follows
		r.failing = append(r.failing, Test{Name: name, out: out})
		if len(r.failing) > maxNodes {
			r.flush("")
		}
	}
}

// packageEnd reads the line that names the package of the tests before it.
func (r *goTextReader) packageEnd(verdict, pkg, rest string) {
	switch verdict {
	case "ok":
		r.pass(pkg, "")
		if len(r.passing) == 0 && !strings.Contains(rest, "[no tests to run]") {
			r.Passed++ // without -v only the package is known
		}
	case "FAIL":
		broken := strings.Contains(rest, "build failed]") || strings.Contains(rest, "setup failed]")
		r.Broken = r.Broken || broken
		if len(r.failing) == 0 && len(r.unbuilt) < MaxTests {
			if !broken && r.builds[pkg] == nil {
				r.builds[pkg] = r.loose
			}
			r.unbuilt = append(r.unbuilt, pkg)
		}
	}
	r.flush(pkg)
	r.loose = &excerpt{}
	r.out = r.loose
}

func (r *goTextReader) flush(pkg string) {
	for _, f := range r.failing {
		f.Package = pkg
		r.failGo(f)
	}
	for _, name := range r.passing {
		r.pass(pkg, name)
	}
	r.failing, r.passing = nil, nil
	clear(r.running)
}
