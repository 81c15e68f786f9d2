package evaluator_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"pawl/internal/judge/evaluator"
	"pawl/internal/spec"
)

// project has files of every language.
var project = []string{
	"Makefile", "GNUmakefile.old", "package.json", "go.mod", "main.go", "main_test.go", "parser/p.go", "parser/p_test.go", "parser/deep/d_test.go", "parser/testdata/in.txt",
	"tests/test_a.py", "tests/unit/test_b.py", "tests/unit/helper.py", "src/app.py", "src/app.js", "src/app.test.js", "src/__tests__/x.js", "pyproject.toml", "api/pyproject.toml", "api/test_c.py",
	"Cargo.toml", "build.rs", "tests/it.rs", "bench/index.js", "measure.py", "check.sh", "internal/spec/spec.go", "internal/test/test.go", "src/Makefile.am", "configure.ac",
}

// sealedOf returns the sealed ones of the names. A name with a leading + is a new file; the others are files of the
// project.
func sealedOf(s spec.Spec, names ...string) (found []string) {
	seals := evaluator.Find(s, project, nil)
	for _, name := range names {
		if name, added := strings.CutPrefix(name, "+"); added {
			if slices.ContainsFunc(seals.Groups, func(g evaluator.Group) bool { return g.New && spec.MatchAny([]string{g.Glob}, name) }) && !spec.MatchAny(seals.Open, name) {
				found = append(found, "+"+name)
			}
			continue
		}
		if seals.Has(name) {
			found = append(found, name)
		}
	}
	return found
}

func TestP3_TestsThatACommandDiscoversAreSealed(t *testing.T) {
	for command, want := range map[string]string{
		`go test ./...`:                                 `main_test.go parser/p_test.go parser/deep/d_test.go parser/testdata/in.txt`,
		`go test ./parser`:                              `parser/p_test.go parser/testdata/in.txt`,
		`go test -run X -count 1 ./parser/...`:          `parser/p_test.go parser/deep/d_test.go parser/testdata/in.txt`,
		`go -C parser test ./...`:                       `parser/p_test.go parser/deep/d_test.go parser/testdata/in.txt`,
		`cd parser && go test .`:                        `parser/p_test.go parser/testdata/in.txt`,
		`go test pawl/parser`:                           `main_test.go parser/p_test.go parser/deep/d_test.go parser/testdata/in.txt`, // the package is unknown here
		`go vet ./...`:                                  ``,
		`python3 -m unittest discover -s tests`:         `tests/test_a.py tests/unit/test_b.py tests/unit/helper.py tests/it.rs`,
		`python3 -m unittest discover -s tests -t .`:    `tests/test_a.py tests/unit/test_b.py tests/unit/helper.py tests/it.rs`,
		`python3 -m unittest .tests.test_a ..`:          `tests/test_a.py`,
		`python3 -m unittest`:                           `tests/test_a.py tests/unit/test_b.py api/test_c.py`,
		`python3 -m unittest tests.test_a.TestX.test_y`: `tests/test_a.py`,
		`pytest -q`:                                     `tests/test_a.py tests/unit/test_b.py pyproject.toml api/pyproject.toml api/test_c.py`,
		`pytest tests/unit -k foo`:                      `tests/unit/test_b.py tests/unit/helper.py pyproject.toml api/pyproject.toml`,
		`pytest tests/test_a.py::TestX`:                 `tests/test_a.py pyproject.toml api/pyproject.toml`,
		`poetry run python -m pytest api`:               `pyproject.toml api/pyproject.toml api/test_c.py`,
		`cd api && pytest`:                              `pyproject.toml api/pyproject.toml api/test_c.py`,
		`coverage run -m pytest tests`:                  `tests/test_a.py tests/unit/test_b.py tests/unit/helper.py pyproject.toml api/pyproject.toml tests/it.rs`,
		`npm test`:                                      `tests/test_a.py tests/unit/test_b.py tests/unit/helper.py src/app.test.js src/__tests__/x.js tests/it.rs`,
		`npm run lint`:                                  ``,
		`tape src/app.js | faucet`:                      `src/app.js`,
		`nyc --lines 100 tap build.rs`:                  `package.json build.rs`,
		`npx jest src`:                                  `package.json src/app.test.js src/__tests__/x.js`,
		`node --test`:                                   `tests/test_a.py tests/unit/test_b.py tests/unit/helper.py src/app.test.js src/__tests__/x.js tests/it.rs`,
		`cargo test --quiet`:                            `tests/test_a.py tests/unit/test_b.py tests/unit/helper.py Cargo.toml build.rs tests/it.rs`,
		`cargo build`:                                   `Cargo.toml build.rs`,
		`make check`:                                    `main_test.go parser/p_test.go parser/deep/d_test.go tests/test_a.py tests/unit/test_b.py tests/unit/helper.py src/app.test.js src/__tests__/x.js api/test_c.py tests/it.rs src/Makefile.am configure.ac`,
		`make`:                                          `main_test.go parser/p_test.go parser/deep/d_test.go tests/test_a.py tests/unit/test_b.py tests/unit/helper.py src/app.test.js src/__tests__/x.js api/test_c.py tests/it.rs src/Makefile.am configure.ac`,
		`make lint`:                                     ``,
		`go vet ./internal/spec`:                        ``,
		`sh check.sh tests/unit`:                        `tests/unit/test_b.py tests/unit/helper.py`,
		`timeout 60 my-runner --dir tests`:              `tests/test_a.py tests/unit/test_b.py tests/unit/helper.py tests/it.rs`,
		`eslint src`:                                    ``,
	} {
		s := spec.Spec{Scope: []string{"**"}, Test: spec.Test{Command: command}}
		files := slices.DeleteFunc(slices.Clone(project), func(name string) bool { return slices.Contains(evaluator.Find(s, project, nil).Files, name) })
		assert.Equal(t, want, strings.Join(sealedOf(s, files...), " "), "%q", command)
		s.Guard, s.Test = spec.Guard{Command: command}, spec.Test{}
		for name := range strings.FieldsSeq(want) {
			assert.True(t, evaluator.Find(s, project, nil).Has(name), "as a guard: %q %s", command, name)
		}
		s.Guard, s.Verify = spec.Guard{}, spec.Verify{Command: command}
		for _, group := range evaluator.Find(s, project, nil).Groups {
			assert.True(t, group.New, "a metric may be about the tests: %q %s", command, group.Glob)
		}
	}
}

