package canary

import (
	"cmp"
	"path"
	"slices"
	"strings"
)

// Part is code that one guard may see and another may not: that of a package, in one language.
type Part struct {
	Name  string // where it is, with the language where that is not all there
	Files []string
}

// names are those of the languages, by the extension of their files: for people, and as files that are built together.
var names = map[string]string{
	".go": "Go", ".js": "JavaScript", ".mjs": "JavaScript", ".cjs": "JavaScript", ".jsx": "JavaScript", ".ts": "JavaScript", ".mts": "JavaScript", ".cts": "JavaScript", ".tsx": "JavaScript",
	".py": "Python", ".rs": "Rust", ".java": "Java", ".kt": "Java", ".scala": "Java", ".c": "C", ".h": "C", ".cc": "C", ".cpp": "C", ".cxx": "C", ".hpp": "C", ".hh": "C",
	".cs": "C#", ".swift": "Swift", ".rb": "Ruby", ".ex": "Elixir", ".exs": "Elixir", ".lua": "Lua", ".zig": "Zig", ".dart": "Dart", ".php": "PHP",
}

// manifests are files that say that their folder is a package of its own.
var manifests = []string{
	"package.json", "go.mod", "Cargo.toml", "pyproject.toml", "setup.py", "setup.cfg", "pom.xml", "build.gradle", "build.gradle.kts", "composer.json", "mix.exs", "Package.swift", "pubspec.yaml",
}

// Parts splits files that can be broken into the parts that they belong to, the largest first. all are the
// files of the repository.
func Parts(files, all []string) (parts []Part) {
	own := map[string]bool{}
	for _, name := range all {
		if slices.Contains(manifests, path.Base(name)) {
			own[path.Dir(name)] = true
		}
	}
	type key struct{ dir, language string }
	found, languages := map[key][]string{}, map[string]int{}
	for _, file := range files {
		dir := path.Dir(file)
		for dir != "." && !own[dir] {
			dir = path.Dir(dir)
		}
		k := key{dir, names[path.Ext(file)]}
		if found[k] == nil {
			languages[dir]++
		}
		found[k] = append(found[k], file)
	}
	for k, files := range found {
		name := strings.TrimPrefix(k.dir, ".")
		switch {
		case name == "" && len(languages) == 1:
			name = k.language
		case name == "":
			name = "what is in no package (" + k.language + ")"
		case languages[k.dir] > 1:
			name += " (" + k.language + ")"
		}
		parts = append(parts, Part{name, slices.Sorted(slices.Values(files))})
	}
	slices.SortFunc(parts, func(a, b Part) int { return cmp.Or(len(b.Files)-len(a.Files), strings.Compare(a.Name, b.Name)) })
	return parts
}
