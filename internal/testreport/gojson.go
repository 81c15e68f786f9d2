package testreport

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// goEvent is one line of `go test -json` (go doc test2json).
type goEvent struct {
	Action      string
	Package     string
	Test        string
	Output      string
	Elapsed     float64
	ImportPath  string
	FailedBuild string
}

// maxEvent is more than any event but one with a very long line of output, which is passed over.
const maxEvent = 1 << 20

func sniffGoJSON(line string) bool {
	return strings.HasPrefix(line, "{") && strings.Contains(line, `"Action":"`)
}

// goPackage is a package whose tests run.
type goPackage struct {
	own    excerpt             // what no test of it printed
	tests  map[string]*excerpt // what the tests printed that have not ended yet
	failed bool                // one of its tests did
}

type goReader struct {
	*collector
	packages map[string]*goPackage
	builds   map[string]*excerpt // by import path
	pending  int                 // bytes in excerpts
}

func readGoJSON(c *collector, outputs [][]byte) {
	r := goReader{collector: c, packages: map[string]*goPackage{}, builds: map[string]*excerpt{}}
	eachRaw(outputs, maxEvent, func(line []byte) {
		var e goEvent
		if len(line) == 0 || line[0] != '{' || json.Unmarshal(line, &e) != nil {
			return
		}
		e.Package, e.Test = clean(e.Package), clean(e.Test)
		switch {
		case e.Action == "build-output":
			r.keep(r.build(e.ImportPath), e.Output)
		case e.Action == "build-fail":
			r.broken = true
		case e.Package == "":
		case e.Test == "":
			r.packageEvent(e)
		default:
			r.testEvent(e)
		}
	})
	if r.partial {
		return // the end of what is open may be in what was left out
	}
	for _, name := range slices.Sorted(maps.Keys(r.packages)) {
		r.unfinished(name, r.packages[name])
	}
}

func (r *goReader) at(name string) *goPackage {
	p := r.packages[name]
	if p == nil {
		p = &goPackage{tests: map[string]*excerpt{}}
		if len(r.packages) < maxNamed {
			r.packages[name] = p
		}
	}
	return p
}

func (r *goReader) build(path string) *excerpt {
	b := r.builds[path]
	if b == nil && len(r.builds) < MaxTests {
		b = &excerpt{}
		r.builds[path] = b
	}
	return b
}

// keep adds output to an excerpt while there is room for all of them.
func (r *goReader) keep(e *excerpt, output string) {
	if r.pending < maxPending {
		r.pending += e.write(string(unstyled([]byte(output))))
	}
}

func (r *goReader) drop(e *excerpt) { r.pending -= e.size() }

func (r *goReader) testEvent(e goEvent) {
	p := r.at(e.Package)
	out, running := p.tests[e.Test]
	switch e.Action {
	case "run":
		if !running && len(p.tests) < maxNamed {
			p.tests[e.Test] = &excerpt{}
		}
	case "output":
		if !framing(e.Output) {
			r.keep(out, e.Output)
		}
	case "pass", "skip", "fail":
		switch e.Action {
		case "pass":
			r.pass(e.Package, e.Test)
		case "skip":
			r.skipped++
		case "fail":
			p.failed = true
			r.failTest(e.Package, e.Test, out.String(), int64(min(max(e.Elapsed, 0), 1e9)*1000))
		}
		r.drop(out)
		delete(p.tests, e.Test)
	}
}

// failTest books a failing test; the tests that it is a part of fail because of it.
func (r *goReader) failTest(pkg, name, message string, ms int64) {
	r.fail(Test{Package: pkg, Name: name, Message: message, File: goFile(message), DurationMs: ms})
	goParents(r.collector, pkg, name)
}

func goParents(c *collector, pkg, name string) {
	for i, parts := len(name), 0; parts < 100; parts++ {
		if i = strings.LastIndexByte(name[:i], '/'); i < 0 {
			return
		}
		c.parent(pkg, name[:i])
	}
}

func (r *goReader) packageEvent(e goEvent) {
	switch e.Action {
	case "output":
		if !strings.HasPrefix(e.Output, "FAIL") && !strings.HasPrefix(e.Output, "ok  \t") {
			r.keep(&r.at(e.Package).own, e.Output)
		}
	case "pass", "skip":
		r.took(int64(min(max(e.Elapsed, 0), 1e9) * 1000))
		if e.Action == "pass" {
			r.pass(e.Package, "")
		}
		r.end(e.Package)
	case "fail":
		r.took(int64(min(max(e.Elapsed, 0), 1e9) * 1000))
		p := r.at(e.Package)
		r.unfinished(e.Package, p)
		if !p.failed {
			message := p.own.String()
			if b := r.builds[e.FailedBuild]; e.FailedBuild != "" {
				r.broken = true
				message = strings.TrimSpace(b.String() + "\n" + message)
			}
			r.fail(Test{Package: e.Package, Message: message, File: goFile(message)})
		}
		r.end(e.Package)
	}
}

// unfinished books the tests of a package that never ended: it panicked, or was ended.
func (r *goReader) unfinished(name string, p *goPackage) {
	for _, test := range slices.Sorted(maps.Keys(p.tests)) {
		p.failed, r.broken = true, true
		message := p.tests[test].String() + "\n" + p.own.String()
		r.failTest(name, test, strings.TrimSpace("it did not end\n"+message), 0)
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

// framing are the lines by which the test binary says what runs.
func framing(line string) bool {
	line = strings.TrimLeft(line, " ")
	for _, mark := range []string{"=== RUN ", "=== PAUSE ", "=== CONT ", "=== NAME ", "--- FAIL: ", "--- PASS: ", "--- SKIP: "} {
		if strings.HasPrefix(line, mark) {
			return true
		}
	}
	return false
}

// goFile is the file of the first "name.go:line:" of a message that is none of Go's own.
func goFile(message string) string {
	for rest := message; ; {
		i := strings.Index(rest, ".go:")
		if i < 0 {
			return ""
		}
		from := strings.LastIndexAny(rest[:i], " \t\n(") + 1
		if file := rest[from : i+3]; !strings.Contains(file, "/src/runtime/") && !strings.Contains(file, "/src/testing/") {
			return file
		}
		rest = rest[i+4:]
	}
}