// A runner's argument may be a folder of tests; the runner's own names for tests say which files in it are tests.
func TestP3_TheFolderOfTestsThatARunnerIsGivenIsSealed(t *testing.T) {
	names := []string{"t/a.t", "t/lib/h.pm", "lib/a.pm", "lib/t/own.pm", "x/own.t", "x/a.pm"}
	for command, want := range map[string]string{
		"prove -r t":    "t/a.t t/lib/h.pm",
		"prove -lr t x": "t/a.t t/lib/h.pm x/own.t",
		"prove lib/t":   "lib/t/own.pm",
		"prove -lr":     "t/a.t t/lib/h.pm x/own.t",
		"make test":     "t/a.t t/lib/h.pm",
	} {
		seals := evaluator.Find(spec.Spec{Scope: []string{"**"}, Guard: spec.Guard{Command: command}}, names, nil)
		got := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !seals.Has(name) })
		assert.Equal(t, want, strings.Join(got, " "), command)
	}
}

// A command may load the tests by the text of a program.
func TestP3_TestFoldersInTheTextOfAProgramAreSealed(t *testing.T) {
	for command, want := range map[string]string{
		`ruby -Ilib -e 'Dir["tests/**/test_*.py"].each { |f| require "./" + f }'`: "tests/test_a.py tests/unit/helper.py",
		`node -e "require('./src/app'); require('./src/__tests__/x')"`:            "src/__tests__/x.js",
	} {
		got := sealedOf(spec.Spec{Scope: []string{"**"}, Guard: spec.Guard{Command: command}}, "tests/test_a.py", "tests/unit/helper.py", "src/app.js", "src/app.py", "src/__tests__/x.js")
		assert.Equal(t, want, strings.Join(got, " "), command)
	}
}

