package evaluator

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strings"

	"pawl/internal/lib/shell"
	"pawl/internal/spec"

	"github.com/bmatcuk/doublestar/v4"

	"pawl/internal/lib/lazyregexp"
)

// Group is a set of files of the repository, given by a glob, that belong to the evaluator.
type Group struct {
	Glob  string
	There bool // matching files of the base commit are sealed
	New   bool // no matching file may be added
	// Lines are directives, separated by spaces. No change to a matching file may add, remove or change one of them.
	Lines string
}

// evaluator describes a program that judges: which files it reads besides its arguments. A glob holds in the folder
// in which the program runs and in all folders below. A glob that begins with a slash holds in that folder alone,
// because a folder of that name further down may be source.
type evaluator struct {
	// tests are the files that it finds by itself. In a guard or test command the existing ones are sealed; new ones
	// may be added. If an argument names a file or folder, only the tests there are sealed.
	tests string
	// subs are the subcommands that run tests; "" means every call.
	subs string
	// settings tell it what to run and how. Existing ones are sealed, and no new ones may be added.
	settings string
	// absent tells it too, but a normal change touches these files, or a build makes them. So only new ones are
	// sealed.
	absent string
	// lines are directives that are sealed in files which a normal change may touch otherwise:
	// file:directive,directive.
	lines string
	// lists makes it print the files that contain its tests, without running them: options to add, or a subcommand in
	// place of the one that runs tests.
	lists string
}

// Names that mark tests in most projects of a language.
const (
	pythonTests = "test_*.py *_test.py"
	jsTests     = "*.test.* *.spec.* {test,test-*,*-test,*_test,*.test-d}.{js,cjs,mjs,jsx,ts,cts,mts,tsx} __tests__/** /test/** /tests/**"
	someTests   = jsTests + " " + pythonTests + " *_test.go test*.c *_test.c *_test.cc *_test.cpp /spec/** /t/** src/test/**"
	cTests      = "/test/** /tests/** test*.{c,cc,cpp,cxx} *_test.{c,cc,cpp,cxx}"
	automake    = " Makefile.am Makefile.in configure configure.ac configure.in" // automake makes the Makefile from them

	// Python imports these before anything else, from every folder of PYTHONPATH.
	pythonSettings = "{site,user}customize.py {site,user}customize/**"
	pythonAbsent   = ".venv .venv/** pyvenv.cfg"
	// A Python distribution beside the tests can bring plugins.
	pytestSettings = "conftest.py pytest.ini .pytest.ini pytest.toml .pytest.toml tox.ini setup.cfg pyproject.toml *.{dist,egg}-info/** " + pythonSettings
	npmSettings    = ".npmrc .yarnrc .yarnrc.yml .yarn/** .pnp.* .pnpmfile.{cjs,mjs} pnpm-workspace.yaml bunfig.toml " + jsSettings
	jsSettings     = "jest.config.* vitest.config.* vitest.workspace.* vite.config.* .mocharc.* ava.config.* babel.config.* .babelrc* /.swcrc /{ts,js}config.json /tsconfig.*.json"
	npmAbsent      = "node_modules node_modules/**"
	mocks          = " __mocks__/**" // jest and vitest use these in place of packages
	dotenv         = ".env{,.test,.development,.production}{,.local}"
)

