package testreport

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"pawl/internal/lib/lazyregexp"
	"pawl/internal/metric"
)

// goEvent is one line of `go test -json` (go doc test2json).
type goEvent struct {
	Action      string
	Package     string
	Test        string
	Output      string
	ImportPath  string
	FailedBuild string
}

// maxEvent is longer than any event, except one with a very long line of output, which is ignored.
const maxEvent = 1 << 20

// goPackage is a package whose tests run.
type goPackage struct {
	own    excerpt  // output of the package that belongs to no test
	tests  excerpts // output of tests that have not ended yet
	failed bool     // one of its tests failed
}

type goReader struct {
	*collector
	packages map[string]*goPackage
	builds   excerpts // by import path
	pending  int      // bytes in excerpts
}

func readGoJSON(c *collector, outputs [][]byte) {
	r := goReader{collector: c, packages: map[string]*goPackage{}, builds: excerpts{}}
	eachRaw(outputs, maxEvent, func(line []byte) {
		var e goEvent
		if len(line) == 0 || line[0] != '{' || json.Unmarshal(line, &e) != nil {
			return
		}
		e.Package, e.Test = clean(e.Package), clean(e.Test)
		switch {
		case e.Action == "build-output":
			r.keep(r.builds.of(e.ImportPath, MaxTests), e.Output)
		case e.Action == "build-fail":
			r.Broken = true
		case e.Package == "":
		case e.Test == "":
			r.packageEvent(e)
		default:
			r.testEvent(e)
		}
	})
	if r.Partial {
		return // the omitted output may contain the end of the open tests
	}
	for _, name := range slices.Sorted(maps.Keys(r.packages)) {
		r.unfinished(name, r.packages[name])
	}
}

func (r *goReader) at(name string) *goPackage {
	p := r.packages[name]
	if p == nil {
		p = &goPackage{tests: excerpts{}}
		if len(r.packages) < maxNamed {
			r.packages[name] = p
		}
	}
	return p
}

// keep adds output to an excerpt while there is room for all of them.
func (r *goReader) keep(e *excerpt, output string) {
	if r.pending < maxPending {
		r.pending += e.write(string(metric.Plain([]byte(output))))
	}
}

func (r *goReader) drop(e *excerpt) { r.pending -= e.size() }

func (r *goReader) testEvent(e goEvent) {
	p := r.at(e.Package)
	out := p.tests[e.Test]
	switch e.Action {
	case "run":
		p.tests.of(e.Test, maxNamed)
	case "output":
		if !framing().MatchString(e.Output) {
			r.keep(out, e.Output)
		}
	case "pass", "skip", "fail":
		switch e.Action {
		case "pass":
			r.pass(e.Package, e.Test)
		case "skip":
			r.Skipped++
		case "fail":
			p.failed = true
			r.failGo(Test{Package: e.Package, Name: e.Test, out: out})
		}
		r.drop(out)
		delete(p.tests, e.Test)
	}
}

// failGo records a failing Go test. The tests that contain it fail because of it.
func (c *collector) failGo(t Test) {
	if t.out != nil {
		t.Message, t.out = t.out.String(), nil
	}
	t.File = goFile(t.Message)
	c.fail(t)
	for i, parts := len(t.Name), 0; parts < 100; parts++ {
		if i = strings.LastIndexByte(t.Name[:i], '/'); i < 0 {
			return
		}
		c.parent(t.Package, t.Name[:i])
	}
}

func (r *goReader) packageEvent(e goEvent) {
	switch e.Action {
	case "output":
		if !strings.HasPrefix(e.Output, "FAIL") && !strings.HasPrefix(e.Output, "ok  \t") {
			r.keep(&r.at(e.Package).own, e.Output)
		}
	case "pass", "skip":
		if e.Action == "pass" {
			r.pass(e.Package, "")
		}
		r.end(e.Package)
	case "fail":
		p := r.at(e.Package)
		r.unfinished(e.Package, p)
		if !p.failed {
			message := p.own.String()
			if b := r.builds[e.FailedBuild]; e.FailedBuild != "" {
				r.Broken = true
				message = strings.TrimSpace(b.String() + "\n" + message)
			}
			r.failGo(Test{Package: e.Package, Message: message})
		}
		r.end(e.Package)
	}
}

// unfinished records the tests of a package that never ended: the package panicked, or was ended.
func (r *goReader) unfinished(name string, p *goPackage) {
	for _, test := range slices.Sorted(maps.Keys(p.tests)) {
		p.failed, r.Broken = true, true
		message := p.tests[test].String() + "\n" + p.own.String()
		r.failGo(Test{Package: name, Name: test, Message: strings.TrimSpace("it did not end\n" + message)})
	}
}

func (r *goReader) end(name string) {
	if p := r.packages[name]; p != nil {
		r.drop(&p.own)
		for _, e := range p.tests {
			r.drop(e)
		}
		delete(r.packages, name)
	}
}

// framing matches the lines with which the test binary says what runs.
var framing = lazyregexp.New(`^ *(=== (RUN|PAUSE|CONT|NAME) |--- (FAIL|PASS|SKIP): )`)

var goPlace = lazyregexp.New(`[^ \t\n(]*?\.go:`)

// goFile returns the file of the first "name.go:line:" in a message that is not one of Go's own.
func goFile(message string) string {
	for _, place := range goPlace().FindAllString(message, -1) {
		if !strings.Contains(place, "/src/runtime/") && !strings.Contains(place, "/src/testing/") {
			return strings.TrimSuffix(place, ":")
		}
	}
	return ""
}
