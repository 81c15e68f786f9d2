package scaffold

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strconv"
	"strings"

	"pawl/internal/lib/lazyregexp"
	"pawl/internal/metric"
)

const (
	// manyBenchmarks is how many Go benchmarks take about half a minute, if each runs three times for a second.
	manyBenchmarks = 8
	// namedBenchmarks is how many Go benchmarks a command names.
	namedBenchmarks = 12
	// listedPackages is how many packages a command lists.
	listedPackages = 3
)

var (
	goBenchmark = lazyregexp.New(`(?m)^func Benchmark(\w+)\(`)
	// goIgnores matches a file in a folder that go commands do not look into.
	goIgnores = lazyregexp.New(`(^|/)([_.][^/]*|testdata)/`)
	goModule  = lazyregexp.New(`(?m)^module\s+"?([^\s"]+)`)
)

// goBenchmarks are the benchmarks of a Go module, each in the order of its files.
type goBenchmarks struct {
	packages []string // folders, for the go command
	names    []string // without the word Benchmark
	foreign  []string // names of those that measure only other modules' packages
	count    int
	nested   bool // some have parts, and nobody knows how many
}

// goBenchmarks finds the benchmarks of the module at the root, except those in the folders of other modules.
func (t tree) goBenchmarks(otherModules []string) (found goBenchmarks) {
	for _, name := range t.files {
		inOther := slices.ContainsFunc(otherModules, func(dir string) bool { return strings.HasPrefix(name, dir) })
		if inOther || !strings.HasSuffix(name, "_test.go") || goIgnores().MatchString(name) {
			continue
		}
		text := t.read(name)
		matches := goBenchmark().FindAllStringSubmatch(text, -1)
		if len(matches) == 0 {
			continue
		}
		pkg := t.goPackage(path.Dir(name))
		kept := 0
		for _, match := range matches {
			if pkg.measuresOthers("Benchmark" + match[1]) {
				found.foreign = append(found.foreign, match[1])
				continue
			}
			kept++
			found.names = append(found.names, match[1])
		}
		if kept == 0 {
			continue
		}
		found.count += kept
		found.nested = found.nested || strings.Contains(text, "b.Run(")
		found.packages = append(found.packages, "./"+path.Dir(name))
	}
	found.packages = slices.Compact(found.packages)
	return found
}

// metric returns the geometric mean of the benchmarks, so that each counts the same however long it takes. A run with a
// benchmark that fails has no result: the mean of the others would be another number.
func (b goBenchmarks) metric() Metric {
	places := strings.ReplaceAll(strings.Join(b.packages, " "), "./.", ".")
	if len(b.packages) > listedPackages {
		places = "./..."
	}
	short, counted := "", "the Go benchmark in "+inWords(places)
	if b.count > 1 {
		counted = fmt.Sprintf("the geometric mean of the %s in %s", metric.Counted(b.count, "Go benchmark"), inWords(places))
	}
	if b.count > manyBenchmarks || b.nested {
		short = "-benchtime 100ms "
		counted += ", each three times for 100 ms"
	}
	if len(b.foreign) > 0 {
		counted += "; not Benchmark" + strings.Join(unrepeated(b.foreign), ", Benchmark") + ", where nothing of this module is measured"
	}
	m := benchmark("Make what the benchmarks measure faster",
		`go test -run '^$' `+b.selection()+` -count 3 `+short+places+` | awk '$4 == "ns/op" {sum += log($3); n++} /^(--- )?FAIL/ {bad = 1; print > "/dev/stderr"} `+
			`END {if (bad || !n) exit 1; printf "METRIC ns=%.2f\n", exp(sum / n)}'`,
		counted)
	m.Direction = lower
	return m
}

