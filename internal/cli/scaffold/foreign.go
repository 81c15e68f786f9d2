package scaffold

import (
	"path"
	"slices"
	"strings"

	"pawl/internal/lib/lazyregexp"
)

// vendored matches a file in a folder with code of others.
var vendored = lazyregexp.New(`^(?:.*/)?(vendor|third_party|third-party|node_modules|bower_components|\.venv|venv)/`)

// generated lists the endings of the names of files that programs write.
var generated = []string{
	".pb.go", ".pb.gw.go", "_pb2.py", "_pb2_grpc.py", "_pb2.pyi", ".pb.cc", ".pb.h", ".min.js", ".min.css", "_generated.go", ".generated.ts", ".g.dart",
}

// generatedMark matches the line that Go's tools, and many others, put into generated files.
var generatedMark = lazyregexp.New(`(?m)^(?://|#|/\*) ?Code generated .* DO NOT EDIT\.`)

// How many generated files of a folder are named one by one, and how many files are searched for the mark.
const (
	manyMarked = 20
	manyRead   = 3000
)

// own splits the files: it returns those that the project's people wrote, and globs for vendored and generated files.
func (t tree) own(files []string) (mine, foreign []string) {
	marked := map[string][]string{}
	for i, name := range files {
		if strings.ContainsAny(name, `*?[]{}\`) { // the name can't be written as a glob
			mine = append(mine, name)
			continue
		}
		if m := vendored().FindStringSubmatchIndex(name); m != nil {
			foreign = append(foreign, name[:m[3]]+"/**")
			continue
		}
		if i := slices.IndexFunc(generated, func(ending string) bool { return strings.HasSuffix(name, ending) }); i >= 0 {
			foreign = append(foreign, "**/*"+generated[i])
			continue
		}
		if ext := path.Ext(name); i < manyRead && (ext == ".go" || ext == ".rs" || ext == ".ts") && generatedMark().MatchString(t.read(name)) {
			marked[path.Dir(name)] = append(marked[path.Dir(name)], name)
			continue
		}
		mine = append(mine, name)
	}
	for dir, names := range marked {
		if len(names) > manyMarked && dir != "." && !slices.ContainsFunc(mine, func(name string) bool { return path.Dir(name) == dir }) {
			names = []string{dir + "/*"}
		}
		foreign = append(foreign, names...)
	}
	slices.Sort(foreign)
	return mine, slices.Compact(foreign)
}