// evaluators is the table of programs that judge, by name. It is the only list of the files that an agent could
// change to be judged differently. It does not cover dependencies that a manifest names.
var evaluators = map[string]evaluator{
	"go": {tests: "*_test.go testdata/**", subs: "test", absent: "go.mod go.work vendor vendor/modules.txt",
		// These directives leave packages out of ./..., replace the libraries of a test, and define what go tool
		// runs.
		lines: "go.mod:ignore,replace,tool go.work:replace,use"},
	"cargo": {tests: "tests/** benches/**", subs: "test t nextest bench",
		settings: "Cargo.toml .cargo .cargo/** build.rs rust-toolchain rust-toolchain.toml .config/nextest.toml {,.}clippy.toml {,.}rustfmt.toml"},
	"pytest":  {tests: pythonTests, settings: pytestSettings, absent: pythonAbsent, lists: "--collect-only -q"},
	"py.test": {tests: pythonTests, settings: pytestSettings, absent: pythonAbsent, lists: "--collect-only -q"},
	"python":  {settings: pythonSettings, absent: pythonAbsent}, "pypy": {settings: pythonSettings, absent: pythonAbsent},
	"uv":     {settings: "uv.toml .python-version " + pythonSettings, absent: pythonAbsent},
	"poetry": {settings: "poetry.toml " + pythonSettings, absent: pythonAbsent}, "pdm": {settings: "pdm.toml .pdm-python " + pythonSettings, absent: pythonAbsent},
	"pipenv": {settings: "Pipfile " + dotenv + " " + pythonSettings, absent: pythonAbsent}, "hatch": {settings: "hatch.toml " + pythonSettings, absent: pythonAbsent},
	"unittest": {tests: "test*.py"}, "nose2": {tests: "test*.py", settings: "unittest.cfg nose2.cfg"},
	"coverage": {settings: ".coveragerc tox.ini setup.cfg pyproject.toml"},
	"tox":      {tests: pythonTests, settings: "tox.toml toxfile.py " + pytestSettings}, "nox": {tests: pythonTests, settings: pytestSettings},
	"npm":    {tests: jsTests, subs: "test t tst run run-script", settings: npmSettings, absent: npmAbsent},
	"pnpm":   {tests: jsTests, subs: "test t run run-script", settings: npmSettings, absent: npmAbsent},
	"yarn":   {tests: jsTests, settings: npmSettings, absent: npmAbsent},
	"bun":    {tests: jsTests, subs: "test run", settings: npmSettings + " " + dotenv, absent: npmAbsent},
	"lerna":  {tests: jsTests, settings: "lerna.json " + npmSettings, absent: npmAbsent},
	"turbo":  {tests: jsTests, settings: "turbo.json " + npmSettings, absent: npmAbsent},
	"nx":     {tests: jsTests, settings: "nx.json **/project.json " + npmSettings, absent: npmAbsent},
	"npx":    {settings: npmSettings, absent: npmAbsent},
	"jest":   {tests: jsTests, settings: npmSettings + " package.json", absent: npmAbsent + mocks, lists: "--listTests"},
	"vitest": {tests: jsTests, settings: npmSettings, absent: npmAbsent + mocks, lists: "list --filesOnly"},
	"mocha":  {tests: jsTests, settings: npmSettings + " package.json", absent: npmAbsent, lists: "--dry-run --reporter json"},
	"ava":    {tests: jsTests, settings: npmSettings + " package.json", absent: npmAbsent},
	"tape":   {tests: jsTests, absent: npmAbsent}, "uvu": {tests: jsTests, absent: npmAbsent}, "qunit": {tests: jsTests, absent: npmAbsent},
	"borp": {tests: jsTests, absent: npmAbsent}, "brittle": {tests: jsTests, absent: npmAbsent},
	"tap":     {tests: jsTests, settings: ".taprc package.json", absent: npmAbsent, lists: "list"},
	"jasmine": {tests: jsTests, settings: "jasmine.json jasmine.mjs package.json", absent: npmAbsent},
	"lab":     {tests: jsTests, settings: ".labrc.js package.json", absent: npmAbsent},
	"node":    {tests: jsTests, subs: "--test", absent: npmAbsent},
	"tsx":     {absent: npmAbsent, settings: jsSettings}, "ts-node": {absent: npmAbsent, settings: jsSettings},
	"nyc": {settings: ".nycrc .nycrc.* nyc.config.* /package.json"}, "c8": {settings: ".c8rc .c8rc.* .nycrc .nycrc.* /package.json"},
	"playwright": {tests: jsTests, subs: "test", settings: "playwright.config.* " + npmSettings, absent: npmAbsent, lists: "--list --reporter json"},
	"cypress":    {tests: "/cypress/**", settings: "cypress.config.* cypress.json " + npmSettings, absent: npmAbsent},
	"karma":      {tests: jsTests, settings: "karma.conf.* .config/karma.conf.* " + npmSettings, absent: npmAbsent},
	"deno":       {tests: "*_test.* *.test.* test.{js,mjs,jsx,ts,mts,tsx} __tests__/**", subs: "test", settings: "deno.json deno.jsonc"},
	"mvn":        {tests: "src/test/**", settings: "pom.xml .mvn .mvn/** " + junitSettings}, "mvnw": {tests: "src/test/**", settings: "pom.xml .mvn .mvn/** " + junitSettings},
	"gradle": {tests: "src/test/**", settings: gradleSettings}, "gradlew": {tests: "src/test/**", settings: gradleSettings},
	"rspec":   {tests: "/spec/**", settings: ".rspec .rspec-local .bundle .bundle/**", lists: "--dry-run --format json"},
	"phpunit": {tests: "/tests/** /test/**", settings: "phpunit.xml phpunit.xml.dist phpunit.dist.xml"},
	"pest":    {tests: "/tests/** /test/**", settings: "phpunit.xml phpunit.xml.dist phpunit.dist.xml"},
	"mix":     {tests: "/test/** /apps/*/test/**", subs: "test", settings: "mix.exs"},
	"dotnet": {tests: "*.Tests/** *Tests/** /tests/** /test/**", subs: "test",
		settings: "Directory.Build.props Directory.Build.targets *.runsettings nuget.config NuGet.Config global.json"},
	"swift": {tests: "/Tests/**", subs: "test"}, "meson": {tests: cTests + " meson.build meson_options.txt meson.options", subs: "test"},
	"ctest": {tests: cTests + " CMakeLists.txt", settings: "CTest*.cmake CTest*.ctest DartConfiguration.tcl CMakePresets.json CMakeUserPresets.json"},
	"bazel": {tests: someTests, subs: "test coverage", settings: bazelSettings}, "bazelisk": {tests: someTests, subs: "test coverage", settings: bazelSettings},
	"dart": {tests: "/test/**", subs: "test", settings: "dart_test.yaml"}, "flutter": {tests: "/test/**", subs: "test", settings: "dart_test.yaml"},
	"sbt":  {tests: "src/test/**", settings: "*.sbt project/*.sbt project/*.scala project/build.properties .sbtopts .jvmopts"},
	"bats": {tests: "*.bats /test/** /tests/**"}, "busted": {tests: "/spec/**", settings: ".busted"},
	"cabal": {tests: "/test/** /tests/**", subs: "test", settings: "*.cabal cabal.project cabal.project.*"},
	"stack": {tests: "/test/** /tests/**", subs: "test", settings: "*.cabal package.yaml stack.yaml stack.yaml.lock"},
	"dune":  {tests: "test/** tests/**", subs: "test runtest", settings: "dune dune-project dune-workspace *.opam"},
	"prove": {tests: "/t/** *.t", settings: ".proverc", lists: "--dry"},
	// Their targets can do anything. If the name of a target says that it tests, everything that looks like a test is
	// sealed.
	"make": {tests: someTests + automake}, "gmake": {tests: someTests + automake}, "just": {tests: someTests, settings: ".env"}, "task": {tests: someTests}, "go-task": {tests: someTests},
	"rake": {tests: someTests}, "mage": {tests: someTests}, "invoke": {tests: someTests}, "inv": {tests: someTests}, "ant": {tests: someTests},
	"composer": {tests: someTests},

	"golangci-lint": {settings: ".golangci.*"}, "eslint": {settings: "eslint.config.* .eslintrc .eslintrc.* .eslintignore", absent: npmAbsent},
	"prettier": {settings: ".prettierrc .prettierrc.* prettier.config.* .prettierignore .editorconfig", absent: npmAbsent}, "biome": {settings: "biome.json biome.jsonc", absent: npmAbsent},
	"stylelint": {settings: ".stylelintrc .stylelintrc.* stylelint.config.* .stylelintignore", absent: npmAbsent}, "oxlint": {settings: ".oxlintrc.json", absent: npmAbsent},
	"clang-tidy": {settings: ".clang-tidy"}, "clang-format": {settings: "{.,_}clang-format .clang-format-ignore"}, "pyright": {settings: "pyrightconfig.json pyproject.toml"},
	"ruff": {settings: "ruff.toml .ruff.toml pyproject.toml"}, "mypy": {settings: "mypy.ini .mypy.ini setup.cfg pyproject.toml"},
	"flake8": {settings: ".flake8 setup.cfg tox.ini"}, "pylint": {settings: ".pylintrc pylintrc setup.cfg pyproject.toml"},
	"tsc": {settings: "tsconfig.json tsconfig.*.json", absent: npmAbsent}, "rubocop": {settings: ".rubocop.yml"}, "shellcheck": {settings: ".shellcheckrc"},
}

