package evaluator

import (
	"path"
	"strings"

	"pawl/internal/lib/lazyregexp"
	"pawl/internal/lib/shell"
)

// builder says how the files of a runner name what it builds and runs as tests.
type builder struct {
	file string
	// program has the name of a program that is built, and its sources; test the command of a test.
	program, test lazyregexp.Regexp
}

var builders = map[string]builder{
	"ctest": {"CMakeLists.txt", lazyregexp.New(`(?i)\badd_executable\s*\(\s*"?([^\s")]+)"?([^)]*)\)`), lazyregexp.New(`(?i)\badd_test\s*\(([^)]*)\)`)},
	"meson": {"meson.build", lazyregexp.New(`\bexecutable\s*\(\s*'([^']*)'([^)]*)\)`), lazyregexp.New(`\btest\s*\(([^)]*)\)`)},
}

// sourceFolder is what CMake calls the folder of the file that it reads, in front of a name.
var sourceFolder = lazyregexp.New(`^\$\{(?:CMAKE_|PROJECT_)(?:CURRENT_)?SOURCE_DIR\}/`)

// cSource is the name of a file that a compiler gets.
var cSource = lazyregexp.New(`\.(?:c|cc|cpp|cxx|c\+\+|m|h|hh|hpp|hxx)$`)

// programsOfTests seals what a runner builds for its tests: of a program whose name has "test" in it the sources that have
// so too, or its only one. It also seals the scripts and data that the command of a test names.
func (r *refs) programsOfTests(name string) {
	b, ok := builders[name]
	if !ok {
		return
	}
	test := func(name string) bool { return strings.Contains(strings.ToLower(name), "test") }
	for _, file := range r.files {
		if path.Base(file) != b.file {
			continue
		}
		text, _ := r.once(file, name, 0)
		named := func(words string) (files []string) {
			for _, word := range pattern().FindAllString(words, -1) {
				if place := shell.Resolve(path.Dir(file), sourceFolder().ReplaceAllString(word, "")); r.exists[place] {
					files = append(files, place)
				}
			}
			return files
		}
		r.within(func() {
			for _, m := range b.program().FindAllStringSubmatch(text, -1) {
				sources := named(m[2])
				for _, source := range sources {
					if test(m[1]) && (test(path.Base(source)) || len(sources) == 1) {
						r.mark(source)
					}
				}
			}
			for _, m := range b.test().FindAllStringSubmatch(text, -1) {
				for _, word := range named(m[1]) {
					if !cSource().MatchString(word) {
						r.mark(word)
					}
				}
			}
		})
	}
}
