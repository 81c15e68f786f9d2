// Package draft writes a first spec for a repository: Look finds out what the repository is made
// of, how it is tested, what could measure it, and Spec puts that into a commented file with
// practical limits. It proposes what is installed and says what is not; it guesses no direction of a number. It
// reads what others hand it and writes nothing; it runs no command, so what it proposes is tried by
// `pawl validate`, not believed. Start at Look; languages.go is the table of what it knows.
package draft

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"pawl/internal/seal"
)

// Checkout is what a spec is to be written for.
type Checkout struct {
	Files  []string                 // relative to the root
	Read   func(name string) string // "" for what can't be read
	Folder string                   // the folder that is meant, relative to the root; "" is the root
	// Has reports whether a program is on the PATH; of "python3 -m NAME" whether that Python has the module. nil:
	// everything is there.
	Has func(program string) bool
}

// Repository is what is known about a repository.
type Repository struct {
	Languages []string `json:"languages"` // the one with most files first
	// Project is the folder that the rest is about, where a repository holds several projects and that is
	// meant or none is at its root; Others are the folders of the others.
	Project string   `json:"project,omitempty"`
	Others  []string `json:"others,omitempty"`
	Setup   string   `json:"setup,omitempty"`
	Test    string   `json:"test,omitempty"`
	Check   string   `json:"check,omitempty"`
	Metric  Metric   `json:"metric"`
	Scope   []string `json:"scope"`
	Protect []string `json:"protect"`
	Keep    []string `json:"keep,omitempty"` // judge.keep: what builds and tests leave behind
	// Missing says what is not installed here and what was taken instead; Hints what else to think of.
	Missing []string `json:"missing,omitempty"`
	Hints   []string `json:"hints,omitempty"`
	// Folder is where the spec belongs: that of the project where it is the one that was meant.
	Folder string `json:"folder,omitempty"`

	outer bool // Setup is for the root of the repository, although the rest is for a project
}

// Metric is what a loop could improve.
type Metric struct {
	Goal    string `json:"goal"`
	Command string `json:"command"`
	// Direction is "" where nothing says whether more or less is better; Direction (the function) tells it
	// from what the command prints.
	Direction string `json:"direction"`
	Timeout   string `json:"timeout"`
	// Why says where it comes from, or what it lacks.
	Why string `json:"why"`
}

// tree is a repository's files.
type tree struct {
	files   []string // its own: neither vendored nor generated
	foreign []string // globs of those that are not
	has     map[string]bool
	read    func(name string) string
	program func(name string) bool
	outer   *tree // the repository around a project
	missing *[]string
}

// Look looks at a repository: at the names of its files and at what is in some of them.
func Look(at Checkout) Repository {
	t := tree{has: map[string]bool{}, read: at.Read, program: at.Has, missing: new([]string)}
	if t.program == nil {
		t.program = func(string) bool { return true }
	}
	for _, name := range at.Files {
		t.has[name] = true
	}
	t.files, t.foreign = t.own(slices.Sorted(slices.Values(at.Files)))
	r := t.look(at.Folder)
	if strings.HasPrefix(at.Folder+"/", r.Project+"/") {
		r.Folder = r.Project
	}
	r.Protect = append(r.Protect, path.Join(r.Folder, "pawl.yaml"))
	r.Protect, r.Keep = slices.Compact(slices.Sorted(slices.Values(r.Protect))), slices.Compact(slices.Sorted(slices.Values(r.Keep)))
	r.Missing = slices.Compact(*t.missing)
	r.Hints = append(t.hints(), r.Hints...)
	return r
}

// look looks at the project of a folder, or at the repository as a whole.
func (t tree) look(folder string) Repository {
	made := t.makefile()
	if dir, others, is := t.project(folder, made); is {
		return t.within(dir, others)
	}
	var r Repository
	var metrics []Metric
	tests, checks, setups := []string{made.Test}, []string{}, []string{}
	for _, l := range t.languages() {
		found := l.look(t)
		if !slices.Contains(r.Languages, l.name) {
			r.Languages = append(r.Languages, l.name)
		}
		tests, checks, setups = append(tests, found.Test), append(checks, found.Check), append(setups, found.Setup)
		if found.Metric.Command != "" {
			metrics = append(metrics, found.Metric)
		}
		if len(r.Scope) == 0 {
			r.Scope = found.Scope
		}
		r.outer = r.outer || found.outer
		r.Protect, r.Keep = append(r.Protect, found.Protect...), append(r.Keep, found.Keep...)
	}
	r.Protect = append(append(r.Protect, made.Protect...), t.foreign...)
	// What people wrote for themselves is what they mean by a test or a benchmark.
	r.Test = t.choose("the tests", append(tests, t.testScript())...)
	r.Check = t.choose("the check", t.lookingFirst(append(checks, made.Check))...)
	if r.Setup = cmp.Or(setups...); made.Test != "" && r.Test == made.Test && !r.outer { // which may need any of them
		r.Setup = strings.Join(slices.DeleteFunc(setups, func(s string) bool { return s == "" }), " && ")
	}
	r.Setup = t.choose("setup", r.Setup)
	metrics = append(append(t.scripts(), made.Metric), metrics...)
	if chosen := t.choose("the benchmark", commands(metrics)...); chosen != "" {
		r.Metric = metrics[slices.IndexFunc(metrics, func(m Metric) bool { return m.Command == chosen })]
	}
	if len(r.Scope) == 0 {
		r.Scope = t.under("src", "lib", "app")
	}
	if len(r.Languages) == 0 && len(r.Scope) == 0 && t.pages() && r.Metric.Command == "" {
		r.Scope, r.Metric = []string{"**/*.{md,markdown}"}, t.docs()
	}
	if len(r.Scope) == 0 {
		r.Scope = []string{"**"}
	}
	if r.Metric.Command == "" {
		r.Metric = size(r.Scope)
	}
	if by := seal.Rewrites(r.Check, t.read); by != "" {
		r.Hints = append(r.Hints, "The check ("+r.Check+") rewrites files: "+by+". What it rewrites becomes part of each change, and a file outside of the scope refuses it. A command that only looks is better")
	}
	return r
}