// Row is a row of the table of evaluators, for people: programs that share their globs.
type Row struct{ Programs, Tests, Settings, Absent, Lines []string }

// Table returns the table of evaluators, sorted by program.
func Table() (rows []Row) {
	index := map[evaluator]int{}
	for _, name := range slices.Sorted(maps.Keys(evaluators)) {
		e := evaluators[name]
		call := name
		if e.subs != "" {
			call += " " + strings.Fields(e.subs)[0]
		}
		e.subs, e.lists = "", ""
		if i, ok := index[e]; ok {
			rows[i].Programs = append(rows[i].Programs, call)
			continue
		}
		index[e] = len(rows)
		rows = append(rows, Row{[]string{call}, strings.Fields(e.tests), strings.Fields(e.settings), strings.Fields(e.absent), strings.Fields(e.lines)})
	}
	return rows
}

const (
	bazelSettings  = ".bazelrc .bazelversion .bazeliskrc tools/bazel {BUILD,WORKSPACE,MODULE}.bazel WORKSPACE.bzlmod"
	gradleSettings = "*.gradle *.gradle.kts gradle.properties buildSrc/** gradle/wrapper/** " + junitSettings
	// JUnit and TestNG find these files on the class path. An extension in them can hide failures.
	junitSettings = "junit-platform.properties META-INF/services/org.{junit,testng}.*"
)