// node:test, ava and tsd each find files by some of these names, without settings.
func TestP3_TestsOfJavaScriptAreSealedByEveryNameThatARunnerFinds(t *testing.T) {
	tests := []string{"test.js", "lib/test.mjs", "test-parse.js", "lib/parse-test.cjs", "lib/parse_test.ts", "index.test-d.ts", "lib/a.test.js"}
	others := []string{"index.js", "index.d.ts", "lib/latest.js", "lib/testing.js", "lib/contest.js"}
	for _, runner := range []string{"node --test", "ava", "npm test", "make test"} {
		s := spec.Spec{Scope: []string{"**"}, Guard: spec.Guard{Command: runner}}
		seals := evaluator.Find(s, slices.Concat(tests, others), nil)
		for _, name := range tests {
			assert.True(t, seals.Has(name), "%s: %s", runner, name)
		}
		for _, name := range others {
			assert.False(t, seals.Has(name), "%s: %s", runner, name)
		}
	}
}

// Runners can get other name patterns on their command line, or in their settings.
func TestP3_TestsOfOtherNamesAreSealedWhereTheRunnerIsToldThem(t *testing.T) {
	files := map[string]string{"lib/a.py": "", "lib/a_check.py": "", "lib/check_b.py": "", "lib/c.js": "", "lib/c.check.js": "", "api/check_d.py": ""}
	for name, test := range map[string]struct{ command, file, text, want string }{
		"unittest's pattern":        {"python3 -m unittest discover -s lib -p '*_check.py'", "", "", "lib/a_check.py"},
		"unittest's long option":    {"python3 -m unittest discover --pattern=*_check.py", "", "", "lib/a_check.py"},
		"a pattern of every file":   {"python3 -m unittest discover -s lib -p '*.py'", "", "", ""},
		"pytest.ini":                {"pytest -q", "pytest.ini", "[pytest]\npython_files = check_*.py *_check.py\naddopts = -q\n", "api/check_d.py lib/a_check.py lib/check_b.py"},
		"a list on several lines":   {"pytest", "setup.cfg", "[tool:pytest]\npython_files =\n    check_*.py\n    *_check.py\ntestpaths = lib\n", "api/check_d.py lib/a_check.py lib/check_b.py"},
		"pyproject.toml":            {"python -m pytest lib", "pyproject.toml", "[tool.pytest.ini_options]\npython_files = [\n  \"check_*.py\",\n]\n", "lib/check_b.py"},
		"another folder":            {"cd api && pytest", "pytest.ini", "[pytest]\npython_files = check_*.py", "api/check_d.py"},
		"an option of pytest":       {"pytest -o python_files='check_*.py *_check.py'", "", "", "api/check_d.py lib/a_check.py lib/check_b.py"},
		"jest, in package.json":     {"npx jest", "package.json", `{"jest": {"testMatch": ["<rootDir>/lib/**/*.check.js", "**/?(*.)+(spec).js"]}}`, "lib/c.check.js"},
		"jest, in jest.config.js":   {"npx jest", "jest.config.js", "module.exports = { testMatch: ['**/*.check.js', '**/*.js'] }", "lib/c.check.js"},
		"jest, through npm":         {"npm test", "package.json", `{"scripts": {"test": "jest"}, "jest": {"testMatch": ["**/*.check.js"]}}`, "lib/c.check.js"},
		"jest, on its command line": {"npx jest --testMatch '**/*.check.js'", "", "", "lib/c.check.js"},
		"cargo":                     {"cargo test", "Cargo.toml", "[lib]\npath = \"lib/a.py\"\n[[test]]\nname = \"c\"\npath = \"lib/c.js\"\n[[bin]]\npath = \"lib/c.check.js\"\n[[test]]\nname = \"d\"\n[lib]\npath = \"api/check_d.py\"\n", "lib/c.js"},
	} {
		t.Run(name, func(t *testing.T) {
			have := maps.Clone(files)
			if test.file != "" {
				have[test.file] = test.text
			}
			s := spec.Spec{Scope: []string{"**"}, Guard: spec.Guard{Command: test.command}}
			seals := evaluator.Find(s, slices.Sorted(maps.Keys(have)), func(file string) string { return have[file] })
			var got []string
			for _, file := range slices.Sorted(maps.Keys(files)) {
				if seals.Has(file) {
					got = append(got, file)
				}
			}
			assert.Equal(t, test.want, strings.Join(got, " "))
		})
	}
}

