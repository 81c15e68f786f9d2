package draft

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strings"

	"pawl/internal/lazyregexp"
)

// manyProjects is how many other projects are named, and deepest how far down they are looked for.
const (
	manyProjects = 10
	deepest      = 3
)

// folder is what a command can name without quotes.
var folder = lazyregexp.New(`^[A-Za-z0-9_][A-Za-z0-9_./-]*$`)

// builds are files that say at a repository's root how C is built. What is made of C needs none of them.
var builds = []string{"CMakeLists.txt", "meson.build", "configure.ac", "configure"}

// aside is a folder whose projects are there for another's tests, or as examples.
var aside = lazyregexp.New(`^(?:.*/)?(?:tests?|testdata|spec|fixtures?|examples?|samples?|docs?)(?:/|$)`)

// project is the folder of the project that a spec is for: the nearest at or above the folder that is
// meant, or the one with most files where the repository says at its root neither what it is made of nor how
// it is tested. is is false where it is for the whole repository. made is what its Makefile says.
func (t tree) project(folder string, made Repository) (dir string, others []string, is bool) {
	size := t.projects(folder)
	for dir = folder; dir != "" && dir != "."; dir = path.Dir(dir) {
		if _, is = size[dir]; is {
			break
		}
	}
	if !is && (made.Test != "" || size[""] > 0 || len(size) == 0 || slices.ContainsFunc(builds, func(name string) bool { return t.has[name] })) {
		return "", nil, false
	}
	dirs := slices.SortedFunc(maps.Keys(size), func(a, b string) int { return cmp.Or(size[b]-size[a], strings.Compare(a, b)) })
	if !is {
		dir = dirs[0]
	}
	others = slices.DeleteFunc(dirs, func(other string) bool { return other == dir || other == "" })
	return dir, others[:min(len(others), manyProjects)], true
}

// within looks at the project of a folder. Its commands go there first; what sets it up where its lockfile is.
func (t tree) within(dir string, others []string) Repository {
	inner := tree{has: map[string]bool{}, program: t.program, outer: &t, missing: t.missing}
	inner.read = func(name string) string { return t.read(dir + "/" + name) }
	for name := range t.has {
		if below, is := strings.CutPrefix(name, dir+"/"); is {
			inner.has[below] = true
		}
	}
	inner.files, inner.foreign = inner.own(slices.Sorted(maps.Keys(inner.has)))
	r := inner.look("")
	for _, command := range []*string{&r.Setup, &r.Test, &r.Check, &r.Metric.Command} {
		if *command != "" && (command != &r.Setup || !r.outer) {
			*command = "cd " + dir + " && " + *command
		}
	}
	for _, globs := range [][]string{r.Scope, r.Protect, r.Keep} {
		for i := range globs {
			globs[i] = dir + "/" + globs[i]
		}
	}
	r.Project, r.Others = dir, others
	return r
}

// projects counts the files of each folder that has a manifest; "" is the root. A folder below one
// that has a manifest belongs to it, unless it is the one that is meant or around that; what is aside counts only then.
func (t tree) projects(meant string) map[string]int {
	size := map[string]int{}
	for _, name := range t.files {
		dir := strings.TrimPrefix(path.Dir(name), ".")
		around := dir != "" && strings.HasPrefix(meant+"/", dir+"/")
		if aside.MatchString(dir) && !around {
			continue
		}
		if manifest(path.Base(name)) && (around || strings.Count(dir, "/") < deepest) && (dir == "" || folder.MatchString(dir)) {
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
	return slices.ContainsFunc(languages, func(l language) bool { return slices.Contains(l.manifests, base) })
}
