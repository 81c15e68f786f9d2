package draft

import (
	"cmp"
	"encoding/json"
	"path"
	"regexp"
	"slices"
	"strings"
)

// language is a kind of source that a repository can have.
type language struct {
	name       string
	extensions []string
	manifests  []string // files of which one says that the repository is of this language
	look       func(tree) Repository
}

// languages is all that is known. A language that is told by a line has fixed commands; one that
// has several ways of doing things has a function.
var languages = []language{
	{"go", []string{".go"}, []string{"go.mod"}, golang},
	{"node", []string{".js", ".mjs", ".cjs", ".jsx", ".ts", ".tsx"}, []string{"package.json"}, node},
	{"python", []string{".py"}, []string{"pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "Pipfile"}, python},
	{"rust", []string{".rs"}, []string{"Cargo.toml"}, rust},
	{"java", []string{".java", ".kt"}, []string{"pom.xml"}, java("mvnw", "mvn", " -q -B test", " -q -B compile", "pom.xml")},
	{"java", []string{".java", ".kt"}, []string{"build.gradle", "build.gradle.kts"}, java("gradlew", "gradle", " -q test", " -q classes", "build.gradle*")},
	{"ruby", []string{".rb"}, []string{"Gemfile"}, ruby},
	{"php", []string{".php"}, []string{"composer.json"}, fixed("vendor/bin/phpunit", "", "src/**", "tests/**", "composer.json")},
	{"elixir", []string{".ex", ".exs"}, []string{"mix.exs"}, fixed("mix test", "mix compile --warnings-as-errors", "lib/**", "test/**", "mix.exs")},
	{"dotnet", []string{".cs", ".fs"}, []string{"global.json", "Directory.Build.props"}, fixed("dotnet test", "dotnet build", "src/**", "tests/**")},
	{"c", []string{".c", ".h", ".cc", ".cpp", ".cxx", ".hpp"}, nil, c},
	{"shell", []string{".sh"}, nil, fixed("", "", "")},
}

// fixed is a language in which everything has its place.
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

// java is what Maven and Gradle build: by the wrapper where the repository brings it, else by the
// program, and in the folders of each module.
func java(wrapper, program, test, check, manifest string) func(tree) Repository {
	return func(t tree) Repository {
		run := program
		if t.has[wrapper] {
			run = "./" + wrapper
		}
		r := Repository{Test: run + test, Check: run + check, Protect: []string{manifest}}
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

func c(t tree) Repository {
	r := Repository{Protect: append(t.present("CMakeLists.txt", "meson.build", "configure.ac"), t.under("test", "tests")...)}
	if r.Scope = t.under("src", "lib"); len(r.Scope) > 0 {
		r.Scope = append(r.Scope, t.under("include")...)
	} else {
		r.Scope = []string{"**/*.{c,h,cc,cpp,cxx,hpp}"}
	}
	switch {
	case t.has["CMakeLists.txt"]:
		r.Test = "cmake -S . -B build >/dev/null && cmake --build build >/dev/null && ctest --test-dir build --output-on-failure"
	case t.has["meson.build"]:
		r.Test = "meson setup build >/dev/null && meson test -C build"
	}
	return r
}

var goBenchmark = regexp.MustCompile(`(?m)^func (Benchmark\w+)\(`)

func golang(t tree) Repository {
	r := Repository{Test: "go test ./...", Check: "go vet ./...", Scope: []string{"**/*.go"}, Protect: append(t.present("go.mod", "go.sum"), "**/*_test.go")}
	if slices.ContainsFunc(t.files, func(name string) bool { return strings.HasPrefix(name, ".golangci.") }) {
		r.Check = "golangci-lint run"
	}
	var packages []string
	for _, name := range t.files {
		if strings.HasSuffix(name, "_test.go") && goBenchmark.MatchString(t.read(name)) {
			packages = append(packages, "./"+path.Dir(name))
		}
	}
	if packages = slices.Compact(packages); len(packages) > 0 {
		where := strings.ReplaceAll(strings.Join(packages, " "), "./.", ".")
		if len(packages) > 3 {
			where = "./..."
		}
		r.Metric = benchmark("Make what the benchmarks measure faster",
			`go test -run '^$' -bench . -count 3 `+where+` | awk '/ ns\/op/ {sum += $3; n++} END {printf "METRIC ns=%.1f\n", sum / n}'`,
			"the mean of the Go benchmarks in "+inWords(where))
	}
	return r
}

const numberLast = "; it has to print its number last, or as METRIC name=number"

// benchmark is the metric of a command that may take minutes and whose number should get smaller.
func benchmark(goal, command, why string) Metric {
	return Metric{Goal: goal, Command: command, Direction: "lower", Timeout: "5m", Why: why}
}

// inWords names packages in a sentence.
func inWords(packages string) string {
	if packages == "." {
		return "the root"
	}
	return packages
}

// npmDefault is the test script that npm puts into every package.json: it fails.
const npmDefault = "no test specified"

func node(t tree) Repository {
	var manifest struct {
		Scripts                       map[string]string `json:"scripts"`
		Dependencies, DevDependencies map[string]string
	}
	_ = json.Unmarshal([]byte(t.read("package.json")), &manifest) // what it can't tell it doesn't
	manager, setup := "npm", "npm install --no-audit --no-fund"
	for _, lock := range []struct{ file, manager, setup string }{
		{"package-lock.json", "npm", "npm ci --no-audit --no-fund"}, {"pnpm-lock.yaml", "pnpm", "pnpm install --frozen-lockfile"},
		{"yarn.lock", "yarn", "yarn install --frozen-lockfile"}, {"bun.lock", "bun", "bun install --frozen-lockfile"}, {"bun.lockb", "bun", "bun install --frozen-lockfile"},
	} {
		if t.has[lock.file] {
			manager, setup = lock.manager, lock.setup
		}
	}
	run := func(script string) string {
		if manager == "npm" {
			return "npm run --silent " + script
		}
		return manager + " run " + script
	}
	r := Repository{Scope: t.under("src", "lib", "app"), Protect: append(t.present("package.json", "package-lock.json", "pnpm-lock.yaml", "yarn.lock", "bun.lock", "bun.lockb"),
		t.under("test", "tests", "__tests__", "spec")...)}
	if len(manifest.Dependencies)+len(manifest.DevDependencies) > 0 {
		r.Setup = setup
	}
	if len(r.Scope) == 0 {
		r.Scope = []string{"**/*.{js,mjs,cjs,jsx,ts,tsx}"}
	}
	for _, infix := range []string{".test.", ".spec."} {
		if slices.ContainsFunc(t.files, func(name string) bool { return strings.Contains(path.Base(name), infix) }) {
			r.Protect = append(r.Protect, "**/*"+infix+"*")
		}
	}
	if test, ok := manifest.Scripts["test"]; ok && !strings.Contains(test, npmDefault) {
		r.Test = manager + " test"
	}
	for _, script := range []string{"lint", "typecheck", "check"} {
		if _, ok := manifest.Scripts[script]; ok {
			r.Check = cmp.Or(r.Check, run(script))
		}
	}
	if t.has["tsconfig.json"] {
		r.Check = cmp.Or(r.Check, "npx --no-install tsc --noEmit")
	}
	for _, script := range []string{"bench", "benchmark", "perf"} {
		if _, ok := manifest.Scripts[script]; ok && r.Metric.Command == "" {
			r.Metric = benchmark("Make what the benchmark measures faster", run(script), "the script "+script+" of package.json"+numberLast)
		}
	}
	return r
}

func python(t tree) Repository {
	config := t.read("pyproject.toml") + t.read("setup.cfg") + t.read("requirements.txt") + t.read("requirements-dev.txt") + t.read("tox.ini") + t.read("Pipfile")
	prefix, setup := "", ""
	switch {
	case t.has["uv.lock"]:
		prefix, setup = "uv run ", "uv sync --quiet"
	case t.has["poetry.lock"]:
		prefix, setup = "poetry run ", "poetry install --quiet"
	}
	r := Repository{Setup: setup, Protect: append(t.present("pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "uv.lock", "poetry.lock", "conftest.py"), t.under("test", "tests")...)}
	tests := slices.ContainsFunc(t.files, func(name string) bool {
		base := path.Base(name)
		return strings.HasPrefix(base, "test_") && strings.HasSuffix(base, ".py") || strings.HasSuffix(base, "_test.py")
	})
	if tests {
		r.Protect = append(r.Protect, "**/test_*.py")
	}
	switch {
	case t.has["pytest.ini"], strings.Contains(config, "pytest"), t.has["conftest.py"], t.has["tests/conftest.py"]:
		r.Test = prefix + "python -m pytest -q"
	case tests:
		r.Test = prefix + "python -m unittest discover"
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
	case t.has["ruff.toml"], strings.Contains(config, "ruff"):
		r.Check = prefix + "ruff check ."
	default:
		r.Check = prefix + "python -m compileall -q ."
	}
	return r
}

func rust(t tree) Repository {
	return Repository{Test: "cargo test --quiet", Check: "cargo check --quiet", Scope: append(t.under("src"), t.under("crates")...),
		Protect: append(t.present("Cargo.toml", "Cargo.lock"), t.under("tests", "benches")...)}
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

var makeTarget = regexp.MustCompile(`(?m)^([A-Za-z][\w-]*)[ \t]*:([^=]|$)`)

// makefile reads the targets that have the usual names.
func (t tree) makefile() (r Repository) {
	targets := map[string]bool{}
	for _, name := range []string{"GNUmakefile", "makefile", "Makefile"} {
		if t.has[name] {
			for _, m := range makeTarget.FindAllStringSubmatch(t.read(name), -1) {
				targets[m[1]] = true
			}
			r.Protect = []string{name} // or a change of it would be a way to a better number
			break                      // as make does
		}
	}
	if targets["test"] {
		r.Test = "make test"
	}
	for _, name := range []string{"lint", "vet"} {
		if targets[name] && r.Check == "" {
			r.Check = "make " + name
		}
	}
	for _, name := range []string{"bench", "benchmark", "measure"} {
		if targets[name] && r.Metric.Command == "" {
			r.Metric = benchmark("Make what the benchmark measures better", "make --silent "+name, "the target "+name+" of the Makefile"+numberLast)
		}
	}
	return r
}

var measures = regexp.MustCompile(`^(?:(?:scripts?|bin|tools|bench|benchmarks)/)?(?:bench|benchmark|measure|perf|score)[\w-]*\.(sh|py|js|rb)$`)

var tests = regexp.MustCompile(`^(?:(?:scripts?|bin|tools|tests?)/)?(?:tests?|check|run[_-]tests?)\.(sh|py|js|rb)$`)

// runs is how a script with an extension is run.
var runs = map[string]string{"sh": "sh ", "py": "python ", "js": "node ", "rb": "ruby "}

// testScript is a program in the repository that is called like something that tests.
func (t tree) testScript() string {
	for _, name := range t.files {
		if m := tests.FindStringSubmatch(name); m != nil {
			return runs[m[1]] + name
		}
	}
	return ""
}

// scripts are programs in the repository that are called like something that measures.
func (t tree) scripts() (found []Metric) {
	for _, name := range t.files {
		if m := measures.FindStringSubmatch(name); m != nil {
			found = append(found, benchmark("Make what "+name+" measures better", runs[m[1]]+name, "a script that is here"+numberLast))
		}
	}
	return found
}