// TestP3_WhatCMakeAndMesonBuildForTestsIsSealed reads which programs are tests, and what they are made of.
func TestP3_WhatCMakeAndMesonBuildForTestsIsSealed(t *testing.T) {
	const cmake = `add_library(hill hill.c)
add_executable(hill_tests ${CMAKE_CURRENT_SOURCE_DIR}/climb_tests.c hill.c)
add_executable("UnitTest"
  unit.cpp)
add_executable(app main.c)
add_executable(testboth a.c hill.c)
enable_testing()
ADD_TEST(NAME app COMMAND python3 ${PROJECT_SOURCE_DIR}/sub/drive.py $<TARGET_FILE:app> main.c)`
	const meson = `executable('app', 'main.c')
e = executable('hill_tests', 'climb_tests.c', 'hill.c', dependencies: m)
test('app', find_program('sub/drive.py'))`
	for command, want := range map[string]string{
		"cmake -B build && cmake --build build && ctest --test-dir build": "CMakeLists.txt climb_tests.c sub/CMakeLists.txt sub/drive.py sub/only.c test_x.cc unit.cpp",
		"meson setup build && meson test -C build":                        "climb_tests.c meson.build sub/drive.py test_x.cc",
		"cmake -B build && cmake --build build":                           "",
	} {
		have := map[string]string{
			"CMakeLists.txt": cmake, "meson.build": meson, "sub/CMakeLists.txt": "add_executable(subtest only.c)", "hill.c": "", "climb_tests.c": "", "unit.cpp": "", "main.c": "", "a.c": "",
			"sub/drive.py": "", "sub/only.c": "", "test_x.cc": "",
		}
		s := spec.Spec{Scope: []string{"**"}, Guard: spec.Guard{Command: command}}
		seals := evaluator.Find(s, slices.Sorted(maps.Keys(have)), func(file string) string { return have[file] })
		var got []string
		for _, file := range slices.Sorted(maps.Keys(have)) {
			if seals.Has(file) {
				got = append(got, file)
			}
		}
		assert.Equal(t, want, strings.Join(got, " "), command)
		assert.Empty(t, seals.Unread)
	}
}

func TestARunnerThatCanListsTheFilesOfItsTests(t *testing.T) {
	const npm = `{"scripts": {"test": "c8 -r lcov mocha -r x lib/*.js", "unit": "vitest run --coverage"}}`
	for command, want := range map[string]string{
		"cd api && .venv/bin/python -m pytest -q 'a b'": "api: .venv/bin/python -m pytest -q 'a b' --collect-only -q",
		"npx jest --ci":           ": npx jest --ci --listTests",
		"npm test":                ": c8 -r lcov mocha -r x lib/*.js --dry-run --reporter json",
		"npm run unit && go test": ": vitest list --filesOnly --coverage",
		"pytest $WHAT":            "",
		"npm test; npm t":         ": c8 -r lcov mocha -r x lib/*.js --dry-run --reporter json",
		"pytest 'a b'/*.py":       "",
		"pytest && pytest":        ": pytest --collect-only -q",
		"npx playwright test -x":  ": npx playwright test -x --list --reporter json",
		"cd t && tap -R dot x.js": "t: tap list -R dot x.js",
		"bundle exec rspec lib":   ": bundle exec rspec lib --dry-run --format json",
		"prove -lr":               ": prove -lr --dry",
		"cd /srv && pytest":       "",
		"cd ../x && pytest":       "",
		"go test ./... && make x": "",
	} {
		s := spec.Spec{Scope: []string{"**"}, Guard: spec.Guard{Command: command}}
		got := ""
		for _, l := range evaluator.Find(s, []string{"package.json"}, func(string) string { return npm }).Listings {
			got += l.Dir + ": " + strings.TrimPrefix(l.Command, `PATH="$PWD/node_modules/.bin:$PATH" `)
		}
		assert.Equal(t, want, got, command)
	}
}

