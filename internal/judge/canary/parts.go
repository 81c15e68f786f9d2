package canary

import (
	"cmp"
	"path"
	"slices"
	"strings"
)

// Part is code that one guard may notice and another may not: the code of one package in one language.
type Part struct {
	Name  string // the folder, with the language if the folder has several
	Files []string
}

// manifests are files that make their folder a package of its own.
var manifests = []string{
	"package.json", "go.mod", "Cargo.toml", "pyproject.toml", "setup.py", "setup.cfg", "pom.xml", "build.gradle", "build.gradle.kts", "composer.json", "mix.exs", "Package.swift", "pubspec.yaml",
}

// Parts splits the files into their parts, the largest first. all are all files of the repository.
func Parts(files, names []string) (parts []Part) {
	packages := map[string]bool{}
	for _, name := range names {
		if slices.Contains(manifests, path.Base(name)) {
			packages[path.Dir(name)] = true
		}
	}
	type key struct{ dir, language string }
	found, spoken := map[key][]string{}, map[string]int{}
	for _, file := range files {
		dir := path.Dir(file)
		for dir != "." && !packages[dir] {
			dir = path.Dir(dir)
		}
		k := key{dir, languages[path.Ext(file)].name}
		if found[k] == nil {
			spoken[dir]++
		}
		found[k] = append(found[k], file)
	}
	for k, files := range found {
		name := strings.TrimPrefix(k.dir, ".")
		switch {
		case name == "" && len(spoken) == 1:
			name = k.language
		case name == "":
			name = "what is in no package (" + k.language + ")"
		case spoken[k.dir] > 1:
			name += " (" + k.language + ")"
		}
		parts = append(parts, Part{name, slices.Sorted(slices.Values(files))})
	}
	slices.SortFunc(parts, func(a, b Part) int { return cmp.Or(len(b.Files)-len(a.Files), strings.Compare(a.Name, b.Name)) })
	return parts
}
