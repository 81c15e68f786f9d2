package evaluator

import (
	"path"
	"strings"

	"pawl/internal/lib/lazyregexp"
)

// Imports are followed if they lead to files in the folder of the script or below it. An evaluator has its helpers
// there, and the code that it measures is elsewhere. At the root of the repository anything may be beside a script,
// so no import seals a file there.

var (
	pythonImport = lazyregexp.New(`(?m)^[ \t]*(?:import[ \t]+([A-Za-z0-9_., \t]+)|from[ \t]+(\.*)([A-Za-z0-9_.]*)[ \t]+import[ \t]+(?:\(([^)]*)\)|([^#\n]*)))`)
	scriptImport = lazyregexp.New(`(?:\bfrom|\bimport|\brequire\s*\(|\bimport\s*\()\s*["'](\.{1,2}/[^"'\n]+)["']`)
	pythonNames  = lazyregexp.New(`[A-Za-z_][A-Za-z0-9_]*`)
)

// helps reports whether a file that a script imports is its helper.
func helps(tested, file string) bool {
	dir := path.Dir(tested)
	return dir != "." && strings.HasPrefix(file, dir+"/")
}

// imports follows the imports of a Python script. from is the folder in which Python looks first.
func (r *refs) imports(file, importer string, depth int) {
	text, ok := r.once(file, "python from "+importer, depth)
	if !ok {
		return
	}
	r.standard(text, importer)
	module := func(path string) bool {
		for _, name := range []string{path + ".py", path + "/__init__.py"} {
			if r.exists[name] && helps(file, name) {
				r.within(func() { r.mark(name) })
				r.imports(name, importer, depth+1)
				return true
			}
		}
		return false
	}
	for _, m := range pythonImport().FindAllStringSubmatch(text, -1) {
		for name := range strings.SplitSeq(m[1], ",") { // import a.b as c, d
			if first := strings.Fields(name); len(first) > 0 {
				file := importer
				for part := range strings.SplitSeq(first[0], ".") {
					file = path.Join(file, part)
					module(file)
				}
			}
		}
		place := importer
		if dots := len(m[2]); dots > 0 { // a relative import
			place = path.Dir(file)
			for range dots - 1 {
				place = path.Dir(place)
			}
		}
		for part := range strings.SplitSeq(m[3], ".") {
			if place = path.Join(place, part); part != "" {
				module(place)
			}
		}
		for _, name := range pythonNames().FindAllString(m[4]+m[5], -1) {
			module(path.Join(place, name))
		}
	}
}

// requires follows the relative imports of a JavaScript or TypeScript file.
func (r *refs) requires(file string, depth int) {
	text, ok := r.once(file, "node", depth)
	if !ok {
		return
	}
	for _, m := range scriptImport().FindAllStringSubmatch(text, -1) {
		place := path.Join(path.Dir(file), m[1])
		for _, end := range []string{"", ".js", ".mjs", ".cjs", ".ts", ".mts", ".tsx", ".jsx", ".json", "/index.js", "/index.ts"} {
			if name := place + end; r.exists[name] && helps(file, name) {
				r.within(func() { r.mark(name) })
				r.requires(name, depth+1)
				break
			}
		}
	}
}
