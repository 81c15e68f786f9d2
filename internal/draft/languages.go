package draft

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"pawl/internal/lazyregexp"
)

// language is one programming language and how to describe a repository that has it.
type language struct {
	name       string
	extensions []string
	manifests  []string // any of these files says that the repository has this language
	look       func(tree) Repository
}

// languages is the table of the languages that draft knows. A language that is always built and tested in the same
// way has fixed commands; the others have functions. Maven and Gradle have a row each.
var languages = []language{
	{"go", []string{".go"}, []string{"go.mod"}, golang},
	{"node", []string{".js", ".mjs", ".cjs", ".jsx", ".ts", ".tsx"}, []string{"package.json"}, node},
	{"python", []string{".py"}, []string{"pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "Pipfile"}, python},
	{"rust", []string{".rs"}, []string{"Cargo.toml"}, rust},
	{"java", []string{".java", ".kt"}, []string{"pom.xml"}, java("mvnw", "mvn", " -q -B -fae test", " -q -B compile", "pom.xml", "**/target/**")},
	{"java", []string{".java", ".kt"}, []string{"build.gradle", "build.gradle.kts"}, java("gradlew", "gradle", " -q test --continue", " -q classes", "build.gradle*", "**/build/**", ".gradle/**")},
	{"ruby", []string{".rb"}, []string{"Gemfile"}, ruby},
	{"php", []string{".php"}, []string{"composer.json"}, php},
	{"elixir", []string{".ex", ".exs"}, []string{"mix.exs"}, elixir},
	{"dotnet", []string{".cs", ".fs"}, []string{"global.json", "Directory.Build.props"}, dotnet},
	{"c", []string{".c", ".h", ".cc", ".cpp", ".cxx", ".hpp"}, nil, c},
	{"shell", []string{".sh"}, nil, fixed("", "", "")},
}

// bare describes a repository that has files of the language but no manifest. Python and JavaScript work without one.
// For the others only the place of the code is known.
func (l language) bare(t tree) Repository {
	look := map[string]func(tree) Repository{"python": python, "node": node}[l.name]
	if l.name == "dotnet" && slices.ContainsFunc(t.files, func(name string) bool { return strings.HasSuffix(name, "proj") }) {
		look = dotnet
	}
	if look != nil {
		return look(t)
	}
	t.miss("there is no " + strings.Join(l.manifests, " or ") + ", so pawl does not know how to build or test " + l.name)
	r := Repository{Scope: []string{"**/*.{" + strings.ReplaceAll(strings.Join(l.extensions, ","), ".", "") + "}"}}
	if len(l.extensions) == 1 {
		r.Scope = []string{"**/*" + l.extensions[0]}
	}
	if l.name == "go" {
		r.Protect = []string{"**/*_test.go"}
	}
	return r
}

// fixed returns the look of a language whose commands and folders are always the same.
func fixed(test, check, scope string, protect ...string) func(tree) Repository {
	return func(t tree) Repository {
		r := Repository{Test: test, Check: check}
		if dir, _, _ := strings.Cut(scope, "/**"); scope != "" && len(t.under(dir)) > 0 {
			r.Scope = []string{scope}
		}
		for _, glob := range protect {
			if dir, whole := strings.CutSuffix(glob, "/**"); !whole || len(t.under(dir)) > 0 {
				r.Protect = append(r.Protect, glob)
			}
		}
		return r
	}
}

// java returns the look of a Maven or Gradle build. It uses the wrapper script if the repository has it, else the
// program, and the source folders of each module.
func java(wrapper, program, test, check, manifest string, keep ...string) func(tree) Repository {
	return func(t tree) Repository {
		run := program
		if t.has[wrapper] {
			run = "./" + wrapper
		}
		r := Repository{Test: run + test, Check: run + check, Protect: []string{manifest}, Keep: slices.Clone(keep)}
		for _, name := range t.files {
			if module, _, is := strings.Cut("/"+name, "/src/main/"); is {
				r.Scope = append(r.Scope, strings.TrimPrefix(module+"/src/main/**", "/"))
			} else if module, _, is := strings.Cut("/"+name, "/src/test/"); is {
				r.Protect = append(r.Protect, strings.TrimPrefix(module+"/src/test/**", "/"))
			}
		}
		r.Scope = slices.Compact(r.Scope)
		return r
	}
}

// php, elixir and dotnet always use the same folders. Their setup fetches what the lockfile lists.
func php(t tree) Repository {
	r := fixed("vendor/bin/phpunit", "", "src/**", "tests/**", "composer.json", "composer.lock")(t)
	r.Setup, r.Keep = "composer install --quiet --no-interaction", []string{"vendor/**"}
	return r
}

func elixir(t tree) Repository {
	r := fixed("mix test", "mix compile --warnings-as-errors", "lib/**", "test/**", "mix.exs")(t)
	r.Keep = []string{"_build/**"}
	if t.has["mix.lock"] {
		r.Setup, r.Protect, r.Keep = "mix deps.get", append(r.Protect, "mix.lock"), append(r.Keep, "deps/**")
	}
	return r
}

func dotnet(t tree) Repository {
	r := fixed("dotnet test", "dotnet build", "src/**", "tests/**")(t)
	r.Keep = []string{"**/bin/**", "**/obj/**"}
	if t.has["packages.lock.json"] {
		r.Setup = "dotnet restore --locked-mode"
	}
	return r
}

func c(t tree) Repository {
	r := Repository{Protect: append(t.present("CMakeLists.txt", "meson.build", "configure", "configure.ac", "configure.in"), t.under("test", "tests")...)}
	for _, glob := range []string{"test*.c", "*_test.c", "test*.cc", "*_test.cc", "test*.cpp", "*_test.cpp"} {
		if slices.ContainsFunc(t.files, func(name string) bool { is, _ := path.Match(glob, path.Base(name)); return is }) {
			r.Protect = append(r.Protect, "**/"+glob)
		}
	}
	if r.Scope = t.under("src", "lib"); len(r.Scope) > 0 {
		r.Scope = append(r.Scope, t.under("include")...)
	} else {
		r.Scope = []string{"**/*.{c,h,cc,cpp,cxx,hpp}"}
	}
	switch {
	case t.has["CMakeLists.txt"]:
		r.Test, r.Keep = "cmake -S . -B build >/dev/null && cmake --build build >/dev/null && ctest --test-dir build --output-on-failure", []string{"build/**"}
	case t.has["meson.build"]:
		r.Test, r.Keep = "meson setup build >/dev/null && meson test -C build", []string{"build/**"}
	default:
		r.Setup, r.Test = t.autotools()
	}
	return r
}

var makeTests = lazyregexp.New(`(?m)^(check|test)[ \t]*:([^=]|$)`)

// autotools returns the command that makes the Makefile of a repository that has none, and the target of it that runs
// tests.
func (t tree) autotools() (setup, test string) {
	if made, _ := t.makes(); made != "" {
		return "", ""
	}
	if t.has["Makefile.am"] {
		test = "make check"
	} else if m := makeTests.FindStringSubmatch(t.read("Makefile.in")); m != nil {
		test = "make " + m[1]
	}
	switch {
	case test == "":
	case t.has["configure"]:
		setup = "./configure --quiet"
		if t.has["Makefile.am"] {
			test = t.aged() + " && " + test
		}
	case t.has["configure.ac"], t.has["configure.in"]:
		setup = "autoreconf --install && ./configure --quiet"
	default:
		test = ""
	}
	return setup, test
}

// aged returns a command that gives an old time to what automake, flex and bison read. The files of a clone have times in any order, and make would run the
// very version of automake again if what automake made is older. What flex and bison read keeps its time if they are installed.
func (t tree) aged() string {
	names := []string{"*.ac", "*.am", "*.m4"}
	if !t.program("flex") {
		names = append(names, "*.l", "*.ll")
	}
	if !t.program("bison") {
		names = append(names, "*.y", "*.yy")
	}
	return `find . \( -name '` + strings.Join(names, `' -o -name '`) + `' \) -exec touch -t 200001010000 {} +`
}

var goBenchmark = lazyregexp.New(`(?m)^func (Benchmark\w+)\(`)

func golang(t tree) Repository {
	r := Repository{Test: "go test -json ./...", Scope: []string{"**/*.go"}, Protect: append(t.present("go.mod", "go.sum"), "**/*_test.go")}
	lint := ""
	if slices.ContainsFunc(t.files, func(name string) bool { return strings.HasPrefix(name, ".golangci.") }) {
		lint = "golangci-lint run"
	}
	r.Check = t.choose("the check", lint, "go vet ./...")
	if t.has["go.sum"] && !t.has["vendor/modules.txt"] {
		r.Setup = "go mod download"
	}
	benchmarks := 0
	var packages, modules []string // modules are nested modules: go commands at the root do not see them
	for _, name := range t.files {
		if dir, base := path.Split(name); base == "go.mod" && dir != "" && t.has["go.mod"] && !strings.ContainsAny(dir, `*?[]{}\`) {
			modules = append(modules, dir)
			r.Protect = append(r.Protect, dir+"**")
		}
	}
	for _, name := range t.files {
		if slices.ContainsFunc(modules, func(dir string) bool { return strings.HasPrefix(name, dir) }) {
			continue
		}
		if found := goBenchmark.FindAllString(t.read(name), -1); strings.HasSuffix(name, "_test.go") && len(found) > 0 {
			packages, benchmarks = append(packages, "./"+path.Dir(name)), benchmarks+len(found)
		}
	}
	if packages = slices.Compact(packages); len(packages) > 0 {
		where := strings.ReplaceAll(strings.Join(packages, " "), "./.", ".")
		if len(packages) > 3 {
			where = "./..."
		}
		each, why := "", "the mean of the Go benchmarks in "+inWords(where)
		if benchmarks > manyBenchmarks {
			each = "-benchtime 100ms "
			why = fmt.Sprintf("the mean of the %d Go benchmarks in %s, each three times for 100 ms; name those that matter with -bench", benchmarks, inWords(where))
		}
		r.Metric = benchmark("Make what the benchmarks measure faster",
			`go test -run '^$' -bench . -count 3 `+each+where+` | awk '/ ns\/op/ {sum += $3; n++} END {printf "METRIC ns=%.1f\n", sum / n}'`,
			why+slowly)
		r.Metric.Direction = lower
	}
	return r
}

// manyBenchmarks is how many Go benchmarks take about half a minute, if each runs three times for a second.
const manyBenchmarks = 8

const numberLast = "; it has to print its number last, or as METRIC name=number"

// slowly warns about the time of a benchmark that nobody has tried yet.
const slowly = "; it may take minutes for each change: pawl validate says how long"

// benchmark returns the metric of a command that may take minutes. Its direction is not known.
func benchmark(goal, command, why string) Metric {
	return Metric{Goal: goal, Command: command, Timeout: "5m", Why: why}
}

// inWords returns the packages as words for a sentence.
func inWords(packages string) string {
	if packages == "." {
		return "the root"
	}
	if others, is := strings.CutSuffix(packages, " ."); is {
		return others + " and the root"
	}
	return packages
}

// npmDefault is a part of the test script that npm puts into every new package.json. That script always fails.
const npmDefault = "no test specified"

func node(t tree) Repository {
	var manifest struct {
		Main                          string            `json:"main"`
		Scripts                       map[string]string `json:"scripts"`
		Dependencies, DevDependencies map[string]string
		Workspaces                    json.RawMessage
	}
	_ = json.Unmarshal([]byte(t.read("package.json")), &manifest) // a broken manifest tells nothing
	manager, setup, above := t.packages()
	run := func(script string) string {
		if strings.HasPrefix(manager, "npm") {
			return "npm run --silent " + script
		}
		return manager + " run " + script
	}
	r := Repository{Scope: t.under("src", "lib", "app"), Protect: append(t.present("package.json", "package-lock.json", "pnpm-lock.yaml", "yarn.lock", "bun.lock", "bun.lockb"),
		t.under("test", "tests", "__tests__", "spec")...)}
	if len(manifest.Dependencies)+len(manifest.DevDependencies) > 0 || len(manifest.Workspaces) > 0 || t.has["pnpm-workspace.yaml"] { // the packages of a workspace have dependencies of their own
		r.Setup, r.outer, r.Keep = setup, above, []string{"**/node_modules/**"}
	}
	if main := path.Clean(cmp.Or(manifest.Main, "index.js")); len(r.Scope) > 0 { // the main file may be beside the folders
		for _, name := range []string{main, main + ".js"} {
			if t.has[name] && !strings.Contains(name, "/") {
				r.Scope = append([]string{"*" + path.Ext(name)}, r.Scope...)
			}
		}
	} else if r.Scope = t.inner("packages", "src", "lib"); len(r.Scope) == 0 {
		r.Scope = []string{"**/*.{js,mjs,cjs,jsx,ts,tsx}"}
	}
	r.Protect = append(r.Protect, t.inner("packages", "test", "tests", "__tests__", "package.json")...)
	if slices.ContainsFunc(t.files, func(name string) bool { return strings.HasPrefix(name, "dist/") }) {
		r.Protect = append(r.Protect, "dist/**") // built files
	}
	tests := len(t.under("test", "tests", "__tests__")) > 0
	for _, infix := range []string{".test.", ".spec."} {
		if slices.ContainsFunc(t.files, func(name string) bool { return strings.Contains(path.Base(name), infix) }) {
			r.Protect, tests = append(r.Protect, "**/*"+infix+"*"), true
		}
	}
	if test, ok := manifest.Scripts["test"]; ok && !strings.Contains(test, npmDefault) {
		r.Test = manager + " test"
	} else if tests {
		r.Test = "node --test"
	}
	var checks []string
	for _, script := range []string{"lint", "typecheck", "check"} {
		if _, ok := manifest.Scripts[script]; ok {
			checks = append(checks, run(script))
		}
	}
	if t.has["tsconfig.json"] {
		checks = append(checks, "npx --no-install tsc --noEmit")
	}
	r.Check = cmp.Or(t.lookingFirst(checks)...)
	for _, script := range []string{"bench", "benchmark", "perf"} {
		if _, ok := manifest.Scripts[script]; ok && r.Metric.Command == "" {
			r.Metric = benchmark("Improve what the benchmark measures", run(script), "the script "+script+" of package.json"+numberLast+slowly)
		}
	}
	return r
}

// managers lists the package managers of Node, by their lockfiles.
var managers = []struct{ file, manager, setup string }{
	{"package-lock.json", "npm", "npm ci --no-audit --no-fund"}, {"npm-shrinkwrap.json", "npm", "npm ci --no-audit --no-fund"},
	{"pnpm-lock.yaml", "pnpm", "pnpm install --frozen-lockfile"}, {"yarn.lock", "yarn", "yarn install --frozen-lockfile"},
	{"bun.lock", "bun", "bun install --frozen-lockfile"}, {"bun.lockb", "bun", "bun install --frozen-lockfile"},
}

// packages returns the manager of a project's Node packages, and the command that installs them. above is true if the
// lockfile is that of the repository around the project.
func (t tree) packages() (manager, setup string, above bool) {
	for outer := &t; outer != nil; outer = outer.outer {
		for _, m := range managers {
			if !outer.has[m.file] {
				continue
			}
			above = outer != &t
			switch {
			case t.program(m.manager):
				return m.manager, m.setup, above
			case t.program("corepack"):
				t.miss(m.manager + " is not on the PATH, so corepack runs it")
				return "corepack " + m.manager, "corepack " + m.setup, above
			case t.program("npm"):
				t.miss(m.manager + " is not on the PATH, so npm installs the packages, without " + m.file)
				return "npm", "npm install --no-audit --no-fund --no-package-lock", above
			}
			return m.manager, m.setup, above
		}
	}
	return "npm", "npm install --no-audit --no-fund --no-package-lock", false
}

// inner returns globs of the named folders and files in the packages of a workspace, for example packages/*/src/**.
func (t tree) inner(workspace string, names ...string) (globs []string) {
	for _, name := range names {
		for _, file := range t.files {
			parts := strings.SplitN(file, "/", 4)
			if len(parts) < 3 || parts[0] != workspace || parts[2] != name {
				continue
			}
			glob := workspace + "/*/" + name
			if len(parts) > 3 {
				glob += "/**"
			}
			globs = append(globs, glob)
			break
		}
	}
	return globs
}

func python(t tree) Repository {
	config := t.read("pyproject.toml") + t.read("setup.cfg") + t.read("requirements.txt") + t.read("requirements-dev.txt") + t.read("tox.ini") + t.read("Pipfile")
	tests := slices.DeleteFunc(slices.Clone(t.files), func(name string) bool {
		base := path.Base(name)
		return !(strings.HasPrefix(base, "test_") && strings.HasSuffix(base, ".py") || strings.HasSuffix(base, "_test.py"))
	})
	asks := func(what string) bool {
		return slices.ContainsFunc(tests, func(name string) bool { return strings.Contains(t.read(name), what) })
	}
	pytest := t.has["pytest.ini"] || strings.Contains(config, "pytest") || t.has["conftest.py"] || t.has["tests/conftest.py"] || asks("import pytest")
	run, setup := t.either("python", "python3"), ""
	var keep []string
	brought := true // setup installs what the tests need
	requirements := t.present("requirements.txt", "requirements-dev.txt", "requirements-test.txt", "dev-requirements.txt", "test-requirements.txt")
	switch {
	case t.has["uv.lock"] && t.program("uv"):
		run, setup, keep = "uv run python", "uv sync --quiet", []string{".venv/**"}
	case t.has["poetry.lock"] && t.program("poetry"):
		run, setup = "poetry run python", "poetry install --quiet"
	case t.has["pdm.lock"] && t.program("pdm"):
		run, setup, keep = "pdm run python", "pdm sync --quiet", []string{".venv/**"}
	case t.has["Pipfile.lock"] && t.program("pipenv"):
		run, setup = "pipenv run python", "pipenv sync --dev"
	case len(requirements) > 0:
		setup, keep = run+" -m venv .venv && .venv/bin/python -m pip install --quiet -r "+strings.Join(requirements, " -r "), []string{".venv/**"}
		run = ".venv/bin/python"
		if pytest && !strings.Contains(config+t.read("requirements-test.txt")+t.read("dev-requirements.txt")+t.read("test-requirements.txt"), "pytest") {
			setup += " pytest"
		}
	default:
		brought = false
		for _, lock := range []struct{ file, manager string }{{"uv.lock", "uv"}, {"poetry.lock", "poetry"}, {"pdm.lock", "pdm"}, {"Pipfile.lock", "pipenv"}} {
			if t.has[lock.file] {
				t.miss(lock.manager + " is not on the PATH, so nothing installs what " + lock.file + " lists")
			}
		}
	}
	r := Repository{Setup: setup, Keep: keep, Protect: append(t.present("pyproject.toml", "setup.py", "setup.cfg", "uv.lock", "poetry.lock", "pdm.lock", "Pipfile.lock", "conftest.py"), t.under("test", "tests")...)}
	r.Protect = append(r.Protect, requirements...)
	for glob, ends := range map[string]string{"**/test_*.py": ".py", "**/*_test.py": "_test.py"} {
		if slices.ContainsFunc(tests, func(name string) bool { return strings.HasSuffix(name, ends) }) {
			r.Protect = append(r.Protect, glob)
		}
	}
	installed := brought || t.program(run+" -m pytest")
	switch {
	case pytest && !installed && asks("unittest") && !asks("import pytest"):
		t.miss(run + " has no pytest, so the tests are those that unittest finds")
		r.Test = t.unittest(run, tests)
	case pytest && !installed && t.has["tox.ini"] && t.program("tox"):
		t.miss(run + " has no pytest, so tox runs the tests")
		r.Test, r.Keep = "tox -q -e py", append(r.Keep, ".tox/**")
	case pytest && !installed && t.program("pytest"):
		t.miss(run + " has no pytest, so the tests are run by the pytest that is on the PATH, which may lack the libraries of " + run)
		r.Test = "pytest -q"
	case pytest && !installed:
		t.miss(run + " has no pytest, which the tests need: pawl validate fails until it is installed")
		r.Test = run + " -m pytest -q"
	case pytest:
		r.Test = run + " -m pytest -q"
	case len(tests) > 0:
		r.Test = t.unittest(run, tests)
	}
	if r.Scope = t.under("src"); len(r.Scope) == 0 {
		for _, name := range t.files {
			dir, file, nested := strings.Cut(name, "/")
			if nested && file == "__init__.py" && dir != "tests" && dir != "test" {
				r.Scope = append(r.Scope, dir+"/**")
			}
		}
	}
	if len(r.Scope) == 0 {
		r.Scope = []string{"**/*.py"}
	}
	switch {
	case (t.has["ruff.toml"] || strings.Contains(config, "ruff")) && strings.HasSuffix(run, " run python"):
		r.Check = strings.TrimSuffix(run, "python") + "ruff check ."
	case (t.has["ruff.toml"] || strings.Contains(config, "ruff")) && t.program("ruff"):
		r.Check = "ruff check ."
	default:
		r.Check = run + " -m compileall -q " + t.sources(r.Scope)
	}
	return r
}

// unittest returns the command that runs the tests which Python's own runner finds: those in the tests folder if
// there is one, else those beside the code, by whichever kind of name most tests have.
func (t tree) unittest(run string, tests []string) string {
	if len(t.under("src")) > 0 {
		run = "PYTHONPATH=src " + run
	}
	for _, dir := range []string{"tests", "test"} {
		if t.has[dir+"/__init__.py"] {
			return run + " -m unittest discover -s " + dir + " -t ."
		}
		if len(t.under(dir)) > 0 {
			return run + " -m unittest discover -s " + dir
		}
	}
	beside := slices.DeleteFunc(slices.Clone(tests), func(name string) bool { return !strings.HasSuffix(name, "_test.py") })
	if 2*len(beside) <= len(tests) {
		return run + " -m unittest discover"
	}
	in := slices.MinFunc(beside, func(a, b string) int { return strings.Count(a, "/") - strings.Count(b, "/") })
	start := path.Dir(in)
	top := start
	for t.has[path.Join(top, "__init__.py")] && top != "." {
		top = path.Dir(top)
	}
	return run + " -m unittest discover -s " + start + " -t " + top + " -p '*_test.py'"
}

// sources returns the folders of a scope, "." if the scope has other globs too.
func (t tree) sources(scope []string) string {
	var dirs []string
	for _, glob := range scope {
		dir, whole := strings.CutSuffix(glob, "/**")
		if !whole || !folder.MatchString(dir) {
			return "."
		}
		dirs = append(dirs, dir)
	}
	return strings.Join(dirs, " ")
}

func rust(t tree) Repository {
	// All failing tests have to be known: tests that failed before the loop do not count.
	r := Repository{Test: "cargo test --no-fail-fast", Check: "cargo check --quiet", Keep: []string{"target/**"},
		Scope: append(t.under("src"), t.inner("crates", "src")...), Protect: append(t.present("Cargo.toml", "Cargo.lock"), t.under("tests", "benches")...)}
	if len(r.Scope) == 0 {
		r.Scope = []string{"**/*.rs"}
	}
	r.Protect = append(r.Protect, t.inner("crates", "tests", "benches", "Cargo.toml")...)
	if t.has["Cargo.lock"] {
		r.Setup = "cargo fetch --locked --quiet"
	}
	return r
}

func ruby(t tree) Repository {
	r := Repository{Setup: "bundle install --quiet", Scope: t.under("lib", "app"), Protect: append(t.present("Gemfile", "Gemfile.lock"), t.under("spec", "test")...)}
	switch {
	case len(t.under("spec")) > 0:
		r.Test = "bundle exec rspec"
	case t.has["Rakefile"]:
		r.Test = "bundle exec rake test"
	}
	return r
}

var makeTarget = lazyregexp.New(`(?m)^([A-Za-z][\w-]*)[ \t]*:([^=]|$)`)

// makes returns the name and the text of the file that make reads.
func (t tree) makes() (name, text string) {
	for _, name := range []string{"GNUmakefile", "makefile", "Makefile"} {
		if t.has[name] {
			return name, t.read(name)
		}
	}
	return "", ""
}

// makefile returns what the targets with the usual names offer.
func (t tree) makefile() (r Repository) {
	targets := map[string]bool{}
	name, text := t.makes()
	if name != "" {
		r.Protect = []string{name} // otherwise a loop could change it to get a better number
	}
	for _, m := range makeTarget.FindAllStringSubmatch(text, -1) {
		targets[m[1]] = true
	}
	for _, name := range []string{"test", "check"} {
		if targets[name] && r.Test == "" {
			r.Test = "make " + name
		}
	}
	for _, name := range []string{"lint", "vet"} {
		if !targets[name] || r.Check != "" {
			continue
		}
		// A loop can work without a check, but not with a check that always fails.
		if lacks := t.lacks("make " + name); lacks != "" {
			t.miss(absent(lacks) + ", so the check is not make " + name)
			continue
		}
		r.Check = "make " + name
	}
	for _, name := range []string{"bench", "benchmark", "measure"} {
		if targets[name] && r.Metric.Command == "" {
			r.Metric = benchmark("Improve what the benchmark measures", "make --silent "+name, "the target "+name+" of the Makefile"+numberLast+slowly)
		}
	}
	return r
}

var measures = lazyregexp.New(`^(?:(?:scripts?|bin|tools|bench|benchmarks)/)?(?:bench|benchmark|measure|perf|score)[\w-]*\.(sh|py|js|rb)$`)

// prepares is in the name of a script that only makes ready for one that measures.
var prepares = lazyregexp.New(`prereq|prepare|setup|install|download|fetch|plot|clean`)

var tests = lazyregexp.New(`^(?:(?:scripts?|bin|tools|tests?)/)?(?:tests?|check|run[_-]tests?)\.(sh|py|js|rb)$`)

// runs returns the command, with a space, that runs a script with this extension.
func (t tree) runs(extension string) string {
	return map[string]string{"sh": "sh ", "py": t.either("python", "python3") + " ", "js": "node ", "rb": "ruby "}[extension]
}

// printedMetric matches the place in a script where it prints a named metric.
var printedMetric = lazyregexp.New(`METRIC [A-Za-z_][\w./-]*=`)

// testScript returns the command for a script whose name says that it runs tests, "" if there is none.
func (t tree) testScript() string {
	for _, name := range t.files {
		if m := tests.FindStringSubmatch(name); m != nil {
			return t.runs(m[1]) + name
		}
	}
	return ""
}

// scripts returns a metric for each script whose name says that it measures something.
func (t tree) scripts() (found []Metric) {
	for _, name := range t.files {
		if m := measures.FindStringSubmatch(name); m != nil && !prepares.MatchString(name) {
			metric := benchmark("Improve what "+name+" measures", t.runs(m[1])+name, "a script in this repository"+numberLast)
			if printed := printedMetric.FindAllString(t.read(name), -1); len(printed) > 0 {
				metric.Direction = Direction(strings.Join(printed, "1\n") + "1")
			}
			found = append(found, metric)
		}
	}
	return found
}
