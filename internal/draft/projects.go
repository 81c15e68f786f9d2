package draft

import (
	"cmp"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// manyProjects is how many other projects are named, and deepest how far down they are looked for.
const (
	manyProjects = 10
	deepest      = 3
)

// folder is what a command can name without quotes.
var folder = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_./-]*$`)

// largest looks at the project with most files of those in the repository's folders. It is for a
// repository that says at its root neither what it is made of nor how it is tested: several is false
// for any other. made is what its Makefile says.
func (t tree) largest(made Repository) (r Repository, several bool) {
	size := t.projects()
	if made.Test != "" || size[""] > 0 || len(size) == 0 {
		return r, false
	}
	dirs := slices.SortedFunc(maps.Keys(size), func(a, b string) int { return cmp.Or(size[b]-size[a], strings.Compare(a, b)) })
	dir := dirs[0]
	var files []string
	for _, name := range t.files {
		if below, is := strings.CutPrefix(name, dir+"/"); is {
			files = append(files, below)
		}
	}
	r = Look(files, func(name string) string { return t.read(dir + "/" + name) })
	for _, command := range []*string{&r.Setup, &r.Test, &r.Check, &r.Metric.Command} {
		if *command != "" {
			*command = "cd " + dir + " && " + *command
		}
	}
	for _, globs := range [][]string{r.Scope, r.Protect} {
		for i := range globs {
			globs[i] = dir + "/" + globs[i]
		}
	}
	r.Protect = append(slices.DeleteFunc(r.Protect, func(glob string) bool { return glob == dir+"/pawl.yaml" }), "pawl.yaml")
	r.Project, r.Others = dir, dirs[1:min(len(dirs), 1+manyProjects)]
	return r, true
}

// projects counts the files of each folder that has a manifest; "" is the root. A folder below one
// that has a manifest belongs to it.
func (t tree) projects() map[string]int {
	size := map[string]int{}
	for _, name := range t.files {
		dir := strings.TrimPrefix(path.Dir(name), ".")
		if manifest(path.Base(name)) && strings.Count(dir, "/") < deepest && (dir == "" || folder.MatchString(dir)) {
			size[dir] = 0
		}
	}
	for dir := range size {
		for up := path.Dir(dir); up != "." && up != "/"; up = path.Dir(up) {
			if _, inner := size[up]; inner {
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