// selection returns the flags of go test that select the benchmarks. It names them if there are few, so that people can
// take some away.
func (b goBenchmarks) selection() string {
	pattern := func(names []string) string {
		names = unrepeated(names)
		if len(names) == 1 {
			return "'^Benchmark" + names[0] + "$'"
		}
		return "'^Benchmark(" + strings.Join(names, "|") + ")$'"
	}
	if len(b.names) <= namedBenchmarks {
		return "-bench " + pattern(b.names)
	}
	foreign := slices.DeleteFunc(slices.Clone(b.foreign), func(name string) bool { return slices.Contains(b.names, name) })
	if len(foreign) == 0 {
		return "-bench ."
	}
	return "-bench . -skip " + pattern(foreign)
}

// unrepeated returns the names without repetitions, in their order.
func unrepeated(names []string) []string {
	var unique []string
	for _, name := range names {
		if !slices.Contains(unique, name) {
			unique = append(unique, name)
		}
	}
	return unique
}

// inWords returns the packages as words for a sentence.
func inWords(packages string) string {
	if packages == "." {
		return "the root"
	}
	if packagesBelow, ok := strings.CutSuffix(packages, " ."); ok {
		return packagesBelow + " and the root"
	}
	return packages
}

// goPackage is what the files of one folder declare, by name.
type goPackage struct {
	module   string
	code     map[string]bool          // declared outside of tests
	tests    map[string][]goReference // declared in tests: what each refers to
	complete bool                     // every file could be read
}

// goReference is a name that a declaration refers to: of its own package, or of the package with an import path.
type goReference struct{ importPath, name string }

// goPackage reads the Go files of a folder.
func (t tree) goPackage(dir string) goPackage {
	p := goPackage{code: map[string]bool{}, tests: map[string][]goReference{}, complete: true}
	if match := goModule().FindStringSubmatch(t.read("go.mod")); match != nil {
		p.module = match[1]
	}
	for _, name := range t.files {
		if path.Dir(name) != dir || path.Ext(name) != ".go" {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, t.read(name), parser.SkipObjectResolution)
		if err != nil {
			p.complete = false
			continue
		}
		p.add(file, strings.HasSuffix(name, "_test.go"))
	}
	return p
}

// add notes what a file declares.
func (p goPackage) add(file *ast.File, test bool) {
	imports := map[string]string{}
	for _, spec := range file.Imports {
		importPath, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue
		}
		name := path.Base(importPath)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		imports[name] = importPath
	}
	declare := func(name string, node ast.Node) {
		if !test {
			p.code[name] = true
			return
		}
		p.tests[name] = append(p.tests[name], references(node, imports)...)
	}
	for _, declared := range file.Decls {
		switch d := declared.(type) {
		case *ast.FuncDecl:
			declare(d.Name.Name, d)
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					declare(s.Name.Name, s)
				case *ast.ValueSpec:
					for _, name := range s.Names {
						declare(name.Name, s)
					}
				}
			}
		}
	}
}

// references returns the names that a declaration refers to.
func references(node ast.Node, imports map[string]string) (found []goReference) {
	ast.Inspect(node, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			qualifier, ok := n.X.(*ast.Ident)
			importPath := ""
			if ok {
				importPath = imports[qualifier.Name]
			}
			if importPath != "" {
				found = append(found, goReference{importPath, n.Sel.Name})
				return false
			}
		case *ast.Ident:
			found = append(found, goReference{name: n.Name})
		}
		return true
	})
	return found
}

// measuresOthers reports whether a benchmark calls packages of other modules and nothing of its own. It is false in
// doubt.
func (p goPackage) measuresOthers(benchmark string) bool {
	if !p.complete || p.module == "" {
		return false
	}
	measuresMore := false
	seen := map[string]bool{benchmark: true}
	for queue := []string{benchmark}; len(queue) > 0; queue = queue[1:] {
		for _, reference := range p.tests[queue[0]] {
			switch {
			case reference.importPath == "" && p.code[reference.name]:
				return false
			case reference.importPath == "" && !seen[reference.name]:
				seen[reference.name] = true
				queue = append(queue, reference.name)
			case reference.importPath == p.module || strings.HasPrefix(reference.importPath, p.module+"/"):
				return false
			case reference.importPath != "" && reference.importPath != "testing":
				measuresMore = true
			}
		}
	}
	return measuresMore
}
