package scaffold

import (
	"path"
	"slices"
	"strings"

	"pawl/internal/lib/list"
)

// language is one programming language and how to describe a repository that has it.
type language struct {
	name       string
	extensions []string
	manifests  []string // any file that matches one of these globs says that the repository has this language
	look       func(tree) Repository
	alone      bool // look needs no manifest
}

// manifest reports whether a file at the root of a project says that the project has this language.
func (l language) manifest(name string) bool {
	return slices.ContainsFunc(l.manifests, func(glob string) bool { ok, _ := path.Match(glob, name); return ok })
}

// languages is the table of the languages that draft knows. A language that is always built and tested in the same
// way has fixed commands; the others have functions. Maven and Gradle have a row each.
var languages = []language{
	{"go", []string{".go"}, []string{"go.mod"}, golang, false},
	{"node", []string{".js", ".mjs", ".cjs", ".jsx", ".ts", ".tsx"}, []string{"package.json"}, node, true},
	{"python", []string{".py"}, []string{"pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "Pipfile"}, python, true},
	{"rust", []string{".rs"}, []string{"Cargo.toml"}, rust, false},
	{"java", []string{".java", ".kt"}, []string{"pom.xml"}, java("mvnw", "mvn", " -q -B -fae test", " -q -B compile", "pom.xml", "**/target/**"), false},
	{"java", []string{".java", ".kt"}, []string{"build.gradle", "build.gradle.kts"}, java("gradlew", "gradle", " -q test --continue", " -q classes", "build.gradle*", "**/build/**", ".gradle/**"), false},
	{"ruby", []string{".rb"}, []string{"Gemfile"}, ruby, false},
	{"php", []string{".php"}, []string{"composer.json"}, php, false},
	{"elixir", []string{".ex", ".exs"}, []string{"mix.exs"}, elixir, false},
	{"dotnet", []string{".cs", ".fs"}, []string{"global.json", "Directory.Build.props"}, dotnet, false},
	{"perl", []string{".pl", ".pm", ".xs"}, []string{"Makefile.PL", "Build.PL", "cpanfile", "dist.ini"}, perl, true},
	{"lua", []string{".lua"}, []string{".busted"}, lua, true},
	{"haskell", []string{".hs", ".lhs"}, []string{"*.cabal", "cabal.project", "stack.yaml"}, haskell, false},
	{"ocaml", []string{".ml", ".mli"}, []string{"dune-project"}, ocaml, false},
	{"c", []string{".c", ".h", ".cc", ".cpp", ".cxx", ".hpp"}, nil, c, true},
	{"shell", []string{".sh", ".bash", ".bats"}, nil, shell, true},
	// pawl knows these only by name.
	{"clojure", []string{".clj", ".cljc", ".cljs"}, nil, nil, false},
	{"crystal", []string{".cr"}, nil, nil, false},
	{"dart", []string{".dart"}, nil, nil, false},
	{"emacs lisp", []string{".el"}, nil, nil, false},
	{"erlang", []string{".erl", ".hrl"}, nil, nil, false},
	{"fortran", []string{".f", ".f90", ".f95"}, nil, nil, false},
	{"groovy", []string{".groovy"}, nil, nil, false},
	{"julia", []string{".jl"}, nil, nil, false},
	{"lisp", []string{".lisp", ".cl", ".scm", ".rkt"}, nil, nil, false},
	{"nim", []string{".nim"}, nil, nil, false},
	{"pascal", []string{".pas", ".pp"}, nil, nil, false},
	{"powershell", []string{".ps1", ".psm1"}, nil, nil, false},
	{"r", []string{".r", ".R"}, nil, nil, false},
	{"scala", []string{".scala", ".sc"}, nil, nil, false},
	{"solidity", []string{".sol"}, nil, nil, false},
	{"swift", []string{".swift"}, nil, nil, false},
	{"tcl", []string{".tcl"}, nil, nil, false},
	{"verilog", []string{".v", ".sv"}, nil, nil, false},
	{"vim script", []string{".vim"}, nil, nil, false},
	{"zig", []string{".zig"}, nil, nil, false},
}

// bare describes a repository that has files of the language but no manifest. Some languages work without one. For the
// others only the place of the code is known.
func (l language) bare(t tree) Repository {
	if l.alone || l.name == "dotnet" && slices.ContainsFunc(t.files, func(name string) bool { return strings.HasSuffix(name, "proj") }) {
		return l.look(t)
	}
	if l.look == nil {
		t.miss("pawl does not know how to build or test " + l.name)
	} else {
		t.miss("there is no " + strings.Join(l.manifests, " or ") + ", so pawl does not know how to build or test " + l.name)
	}
	r := Repository{Scope: []string{"**/*.{" + strings.ReplaceAll(strings.Join(l.extensions, ","), ".", "") + "}"}}
	if len(l.extensions) == 1 {
		r.Scope = []string{"**/*" + l.extensions[0]}
	}
	if l.name == "go" {
		r.Protect = []string{"**/*_test.go"}
	}
	return r
}

// or returns the globs, or the alternatives if there are none.
func or(globs []string, alternatives ...string) []string {
	if len(globs) > 0 {
		return globs
	}
	return alternatives
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
			if module, _, ok := strings.Cut("/"+name, "/src/main/"); ok {
				r.Scope = append(r.Scope, strings.TrimPrefix(module+"/src/main/**", "/"))
			} else if module, _, ok := strings.Cut("/"+name, "/src/test/"); ok {
				r.Protect = append(r.Protect, strings.TrimPrefix(module+"/src/test/**", "/"))
			}
		}
		r.Scope = slices.Compact(r.Scope)
		return r
	}
}

