// Package scaffold writes a first spec for a repository. Look finds out which languages the repository has, how it is
// tested, and what could measure it. Spec puts that into a commented file with practical limits. The draft proposes
// programs that are installed, and says which are not. It never guesses whether a number should be lower or higher.
// The package reads only what its callers give it, writes no files and runs no command, so `pawl validate` has to try
// what it proposes. Start at Look; the table of what it knows is in languages.go.
package scaffold

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"pawl/internal/lib/list"
)

// Checkout is the checkout of a repository for which a spec is written.
type Checkout struct {
	Files  []string                 // relative to the root
	Read   func(name string) string // "" if it can't be read
	Folder string                   // the folder that the user named, relative to the root; "" is the root
	// Has reports whether a program is on the PATH, and for "python3 -m NAME" whether that Python has the module. If
	// it is nil, every program counts as installed.
	Has func(program string) bool
}

// Repository is what Look found out about a repository.
type Repository struct {
	Languages []string `json:"languages"` // the one with the most files first
	// Project is the folder that the rest is about, if the repository contains several projects and the user named
	// one of them or the root has none. Others are the folders of the other projects.
	Project string   `json:"project,omitempty"`
	Others  []string `json:"others,omitempty"`
	Setup   string   `json:"setup,omitempty"`
	Test    string   `json:"test,omitempty"`
	Report  string   `json:"report,omitempty"` // the file that Test writes, which names each test
	Check   string   `json:"check,omitempty"`
	Metric  Metric   `json:"metric"`
	Scope   []string `json:"scope"`
	Protect []string `json:"protect"`
	Keep    []string `json:"keep,omitempty"` // judge.keep: files that builds and tests leave behind
	// Missing says what is not installed here and what the draft proposes instead. Hints are other things to think
	// of.
	Missing []string `json:"missing,omitempty"`
	Hints   []string `json:"hints,omitempty"`
	// Folder is the folder for the spec file: the project's folder if the user named that project, else "", the root.
	Folder string `json:"folder,omitempty"`

	outer bool // Setup runs at the root of the repository, although the rest is for a project
}

// Metric is what a loop could improve.
type Metric struct {
	Goal    string `json:"goal"`
	Command string `json:"command"` // "" if nothing was found that could be improved safely
	// Direction is "" if it is unknown whether lower or higher is better. The function Direction can then tell it
	// from the output of the command.
	Direction string `json:"direction"`
	Timeout   string `json:"timeout"`
	// Guard is a command for a repository without tests. It fails if a change breaks something for the sake of the number.
	Guard string `json:"guard,omitempty"`
	// Why says where the metric comes from, or what it lacks.
	Why string `json:"why"`
}

// tree is a repository's files.
type tree struct {
	files   []string // its own files: neither vendored nor generated
	foreign []string // globs of the vendored and generated files
	has     map[string]bool
	read    func(name string) string
	program func(name string) bool
	outer   *tree // the repository around a project
	missing *[]string
}

// Look finds out what it can about a repository, from the names of its files and from the text of some of them.
func Look(checkout Checkout) Repository {
	t := tree{has: list.Set(checkout.Files), read: checkout.Read, program: checkout.Has, missing: new([]string)}
	if t.program == nil {
		t.program = func(string) bool { return true }
	}
	t.files, t.foreign = t.own(slices.Sorted(slices.Values(checkout.Files)))
	r := t.look(checkout.Folder)
	if strings.HasPrefix(checkout.Folder+"/", r.Project+"/") {
		r.Folder = r.Project
	}
	r.Protect = append(r.Protect, path.Join(r.Folder, "pawl.yaml"))
	r.Protect, r.Keep = once(r.Protect), once(r.Keep)
	r.Missing = slices.Compact(*t.missing)
	if t.has[".gitmodules"] {
		r.Hints = append(r.Hints, "This repository has submodules, and a loop's trees do not have their files. If the commands need them, let setup fetch them: "+
			"git submodule update --init (relative URLs work only if the repository's origin is a URL)")
	}
	return r
}

// once sorts globs, and leaves out those that others include.
func once(globs []string) []string {
	return slices.DeleteFunc(slices.Compact(slices.Sorted(slices.Values(globs))), func(glob string) bool {
		return slices.ContainsFunc(globs, func(other string) bool {
			dir, whole := strings.CutSuffix(other, "/**")
			return whole && other != glob && strings.HasPrefix(glob, dir+"/")
		})
	})
}