func TestP3_NamesThatWouldOutrankASealedFileAreSealedWhileAbsent(t *testing.T) {
	for command, want := range map[string]string{
		`make check`:                            `GNUmakefile makefile`,
		`make -C sub check`:                     `sub/GNUmakefile sub/makefile sub/Makefile`,
		`make -f Makefile check`:                ``,
		`pytest`:                                `conftest.py tests/conftest.py pytest.ini .pytest.ini tox.ini setup.cfg src/setup.cfg`,
		`cd api && pytest`:                      `conftest.py pytest.ini api/conftest.py api/x/conftest.py`,
		`python3 -m pytest tests`:               `conftest.py pytest.py pytest/__init__.py tests/conftest.py`,
		`python3 -m unittest discover -s tests`: `unittest.py unittest/__init__.py tests/__init__.py tests/unit/__init__.py tests/random.py`,
		`npm test`:                              `.npmrc sub/.npmrc node_modules/.bin/jest node_modules sub/node_modules/x/index.js jest.config.js vitest.config.ts`,
		`npm --prefix=sub test`:                 `.npmrc sub/.npmrc sub/node_modules/.bin/x`,
		`npx jest`:                              `.npmrc node_modules/.bin/jest jest.config.mjs`,
		`go test ./...`:                         `parser/go.mod go.work vendor vendor/modules.txt`,
		`go vet ./parser/...`:                   `parser/go.mod go.work`,
		`cargo test`:                            `.cargo/config.toml .cargo/config .cargo build.rs sub/build.rs sub/Cargo.toml rust-toolchain.toml`,
		`mvn -q test`:                           `.mvn/jvm.config .mvn sub/pom.xml`,
		`./gradlew test`:                        `gradle.properties settings.gradle buildSrc/src/main/X.java`,
		`node bench`:                            `bench/package.json`,
		`golangci-lint run`:                     `.golangci.yml parser/.golangci.toml`,
		`sh check.sh`:                           ``,
		`python3 -m mytool`:                     `mytool.py mytool/__main__.py`,
		`make docs`:                             `Makefile.sh Makefile,v s.Makefile SCCS/s.Makefile RCS/Makefile,v Makefile.c`,
		`PYTHONPATH=lib pytest`:                 `lib/sitecustomize.py usercustomize.py lib/argparse.py x.dist-info/entry_points.txt lib/x.egg-info/entry_points.txt .venv/bin/python`,
		`env PYTHONPATH=./lib python3 measure.py`: `lib/argparse.py sitecustomize.py`,
		`python3 -m pytest`:                       `argparse.py difflib/__init__.py _pytest/__init__.py pluggy.py`,
		`tox`:                                     `toxfile.py tox.toml`,
		`uv run pytest`:                           `uv.toml .venv/bin/pytest`,
		`pipenv run pytest`:                       `.env`,
		`pdm run pytest`:                          `.pdm-python`,
		`node --test`:                             `node_modules/x/index.js tests/node_modules/x/index.js`,
		`node --env-file-if-exists=ci.env x.js`:   `ci.env`,
		`yarn test`:                               `.pnp.cjs .pnp.js .pnp.loader.mjs`,
		`pnpm test`:                               `pnpm-workspace.yaml .pnpmfile.mjs tsconfig.json`,
		`npx jest --ci`:                           `__mocks__/fs.js tsconfig.json .swcrc`,
		`npx c8 node x.js`:                        `.c8rc.json .nycrc`,
		`bun test`:                                `.env.test .env bunfig.toml`,
		`just check`:                              `.env justfile`,
		`cargo nextest run`:                       `.config/nextest.toml`,
		`cargo clippy`:                            `clippy.toml .clippy.toml`,
		`gradle test`:                             `settings.gradle.kts src/test/resources/junit-platform.properties`,
		`./mvnw test`:                             `mvnw src/main/resources/META-INF/services/org.junit.jupiter.api.extension.Extension junit-platform.properties`,
		`ctest`:                                   `CTestCustom.cmake`,
		`bazel test //...`:                        `.bazelrc BUILD.bazel pkg/BUILD.bazel tools/bazel`,
		`make -s && ./app`:                        `app`,
		`if [ -f ci/env ]; then . ci/env; fi`:     `ci/env`,
		`PATH="$PWD/bin:$PATH" go vet ./...`:      `bin/go`,
		`env PATH=bin:/usr/bin go vet ./...`:      `bin/go`,
	} {
		for name, s := range map[string]spec.Spec{
			"guard": {Guard: spec.Guard{Command: command}}, "test": {Test: spec.Test{Command: command}},
			"verify": {Verify: spec.Verify{Command: command}}, "check": {Check: spec.Check{Command: command}},
		} {
			s.Scope = []string{"**"}
			if strings.Contains(want, "tests/__init__.py") && (name == "verify" || name == "check") {
				continue // tests are only sealed for commands that judge by them
			}
			for added := range strings.FieldsSeq(want) {
				assert.NotEmpty(t, sealedOf(s, "+"+added), "%s %q: %s", name, command, added)
			}
			// A normal change may add these.
			assert.Empty(t, sealedOf(s, "+src/new.py", "+src/new/__init__.py", "+parser/new.go", "+parser/new_test.go", "+tests/test_new.py", "+src/lib.rs", "+src/new.test.js", "+docs/make.md", "+README.md"), "%s %q", name, command)
		}
	}
	beside := evaluator.Find(spec.Spec{Guard: spec.Guard{Command: `cc -o "${TMPDIR:-/tmp}/unit" unit.c && "${TMPDIR:-/tmp}/unit" && ./out/unit`}}, nil, nil)
	var free []string
	for _, g := range beside.Groups {
		free = append(free, g.Glob)
	}
	assert.Equal(t, []string{"out/unit"}, free, "a name outside of the repository says nothing to a loop")
	unknown := evaluator.Find(spec.Spec{Guard: spec.Guard{Command: `for f in $CHECKS; do $f '' 'abc def' x; done; . ""`}}, nil, nil)
	assert.Empty(t, unknown.Groups, "the arguments of an unknown command are not what a shell reads")
	assert.Empty(t, sealedOf(spec.Spec{Test: spec.Test{Command: "go test ./..."}}, "go.mod", "main.go"), "a dependency may be added where the scope has go.mod")
}