// testing matches the name of a target or a script that runs tests.
var testing = lazyregexp.New(`test|spec|check|cov|verif|^ci$|^all$`)

// testFolder matches the name of a folder that contains tests, and not the code under test.
var testFolder = lazyregexp.New(`(?i)(^|/)(__tests__|tests?|testdata|e2e)(/|$)|^specs?(/|$)`)

// evaluator seals what the table lists for a program that judges.
func (r *refs) evaluator(c shell.Command, name string, args []shell.Word) {
	e, ok := evaluators[name]
	dir := c.Dir
	if !ok {
		return
	}
	for _, w := range args { // make -C x, npm --prefix x
		if option, value, joined := strings.Cut(w.Path, "="); joined && contains(tasks[name].dir, option) {
			dir = shell.Resolve(dir, value)
		}
	}
	for i := 1; i < len(args); i++ {
		if contains(tasks[name].dir, args[i-1].Text) || name == "go" && args[i-1].Text == "-C" {
			dir = shell.Resolve(dir, args[i].Path)
		}
	}
	for _, glob := range strings.Fields(e.settings) {
		r.around(dir, glob, Group{There: true, New: true})
	}
	for _, glob := range strings.Fields(e.absent) {
		r.around(dir, glob, Group{New: true})
		if r.judges && contains(brought, glob) {
			r.around(dir, glob+"/**", Group{There: true})
		}
	}
	for _, entry := range strings.Fields(e.lines) {
		glob, words, _ := strings.Cut(entry, ":")
		r.around(dir, glob, Group{Lines: strings.ReplaceAll(words, ",", " ")})
	}
	r.told(dir, e.settings)
	if !r.judges || e.tests == "" || !tested(name, e.subs, args) {
		return
	}
	r.listing(c, name, e.lists)
	r.programsOfTests(name)
	tests := append(strings.Fields(e.tests), r.patterns(dir, name, args)...)
	if !r.given(dir, name, tests, args) {
		if name == "unittest" {
			r.group(dir, "**/{test,tests}/**/__init__.py", Group{There: true, New: true}) // load_tests in such a file decides which tests run
		}
		for _, glob := range tests {
			glob, rooted := strings.CutPrefix(glob, "/")
			if !rooted {
				glob = "**/" + glob
			}
			r.group(dir, glob, Group{There: true})
		}
	}
}

