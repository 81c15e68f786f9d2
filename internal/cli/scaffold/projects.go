package scaffold

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strings"

	"pawl/internal/lib/lazyregexp"
)

// How many other projects are named, and down to which depth of folders projects are searched for.
const (
	manyProjects = 10
	deepest      = 3
)

// folder matches a folder that a command can name without quotes.
var folder = lazyregexp.New(`^[A-Za-z0-9_][A-Za-z0-9_./-]*$`)

// builds lists the files at a repository's root that say how C code is built. C code does not need any of them.
var builds = []string{"CMakeLists.txt", "meson.build", "configure.ac", "configure"}

// aside matches a folder with tests, examples or docs. A project in it is not what the repository is about.
var aside = lazyregexp.New(`^(?:.*/)?(?:tests?|testdata|spec|fixtures?|examples?|samples?|docs?)(?:/|$)`)

// project returns the folder of the project that a spec is for: the nearest project at or above the named folder, or
// the project with the most files if the root has neither a manifest, nor a build of C, nor a target that tests. ok
// is false if the spec is for the whole repository. made is what the Makefile offers.
func (t tree) project(folder string, made Repository) (dir string, siblings []string, ok bool) {
	size := t.projects(folder)
	for dir = folder; dir != "" && dir != "."; dir = path.Dir(dir) {
		if _, ok = size[dir]; ok {
			break
		}
	}
	if !ok && (made.Test != "" || size[""] > 0 || len(size) == 0 || slices.ContainsFunc(builds, func(name string) bool { return t.has[name] })) {
		return "", nil, false
	}
	dirs := slices.SortedFunc(maps.Keys(size), func(a, b string) int { return cmp.Or(size[b]-size[a], strings.Compare(a, b)) })
	if !ok {
		dir = dirs[0]
	}
	siblings = slices.DeleteFunc(dirs, func(candidate string) bool { return candidate == dir || candidate == "" })
	return dir, siblings[:min(len(siblings), manyProjects)], true
}

// within describes the project of a folder. Its commands start there, except a setup of the root's lockfile.
func (t tree) within(dir string, siblings []string) Repository {
	inner := tree{has: map[string]bool{}, program: t.program, outer: &t, missing: t.missing}
	inner.read = func(name string) string { return t.read(dir + "/" + name) }
	for name := range t.has {
		if below, ok := strings.CutPrefix(name, dir+"/"); ok {
			inner.has[below] = true
		}
	}
	inner.files, inner.foreign = inner.own(slices.Sorted(maps.Keys(inner.has)))
	r := inner.look("")
	for _, command := range []*string{&r.Setup, &r.Test, &r.Check, &r.Metric.Command, &r.Metric.Guard} {
		if *command != "" && (command != &r.Setup || !r.outer) {
			*command = "cd " + dir + " && " + *command
		}
	}
	for _, globs := range [][]string{r.Scope, r.Protect, r.Keep} {
		for i := range globs {
			globs[i] = dir + "/" + globs[i]
		}
	}
	if r.Report != "" {
		r.Report = dir + "/" + r.Report
	}
	r.Project, r.Others = dir, siblings
	return r
}

// projects counts the files of each folder that has a manifest; "" is the root. A folder below such a folder belongs
// to it, unless meant is in it. Folders of tests and examples count only if meant is in them.
func (t tree) projects(meant string) map[string]int {
	size := map[string]int{}
	for _, name := range t.files {
		dir := strings.TrimPrefix(path.Dir(name), ".")
		around := dir != "" && strings.HasPrefix(meant+"/", dir+"/")
		if aside().MatchString(dir) && !around {
			continue
		}
		if manifest(path.Base(name)) && (around || strings.Count(dir, "/") < deepest) && (dir == "" || folder().MatchString(dir)) {
			size[dir] = 0
		}
	}
	for dir := range size {
		for up := path.Dir(dir); up != "." && up != "/"; up = path.Dir(up) {
			if _, inner := size[up]; inner && !strings.HasPrefix(meant+"/", dir+"/") {
				delete(size, dir)
			}
		}
	}
	for _, name := range t.files {
		for dir := range size {
			if dir == "" || strings.HasPrefix(name, dir+"/") {
				size[dir]++
			}
		}
	}
	return size
}

func manifest(base string) bool {
	return slices.ContainsFunc(languages, func(l language) bool { return l.manifest(base) })
}
