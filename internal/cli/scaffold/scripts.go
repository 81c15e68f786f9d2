package scaffold

import (
	"path"
	"strings"

	"pawl/internal/lib/lazyregexp"
	"pawl/internal/lib/list"
)

var makeTarget = lazyregexp.New(`(?m)^([A-Za-z][\w-]*)[ \t]*:([^=]|$)`)

// makes returns the name and the text of the file that make reads.
func (t tree) makes() (name, text string) {
	for _, name := range []string{"GNUmakefile", "makefile", "Makefile"} {
		if t.has[name] {
			return name, t.read(name)
		}
	}
	return "", ""
}

// makefile returns what the targets with the usual names offer.
func (t tree) makefile() (r Repository) {
	name, text := t.makes()
	if name != "" {
		r.Protect = []string{name} // otherwise a loop could change it to get a better number
	}
	targets := list.Set(list.Map(makeTarget().FindAllStringSubmatch(text, -1), func(m []string) string { return m[1] }))
	hasTarget := func(name string) bool { return targets[name] }
	if name, tests := list.First([]string{"test", "check"}, hasTarget); tests {
		r.Test = "make " + name
	}
	for _, name := range list.Filter([]string{"lint", "vet"}, hasTarget) {
		lacks := t.lacks("make " + name)
		if lacks == "" {
			r.Check = "make " + name
			break
		}
		t.miss(absent(lacks) + ", so the check is not make " + name) // a loop can work without a check, but not with one that always fails
	}
	if name, benches := list.First([]string{"bench", "benchmark", "measure"}, hasTarget); benches {
		r.Metric = benchmark("Improve what the benchmark measures", "make --silent "+name, "the target "+name+" of the Makefile"+numberLast)
	}
	return r
}

var measures = lazyregexp.New(`^(?:(?:scripts?|bin|tools|bench|benchmarks)/)?(?:bench|benchmark|measure|perf|score)[\w-]*\.(sh|py|js|rb)$`)

// prepares is in the name of a script that only makes ready for one that measures.
var prepares = lazyregexp.New(`prereq|prepare|setup|install|download|fetch|plot|clean`)

// testNames matches a script whose name says that it runs tests. It may have no extension.
var testNames = lazyregexp.New(`^(?:(?:scripts?|bin|tools|tests?)/)?(?:tests?|check|run[_-]?(?:all[_-]?)?tests?|tests?[_-]?runner)(?:\.(?:sh|bash|py|js|rb|lua|pl|php))?$`)

// shebang matches the first line of a script, with the name of its interpreter.
var shebang = lazyregexp.New(`^#! ?(?:/usr/bin/env +|/\S*/)([a-z]+)[\d.]*\s`)

// runs returns the command that runs a script, by its extension or else its first line; "" for any other file.
func (t tree) runs(name string) string {
	interpreter := strings.TrimPrefix(path.Ext(name), ".")
	if interpreter == "" {
		if m := shebang().FindStringSubmatch(t.read(name)); m != nil {
			interpreter = m[1]
		}
	}
	program := map[string][]string{
		"sh": {"sh"}, "bash": {"bash"}, "py": {"python", "python3"}, "python": {"python", "python3"}, "js": {"node"}, "node": {"node"}, "rb": {"ruby"}, "ruby": {"ruby"},
		"lua": {"lua", "lua5.4", "lua5.3", "lua5.1", "luajit"}, "pl": {"perl"}, "perl": {"perl"}, "php": {"php"},
	}[interpreter]
	if program == nil {
		return ""
	}
	return t.either(program...) + " " + name
}

// printedMetric matches the place in a script where it prints a named metric.
var printedMetric = lazyregexp.New(`METRIC [A-Za-z_][\w./-]*=`)

// testScript returns the command for a script whose name says that it runs tests, "" if there is none.
func (t tree) testScript() string {
	for _, name := range t.files {
		if command := t.runs(name); command != "" && testNames().MatchString(name) {
			return command
		}
	}
	return ""
}

// shell describes scripts of a shell. Many have no extension.
func shell(t tree) Repository {
	r := Repository{Scope: t.under("bin", "lib", "libexec", "src"), Protect: t.under("test", "tests")}
	var root []string                     // scripts at the root that are the code only if nothing else is
	tests, maximum := map[string]int{}, 0 // tests by the folder at the root
	for _, name := range t.files {
		switch ext := path.Ext(name); {
		case ext == ".bats":
			r.Protect = append(r.Protect, "**/*.bats")
			top, _, below := strings.Cut(name, "/")
			if !below || !folder().MatchString(top) {
				top = "."
			}
			if tests[top]++; r.Test == "" || tests[top] > maximum {
				r.Test, maximum = "bats --recursive "+top, tests[top]
			}
		case strings.Contains(name, "/") || testNames().MatchString(name) || measures().MatchString(name):
		case strings.HasSuffix(name, "_test.sh"):
			r.Protect = append(r.Protect, "**/*_test.sh")
		case ext == ".sh" || ext == ".bash":
			root = append(root, "*"+ext)
		case ext == "" && folder().MatchString(name) && shebang().MatchString(t.read(name)):
			r.Scope = append(r.Scope, name)
		}
	}
	r.Scope = or(r.Scope, once(root)...)
	return r
}

// scripts returns a metric for each script whose name says that it measures something.
func (t tree) scripts() (found []Metric) {
	for _, name := range t.files {
		if measures().MatchString(name) && !prepares().MatchString(name) {
			metric := benchmark("Improve what "+name+" measures", t.runs(name), "a script in this repository"+numberLast)
			if printed := printedMetric().FindAllString(t.read(name), -1); len(printed) > 0 {
				metric.Direction = Direction(strings.Join(printed, "1\n") + "1")
			}
			found = append(found, metric)
		}
	}
	return found
}