// tested reports whether a program is called to run tests: by its subcommand, or by the name of a target or script.
func tested(name, subs string, args []shell.Word) bool {
	var plain []string
	for _, w := range args {
		if w.Text != "" && !strings.HasPrefix(w.Text, "-") && !assignment().MatchString(w.Text) {
			plain = append(plain, w.Text)
		}
	}
	switch _, runs := tasks[name]; {
	case runs && len(plain) == 0:
		return true
	case runs:
		return slices.ContainsFunc(plain, testing().MatchString)
	case subs == "":
		return true
	}
	return slices.ContainsFunc(args, func(w shell.Word) bool { return strings.HasPrefix(w.Text, "-") && contains(subs, w.Text) }) ||
		slices.ContainsFunc(plain[:min(2, len(plain))], func(word string) bool { return contains(subs, word) }) // cargo +nightly test
}

// given seals the tests in the files and folders that a program gets as arguments. It reports whether there are any.
func (r *refs) given(dir, name string, tests []string, args []shell.Word) (found bool) {
	for i, w := range args {
		file, _, _ := strings.Cut(w.Path, "::")
		if name == "unittest" && !strings.Contains(file, "/") { // named by module, perhaps with class and method
			for file = strings.Trim(strings.ReplaceAll(file, ".", "/"), "/"); strings.Contains(file, "/") && !r.exists[shell.Resolve(dir, file+".py")] && !r.folder(shell.Resolve(dir, file)); {
				file = path.Dir(file)
			}
			if r.exists[shell.Resolve(dir, file+".py")] {
				file += ".py"
			}
		}
		below, recursive := strings.CutSuffix(file, "...")
		place := r.relative(shell.Resolve(dir, strings.TrimSuffix(below, "/")))
		switch {
		case w.Unknown || w.Glob || strings.HasPrefix(w.Text, "-") || file == "":
		case i > 0 && contains("-C --rootdir --prefix --cwd --project-dir", args[i-1].Text):
		case name == "go" && (strings.HasPrefix(file, ".") || path.IsAbs(file)):
			found = true
			for _, glob := range tests {
				if recursive {
					glob = "**/" + glob
				}
				r.group(place, glob, Group{There: true})
			}
		case name == "go":
		case r.exists[place]:
			found = true
			r.group("", shell.EscapeGlob(place), Group{There: true})
		case place != "." && r.folder(place):
			found = true
			if testFolder().MatchString(place) || slices.Contains(tests, "/"+path.Base(place)+"/**") { // prove t
				r.group(place, "**", Group{There: true})
			} else { // the folder has the tested code too
				for _, glob := range tests {
					r.group(place, "**/"+strings.TrimPrefix(glob, "/"), Group{There: true})
				}
			}
			if name == "unittest" {
				r.group(place, "**/__init__.py", Group{New: true}) // load_tests in such a file decides which tests run
			}
			if contains("unittest pytest py.test", name) {
				r.first(place, pythonRuns)
			}
		}
	}
	return found
}