// lookingFirst puts commands that only look before those that rewrite files.
func (t tree) lookingFirst(commands []string) []string {
	slices.SortStableFunc(commands, func(a, b string) int {
		rewrites := func(command string) int { return min(len(seal.Rewrites(command, t.read)), 1) }
		return rewrites(a) - rewrites(b)
	})
	return commands
}

func commands(metrics []Metric) (all []string) {
	for _, m := range metrics {
		all = append(all, m.Command)
	}
	return all
}

// size is the metric that every repository has. It is taken with find, since git would not count
// what is new.
func size(scope []string) Metric {
	var folders, names []string
	for _, glob := range scope {
		if dir, all := strings.CutSuffix(glob, "/**"); all {
			folders = append(folders, dir)
			continue
		}
		if !strings.Contains(glob, "/") && strings.HasPrefix(glob, "*.") { // as the shell has it
			folders = append(folders, glob)
			continue
		}
		before, list, _ := strings.Cut(path.Base(glob), "{")
		list, after, _ := strings.Cut(list, "}")
		for _, one := range strings.Split(list, ",") {
			names = append(names, "-name '"+before+one+after+"'")
		}
	}
	command := "find " + strings.Join(folders, " ") + " -type f"
	if len(folders) == 0 {
		command = "find . -type f -not -path './.git/*' -not -path '*/node_modules/*'"
	}
	if len(names) > 0 && scope[0] != "**" {
		command += ` \( ` + strings.Join(names, " -o ") + ` \)`
	}
	return Metric{
		Goal: "Make the code shorter without changing what it does", Command: command + " -exec cat {} + | wc -c",
		Direction: "lower", Timeout: "30s", Why: "no benchmark was found, so this counts bytes; replace this with what you want to improve",
	}
}

// WithoutBenchmark proposes the size of the code as the metric, since the benchmark fails. how says how.
func (r *Repository) WithoutBenchmark(how string) {
	r.Missing = append(r.Missing, "the benchmark ("+r.Metric.Command+") fails here: "+how+". So this proposes the size of the code and not the benchmark")
	r.Metric = size(r.Scope)
	r.Metric.Why = "the benchmark fails, so this counts bytes; replace this with what you want to improve"
}

// languages are those that the repository has a manifest for, or that need none, the main one first. Without any manifest
// it is the one that it has most files of, besides.
func (t tree) languages() []language {
	weight, most := map[string]int{}, 0
	for _, name := range t.files {
		if aside.MatchString(path.Dir(name)) || strings.HasPrefix(name, ".") { // of another language than what it is there for, maybe
			continue
		}
		for _, l := range languages {
			if slices.Contains(l.extensions, path.Ext(name)) {
				weight[l.name]++
				most = max(most, weight[l.name])
				break
			}
		}
	}
	var present []language
	var bare *language
	known := false
	for _, l := range languages {
		manifest := slices.ContainsFunc(l.manifests, func(name string) bool { return t.has[name] })
		switch {
		case manifest || weight[l.name] > 0 && len(l.manifests) == 0:
			present, known = append(present, l), known || manifest || weight[l.name] == most
		case weight[l.name] == most && bare == nil:
			l.look, bare = l.bare, &l
		}
	}
	if !known && bare != nil && most > 0 {
		present = append(present, *bare)
	}
	slices.SortStableFunc(present, func(a, b language) int { return weight[b.name] - weight[a.name] })
	return present
}

// under returns those of the folders that have files, as globs.
func (t tree) under(folders ...string) []string {
	var globs []string
	for _, dir := range folders {
		if slices.ContainsFunc(t.files, func(name string) bool { return strings.HasPrefix(name, dir+"/") }) {
			globs = append(globs, dir+"/**")
		}
	}
	return globs
}

// present returns those names that are there.
func (t tree) present(names ...string) []string {
	return slices.DeleteFunc(names, func(name string) bool { return !t.has[name] })
}