func TestP3_AScopeThatNamesTestsOpensThem(t *testing.T) {
	const pytest, gotest, npm = "pytest", "go test ./...", "npm test"
	for _, c := range []struct{ command, scope, file string }{
		{gotest, "**/*_test.go", "parser/p_test.go"}, {gotest, "parser/*_test.go", "parser/p_test.go"}, {gotest, "parser/p_test.go", "parser/p_test.go"},
		{"go test ./parser", "**/*_test.go", "parser/p_test.go"}, {"cd parser && go test .", "**/*_test.go", "parser/p_test.go"},
		{pytest, "tests/test_a.py", "tests/test_a.py"}, {pytest, "**/test_*.py", "tests/unit/test_b.py"}, {"pytest tests", "tests/", "tests/unit/helper.py"},
		{"pytest tests", "./tests/unit/**", "tests/unit/helper.py"}, {"pytest tests", "tests/**", "+tests/conftest.py"}, {pytest, "pyproject.toml", "pyproject.toml"},
		{npm, "src/__tests__/**", "src/__tests__/x.js"}, {"cargo test", "Cargo.toml", "Cargo.toml"}, {"cargo test", ".cargo/**", "+.cargo/config.toml"},
	} {
		s := spec.Spec{Scope: []string{"src/**", c.scope}, Guard: spec.Guard{Command: c.command}}
		assert.Empty(t, sealedOf(s, c.file), "%s is opened by %s", c.file, c.scope)
		for _, wide := range []string{"**", "**/*", "src/**", "parser/**", "**/*.go", "**/*.py", "*", "."} {
			s.Scope = []string{wide}
			assert.NotEmpty(t, sealedOf(s, c.file), "%s only happens to match %s", wide, c.file)
		}
	}
	s := spec.Spec{Scope: []string{"tests/**", "check.sh"}, Guard: spec.Guard{Command: "pytest tests/test_a.py && sh check.sh"}}
	assert.Equal(t, []string{"check.sh", "tests/test_a.py"}, evaluator.Find(s, project, nil).Files, "what a guard names file by file stays sealed")
	assert.NotEmpty(t, sealedOf(s, "+conftest.py"), "the one above the tests says how they run")
}