// testFolders seals the test folders that a command names.
func (r *refs) testFolders(dir string, words []shell.Word) {
	for _, w := range words {
		path := r.relative(shell.Resolve(dir, strings.TrimSuffix(w.Path, "/")))
		if !w.Unknown && !w.Glob && testFolder().MatchString(path) && r.folder(path) {
			r.group(path, "**", Group{There: true})
		}
	}
}

// testsIn seals the test folders in the strings of a program's text: ruby -e 'Dir["test/**/test_*.rb"].each { … }'.
func (r *refs) testsIn(dir, text string) {
	for _, m := range quoted().FindAllStringSubmatch(text, -1) {
		path := r.relative(shell.Resolve(dir, m[1]))
		if found := testFolder().FindStringIndex(path); found != nil {
			r.testFolders("", []shell.Word{{Path: path[:found[1]]}})
		}
	}
}

// quoted matches a string in a program's text.
var quoted = lazyregexp.New(`["']([^"'\n]+)["']`)

// around seals a glob in a folder, in all folders above it, and in all below. With a leading slash it leaves out
// those below.
func (r *refs) around(dir, glob string, g Group) {
	glob, rooted := strings.CutPrefix(glob, "/")
	if !rooted {
		r.group(dir, "**/"+glob, g)
	} else {
		r.group(dir, glob, g)
	}
	for up := dir; up != "" && up != "." && !path.IsAbs(up) && !strings.HasPrefix(up, ".."); {
		up = path.Dir(up)
		r.group(up, glob, g)
	}
}

// group seals what a glob matches in a folder of the repository.
func (r *refs) group(dir, glob string, g Group) {
	dir = r.relative(dir)
	if path.IsAbs(dir) || dir == ".." || strings.HasPrefix(dir, "../") || len(r.groups) >= maxGroups {
		return
	}
	g.Glob = path.Join(shell.EscapeGlob(dir), glob)
	if !doublestar.ValidatePattern(g.Glob) {
		return
	}
	have := r.groups[g.Glob]
	g.There, g.New = g.There || have.There, g.New || have.New
	g.Lines = cmp.Or(g.Lines, have.Lines)
	r.groups[g.Glob] = g
	r.because(g.Glob)
}

// brought lists the folders for code of others that a repository may contain: the libraries of a test, and the runner
// itself.
const brought = "vendor node_modules .venv"

// maxGroups limits the number of groups, because a command may be hostile.
const maxGroups = 500

// folder reports whether the base has a folder of that name.
func (r *refs) folder(name string) bool {
	if r.folders == nil {
		r.folders = map[string]bool{}
		for _, file := range r.files {
			for dir := path.Dir(file); dir != "." && !r.folders[dir]; dir = path.Dir(dir) {
				r.folders[dir] = true
			}
		}
	}
	return r.folders[name]
}

// opened returns the globs of the scope that name what a group seals. "tests/**" and "**/*_test.go" do, because then
// the tests are to be changed. "**" and "src/**" only match some tests by chance, so they do not. No group seals what
// an opened glob matches.
func opened(scope []string, groups map[string]Group) (open []string) {
	for _, glob := range scope {
		for group := range groups {
			// **/*_test.go also names the tests of one folder, if they have a name pattern of their own: *_test.go.
			name, anywhere := strings.CutPrefix(spec.Tidy(glob), "**/")
			base := path.Base(group)
			if doublestar.MatchUnvalidated(group, spec.Tidy(glob)) || anywhere && strings.Trim(base, "*") != "" && doublestar.MatchUnvalidated(base, name) {
				open = append(open, glob)
				break
			}
		}
	}
	return open
}