// php, elixir and dotnet always use the same folders. Their setup fetches what the lockfile lists.
func php(t tree) Repository {
	return Repository{
		Setup: "composer install --quiet --no-interaction", Test: "vendor/bin/phpunit", Scope: t.under("src"),
		Protect: append(t.under("tests"), "composer.json", "composer.lock"), Keep: []string{"vendor/**"},
	}
}

func elixir(t tree) Repository {
	r := Repository{
		Test: "mix test", Check: "mix compile --warnings-as-errors",
		Scope: t.under("lib"), Protect: append(t.under("test"), "mix.exs"), Keep: []string{"_build/**"},
	}
	if t.has["mix.lock"] {
		r.Setup, r.Protect, r.Keep = "mix deps.get", append(r.Protect, "mix.lock"), append(r.Keep, "deps/**")
	}
	return r
}

func dotnet(t tree) Repository {
	r := Repository{Test: t.dotnetTest(), Check: "dotnet build", Scope: t.under("src"), Protect: t.under("tests")}
	r.Keep = []string{"**/bin/**", "**/obj/**"}
	if t.has["packages.lock.json"] {
		r.Setup = "dotnet restore --locked-mode"
	}
	return r
}

// dotnetTest returns the command that runs the tests. VSTest names those that pass only if it is told to; its option is
// none of the other platform for tests.
func (t tree) dotnetTest() string {
	plain, vstest := "dotnet test", false
	for _, name := range t.files {
		ext := path.Ext(name)
		if !strings.HasSuffix(ext, "proj") && ext != ".props" && path.Base(name) != "global.json" {
			continue
		}
		text := t.read(name)
		if strings.Contains(text, "TestingPlatform") || strings.Contains(text, "Testing.Platform") {
			return plain
		}
		vstest = vstest || strings.Contains(text, "Microsoft.NET.Test.Sdk")
	}
	if vstest {
		return plain + ` --logger "console;verbosity=normal"`
	}
	return plain
}

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
	var modules []string // nested modules: go commands at the root do not see them
	for _, name := range t.files {
		if dir, base := path.Split(name); base == "go.mod" && dir != "" && t.has["go.mod"] && !strings.ContainsAny(dir, `*?[]{}\`) {
			modules = append(modules, dir)
			r.Protect = append(r.Protect, dir+"**")
		}
	}
	if benchmarks := t.goBenchmarks(modules); benchmarks.count > 0 {
		r.Metric = benchmarks.metric()
	}
	return r
}

const numberLast = "; it has to print its number last, or as METRIC name=number"

// benchmark returns the metric of a command that may take minutes. Its direction is not known.
func benchmark(goal, command, reason string) Metric {
	return Metric{Goal: goal, Command: command, Timeout: "5m", Why: reason}
}

func rust(t tree) Repository {
	// All failing tests have to be known: tests that failed before the loop do not count.
	r := Repository{Test: "cargo test --no-fail-fast", Check: "cargo check --quiet", Keep: []string{"target/**"},
		Scope:   or(append(t.under("src"), t.inner("crates", "src")...), "**/*.rs"),
		Protect: append(t.present("Cargo.toml", "Cargo.lock"), t.under("tests", "benches")...)}
	r.Protect = append(r.Protect, t.inner("crates", "tests", "benches", "Cargo.toml")...)
	if len(t.under("benches")) > 0 {
		r.Metric.Why = "cargo bench prints no single number, so this counts bytes; replace this with what you want to improve, such as a script that prints METRIC ns=… from it"
	}
	if t.has["Cargo.lock"] {
		r.Setup = "cargo fetch --locked --quiet"
	}
	return r
}

func perl(t tree) Repository {
	r := Repository{Scope: or(t.under("lib"), "**/*.{pl,pm}")}
	r.Protect = append(t.present("Makefile.PL", "Build.PL", "cpanfile", "dist.ini"), t.under("t", "xt")...)
	compiled := slices.ContainsFunc(t.files, func(name string) bool { return strings.HasSuffix(name, ".xs") })
	switch {
	case len(t.under("t")) == 0:
	case compiled && t.has["Makefile.PL"]:
		r.Test = "perl Makefile.PL >/dev/null && make >/dev/null && prove -b -r t"
	case compiled && t.has["Build.PL"]:
		r.Test = "perl Build.PL >/dev/null && ./Build >/dev/null && prove -b -r t"
	default:
		r.Test = "prove -l -r t"
	}
	return r
}

func lua(t tree) Repository {
	r := Repository{Scope: or(t.under("lua", "src", "lib"), "**/*.lua")}
	r.Protect = append(t.present(".busted"), t.under("spec", "test", "tests")...)
	if t.has[".busted"] || len(t.under("spec")) > 0 {
		r.Test = "busted"
	}
	return r
}

func haskell(t tree) Repository {
	r := Repository{
		Test: "cabal test", Scope: or(t.under("src", "lib", "app"), "**/*.{hs,lhs}"), Keep: []string{"dist-newstyle/**"},
		Protect: append(t.present("cabal.project", "stack.yaml", "stack.yaml.lock"), t.under("test", "tests")...),
	}
	if t.has["stack.yaml"] && !t.program("cabal") {
		r.Test, r.Keep = "stack test", []string{".stack-work/**"}
	}
	r.Protect = append(r.Protect, list.Filter(t.files, func(name string) bool { return !strings.Contains(name, "/") && strings.HasSuffix(name, ".cabal") })...)
	return r
}

func ocaml(t tree) Repository {
	return Repository{
		Test: "dune test", Check: "dune build", Scope: or(t.under("src", "lib", "bin"), "**/*.{ml,mli}"),
		Protect: append(t.present("dune-project"), t.under("test", "tests")...), Keep: []string{"_build/**"},
	}
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