func TestP3_WhatCommandsNameOutsideOfTheRepository(t *testing.T) {
	for command, want := range map[string]string{
		`/opt/measure/run data.txt`:              `/opt/measure/run`,
		`~/bin/measure --fast`:                   `~/bin/measure`,
		`"$HOME/bin/measure"`:                    `~/bin/measure`,
		`python3 ${HOME}/m/../score.py`:          `python3 ~/score.py`,
		`cd src && awk -f /srv/score.awk app.py`: `/srv/score.awk awk cd`,
		`sh </srv/feed.sh`:                       `/srv/feed.sh sh`,
		`/src/repo/check.sh`:                     ``, // the repository itself
		`$UNKNOWN/x && ~/$X/y`:                   ``,
		`measure | tee out`:                      `measure tee`,
		`timeout 5 measure`:                      `measure timeout`,
	} {
		s := spec.Spec{Repo: spec.Repo{Path: "/src/repo"}, Verify: spec.Verify{Command: command}}
		assert.Equal(t, want, strings.Join(evaluator.Find(s, project, nil).Outside, " "), "%q", command)
	}
	guard := spec.Spec{Guard: spec.Guard{Command: "lint --config=/etc/lint.yml /srv/rules ~/.lintrc -o /tmp/report https://example.org/x >/srv/log 2>/dev/null"}}
	assert.Equal(t, []string{"/etc/lint.yml", "/example.org/x", "/srv/rules", "lint", "~/.lintrc"}, evaluator.Find(guard, project, nil).Outside)
}

func TestP3_ManyNamesInACommandMakeNoLargeContract(t *testing.T) {
	var files []string
	dirs := map[string]bool{}
	for i := range 5000 {
		dir := "tests/" + strings.Repeat("x", 1+i%90) + "/" + string(rune('a'+i%26)) + strings.Repeat("y", i%70)
		dirs[dir] = true
		files = append(files, dir+"/test_x.py")
	}
	s := spec.Spec{Guard: spec.Guard{Command: "pytest " + strings.Join(slices.Sorted(maps.Keys(dirs)), " ")}}
	assert.LessOrEqual(t, len(evaluator.Find(s, files, nil).Groups), 500)
	assert.LessOrEqual(t, len(evaluator.Find(spec.Spec{Guard: spec.Guard{Command: "pytest tests"}}, files, nil).Groups), 20)
}

// The fast path of Find may only skip files that no glob matches.
func TestP3_ManyFilesAreToldApartAsFewAre(t *testing.T) {
	for command := range strings.SplitSeq(`make check|pytest|npm test|cargo test|go test ./...|dotnet test|mvn test|pytest 'te*s[x]'|pytest te\*st`, "|") {
		s := spec.Spec{Guard: spec.Guard{Command: command}}
		files := append(slices.Clone(project), "te*st/a.py", "x.Tests/a.cs", "a/spec/b", "spec/b", "t/x", "a/t/x", "test", "tests/te*st", "src/test/x.java", "a/src/test/b/c")
		seals := evaluator.Find(s, files, nil)
		for _, file := range files {
			matched := slices.Contains(seals.Files, file) || slices.ContainsFunc(seals.Groups, func(g evaluator.Group) bool { return g.There && spec.MatchAny([]string{g.Glob}, file) })
			assert.Equal(t, matched, seals.Has(file), "%q %s", command, file)
		}
	}
}

func BenchmarkSealed(b *testing.B) {
	var files []string
	for i := range 100_000 {
		files = append(files, fmt.Sprintf("src/pkg%d/module%d/file%d.py", i%50, i%700, i))
	}
	s := spec.Spec{Scope: []string{"**"}, Guard: spec.Guard{Command: "make check && python3 -m pytest && npm test"}}
	for b.Loop() {
		seals := evaluator.Find(s, files, nil)
		for _, f := range files {
			seals.Has(f)
		}
	}
}