// look describes the project of a folder, or the repository as a whole.
func (t tree) look(folder string) Repository {
	made := t.makefile()
	if dir, siblings, ok := t.project(folder, made); ok {
		return t.within(dir, siblings)
	}
	var r Repository
	var metrics []Metric
	reason := "" // a language says what is wrong with its benchmarks
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
		reason = cmp.Or(reason, found.Metric.Why)
		r.Scope = or(r.Scope, found.Scope...)
		r.outer = r.outer || found.outer
		r.Protect, r.Keep = append(r.Protect, found.Protect...), append(r.Keep, found.Keep...)
	}
	r.Protect = append(append(r.Protect, made.Protect...), t.foreign...)
	// Scripts and targets that people wrote come before the usual commands of a language: they are what people mean
	// by a test or a benchmark.
	r.Test = t.choose("the tests", append(tests, t.testScript())...)
	r.Test, r.Report = t.reporting(r.Test)
	r.Check = t.choose("the check", append(checks, made.Check)...)
	if r.Setup = cmp.Or(setups...); made.Test != "" && r.Test == made.Test && !r.outer { // make test may need the setup of each language
		r.Setup = strings.Join(slices.DeleteFunc(setups, func(s string) bool { return s == "" }), " && ")
	}
	r.Setup = t.choose("setup", r.Setup)
	metrics = append(append(t.scripts(), made.Metric), metrics...)
	if chosen := t.choose("the benchmark", list.Map(metrics, func(m Metric) string { return m.Command })...); chosen != "" {
		r.Metric = metrics[slices.IndexFunc(metrics, func(m Metric) bool { return m.Command == chosen })]
	}
	r.Scope = or(r.Scope, t.under("src", "lib", "app")...)
	if len(r.Languages) == 0 && len(r.Scope) == 0 && slices.ContainsFunc(t.files, page) && r.Metric.Command == "" {
		r.Scope, r.Metric = []string{"**/*.{md,markdown}"}, t.docs()
	}
	r.Scope = or(r.Scope, "**")
	if r.Metric.Command == "" {
		r.measureSize(cmp.Or(reason, "no benchmark was found, so this counts bytes"))
	}
	return r
}

// measureSize takes the size of the code as the metric. Where no tests guard the code it leaves the metric open, because
// deleting the code would be the best way to make it smaller.
func (r *Repository) measureSize(reason string) {
	r.Metric = Metric{Timeout: "5m"}
	if r.Test == "" {
		return
	}
	r.Metric = size(r.Scope)
	r.Metric.Why = reason
}

// size returns the bytes of the files in scope as a metric. It uses find, because git would not count new files.
func size(scope []string) Metric {
	var folders, names []string
	for _, glob := range scope {
		if dir, recursive := strings.CutSuffix(glob, "/**"); recursive {
			folders = append(folders, dir)
			continue
		}
		if !strings.ContainsAny(glob, "*{") || !strings.Contains(glob, "/") && strings.HasPrefix(glob, "*.") { // a file, or a glob that the shell expands
			folders = append(folders, glob)
			continue
		}
		prefix, list, _ := strings.Cut(path.Base(glob), "{")
		list, suffix, _ := strings.Cut(list, "}")
		for _, alternative := range strings.Split(list, ",") {
			names = append(names, "-name '"+prefix+alternative+suffix+"'")
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
		Direction: lower, Timeout: "30s",
	}
}

// WithoutBenchmark replaces the metric, because the benchmark fails. failure says how it fails.
func (r *Repository) WithoutBenchmark(failure string) {
	failed := "the benchmark (" + r.Metric.Command + ") fails here: " + failure
	r.measureSize("the benchmark fails, so this counts bytes")
	if r.Metric.Command != "" {
		failed += ". So this proposes the size of the code and not the benchmark"
	}
	r.Missing = append(r.Missing, failed)
}

// languages returns the languages of the repository, the one with the most files first. A language counts if the
// repository has one of its manifests, or if it needs no manifest and has files. If none of these fits, the language
// with the most files is added; its look is then bare.
func (t tree) languages() []language {
	weight, heaviest := map[string]int{}, 0
	for _, name := range t.files {
		if aside().MatchString(path.Dir(name)) || strings.HasPrefix(name, ".") { // tests and examples may be in another language
			continue
		}
		for _, l := range languages {
			if slices.Contains(l.extensions, path.Ext(name)) {
				weight[l.name]++
				heaviest = max(heaviest, weight[l.name])
				break
			}
		}
	}
	manifest := func(l language) bool { return slices.ContainsFunc(t.files, l.manifest) }
	mostly := func(l language) bool { return weight[l.name] == heaviest }
	present := list.Filter(languages, func(l language) bool { return manifest(l) || weight[l.name] > 0 && len(l.manifests) == 0 && l.alone })
	if heaviest > 0 && !slices.ContainsFunc(present, manifest) && !slices.ContainsFunc(present, mostly) {
		l, _ := list.First(languages, mostly)
		l.look = l.bare
		present = append(present, l)
	}
	if i := slices.IndexFunc(t.files, func(name string) bool { return path.Ext(name) == ".bats" }); len(present) == 0 && i >= 0 {
		present = append(present, languages[slices.IndexFunc(languages, func(l language) bool { return l.name == "shell" })])
	}
	slices.SortStableFunc(present, func(a, b language) int { return weight[b.name] - weight[a.name] })
	return present
}

// under returns a glob for each of the folders that has files.
func (t tree) under(folders ...string) []string {
	var globs []string
	for _, dir := range folders {
		if slices.ContainsFunc(t.files, func(name string) bool { return strings.HasPrefix(name, dir+"/") }) {
			globs = append(globs, dir+"/**")
		}
	}
	return globs
}

// present returns those of the names that exist.
func (t tree) present(names ...string) []string {
	return slices.DeleteFunc(names, func(name string) bool { return !t.has[name] })
}
