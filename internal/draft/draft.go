// Package draft writes a first spec for a repository: Look finds out what the repository is made
// of, how it is tested, what could measure it, and Spec puts that into a commented file with
// practical limits. It reads what others hand it and writes nothing; it runs no command, so what
// it proposes is tried by `pawl validate`, not believed. Start at Look; languages.go is the table of
// what it knows.
package draft

import (
	"cmp"
	"path"
	"slices"
	"strings"
)

// Repository is what is known about a repository.
type Repository struct {
	Languages []string `json:"languages"` // the one with most files first
	// Project is the folder that the rest is about, where a repository holds several projects and
	// none at its root; Others are their folders.
	Project string   `json:"project,omitempty"`
	Others  []string `json:"others,omitempty"`
	Setup   string   `json:"setup,omitempty"`
	Test    string   `json:"test,omitempty"`
	Check   string   `json:"check,omitempty"`
	Metric  Metric   `json:"metric"`
	Scope   []string `json:"scope"`
	Protect []string `json:"protect"`
}

// Metric is what a loop could improve.
type Metric struct {
	Goal      string `json:"goal"`
	Command   string `json:"command"`
	Direction string `json:"direction"`
	Timeout   string `json:"timeout"`
	// Why says where it comes from, or what it lacks.
	Why string `json:"why"`
}

// tree is a repository's files.
type tree struct {
	files []string
	has   map[string]bool
	read  func(name string) string
}

// Look looks at a repository: at its files, relative to the root, and what is in some of them.
// read returns "" for what can't be read.
func Look(files []string, read func(name string) string) Repository {
	t := tree{files: slices.Sorted(slices.Values(files)), has: map[string]bool{}, read: read}
	for _, name := range files {
		t.has[name] = true
	}
	made := t.makefile()
	if found, several := t.largest(made); several {
		return found
	}
	var r Repository
	var metrics []Metric
	for _, l := range t.languages() {
		found := l.look(t)
		r.Languages = append(r.Languages, l.name)
		r.Setup, r.Test, r.Check = cmp.Or(r.Setup, found.Setup), cmp.Or(r.Test, found.Test), cmp.Or(r.Check, found.Check)
		if found.Metric.Command != "" {
			metrics = append(metrics, found.Metric)
		}
		if len(r.Scope) == 0 {
			r.Scope = found.Scope
		}
		r.Protect = append(r.Protect, found.Protect...)
	}
	r.Protect = append(r.Protect, made.Protect...)
	// What people wrote for themselves is what they mean by a test or a benchmark.
	r.Test, r.Check = cmp.Or(made.Test, r.Test, t.testScript()), cmp.Or(r.Check, made.Check)
	metrics = append(append(t.scripts(), made.Metric), metrics...)
	if i := slices.IndexFunc(metrics, func(m Metric) bool { return m.Command != "" }); i >= 0 {
		r.Metric = metrics[i]
	}
	if len(r.Scope) == 0 {
		r.Scope = t.under("src", "lib", "app")
	}
	if len(r.Scope) == 0 {
		r.Scope = []string{"**"}
	}
	if r.Metric.Command == "" {
		r.Metric = size(r.Scope)
	}
	r.Protect = slices.Compact(slices.Sorted(slices.Values(append(r.Protect, "pawl.yaml"))))
	return r
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
		Direction: "lower", Timeout: "30s", Why: "no benchmark was found, so this counts bytes; put what you want to be better here",
	}
}

// languages are those that the repository has files of or a manifest for, the main one first.
func (t tree) languages() []language {
	count := map[string]int{}
	for _, name := range t.files {
		count[path.Ext(name)]++
	}
	weight := map[string]int{}
	var present []language
	for _, l := range languages {
		for _, ext := range l.extensions {
			weight[l.name] += count[ext]
		}
		manifest := slices.ContainsFunc(l.manifests, func(name string) bool { return t.has[name] })
		if manifest || weight[l.name] > 0 && len(l.manifests) == 0 {
			present = append(present, l)
		}
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
