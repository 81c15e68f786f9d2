package scaffold_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"pawl/internal/cli/scaffold"
	"pawl/internal/spec/kind"
)

// here calls Look on files, with only these programs installed.
func here(files map[string]string, folder string, programs ...string) scaffold.Repository {
	at := scaffold.Checkout{Folder: folder, Read: func(name string) string { return files[name] }}
	for name := range files {
		at.Files = append(at.Files, name)
	}
	at.Has = func(program string) bool {
		for _, p := range programs {
			if p == program {
				return true
			}
		}
		return false
	}
	return scaffold.Look(at)
}

// TestAReportIsProposedWhereTheRunnerCanWriteOne: its output does not name the tests that pass.
func TestAReportIsProposedWhereTheRunnerCanWriteOne(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		files        map[string]string
		test, report string
	}{
		"pytest": {map[string]string{"pytest.ini": "", "a.py": "", "test_a.py": ""}, "python3 -m pytest -q --junit-xml=junit.xml", "junit.xml"},
		"a project": {
			map[string]string{"web/package.json": "{}", "api/pyproject.toml": "pytest", "api/a.py": "", "api/b.py": "", "api/test_a.py": ""},
			"cd api && python3 -m pytest -q --junit-xml=junit.xml", "api/junit.xml",
		},
		"a file of that name": {map[string]string{"pytest.ini": "", "a.py": "", "test_a.py": "", "junit.xml": ""}, "python3 -m pytest -q", ""},
		"no such plugin":      {map[string]string{"pytest.ini": "[pytest]\naddopts = -p no:junitxml\n", "a.py": "", "test_a.py": ""}, "python3 -m pytest -q", ""},
		"unittest":            {map[string]string{"a.py": "", "test_a.py": "import unittest\n"}, "python3 -m unittest discover", ""},
		"make":                {map[string]string{"pytest.ini": "", "a.py": "", "test_a.py": "", "Makefile": "test:\n\tpytest -q\n"}, "make test", ""},
		"vitest": {
			map[string]string{"package.json": `{"scripts": {"test": "vitest run"}}`, "a.js": ""},
			"npm test -- --reporter=default --reporter=junit --outputFile.junit=junit.xml", "junit.xml",
		},
		"vitest, and a file of that name": {map[string]string{"package.json": `{"scripts": {"test": "vitest run"}}`, "a.js": "", "junit.xml": ""}, "npm test", ""},
		"jest": {
			map[string]string{"package.json": `{"scripts": {"test": "jest"}}`, "a.js": "", "junit.xml": ""},
			"npm test -- --json --outputFile=jest.json", "jest.json",
		},
		"jest with options":             {map[string]string{"package.json": `{"scripts": {"test": "npx jest --ci src/"}}`, "a.js": ""}, "npm test -- --json --outputFile=jest.json", "jest.json"},
		"jest, and a file of that name": {map[string]string{"package.json": `{"scripts": {"test": "jest"}}`, "a.js": "", "jest.json": ""}, "npm test", ""},
		"jest with a report of its own": {map[string]string{"package.json": `{"scripts": {"test": "jest --json --outputFile=x"}}`, "a.js": ""}, "npm test", ""},
		"jest and more":                 {map[string]string{"package.json": `{"scripts": {"test": "jest && eslint ."}}`, "a.js": ""}, "npm test", ""},
		"mocha, which names its tests":  {map[string]string{"package.json": `{"scripts": {"test": "mocha"}}`, "a.js": ""}, "npm test", ""},
		"go":                            {map[string]string{"go.mod": "", "a.go": "", "a_test.go": ""}, "go test -json ./...", ""},
	} {
		r := here(c.files, "", "python3", "python3 -m pytest", "pytest", "make", "go", "npm", "node")
		require.Equal(t, []string{c.test, c.report}, []string{r.Test, r.Report}, name)
		for _, k := range kind.All {
			require.Equal(t, c.report != "", strings.Contains(scaffold.Spec(k, r, scaffold.Options{}), "report: ["), "%s: %s", name, k.Name)
		}
	}
}

// TestDotnetNamesItsTestsWhereThatIsSure: VSTest has an option for it, the newer platform for tests has not.
func TestDotnetNamesItsTestsWhereThatIsSure(t *testing.T) {
	t.Parallel()
	const vstest = `<PackageReference Include="Microsoft.NET.Test.Sdk" Version="17.11.1" />`
	const named = `dotnet test --logger "console;verbosity=normal"`
	for name, c := range map[string]struct {
		files map[string]string
		test  string
	}{
		"VSTest":                        {map[string]string{"tests/a.csproj": vstest}, named},
		"VSTest, for all projects":      {map[string]string{"Directory.Build.props": vstest, "tests/a.fsproj": ""}, named},
		"no tests":                      {map[string]string{"src/a.csproj": ""}, "dotnet test"},
		"the newer platform":            {map[string]string{"tests/a.csproj": vstest + "<TestingPlatformDotnetTestSupport>true</TestingPlatformDotnetTestSupport>"}, "dotnet test"},
		"the newer platform, of dotnet": {map[string]string{"tests/a.csproj": vstest, "global.json": `{"test": {"runner": "Microsoft.Testing.Platform"}}`}, "dotnet test"},
	} {
		c.files["src/a.cs"] = ""
		require.Equal(t, c.test, here(c.files, "", "dotnet").Test, name)
	}
}

func TestWhatIsNotInstalledIsSaidAndTheNextBestTaken(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		files                           map[string]string
		programs                        []string
		setup, test, check, missing     string
		nothingMissing, otherwiseBroken bool
	}{
		"pytest, where unittest finds the tests too": {
			files:    map[string]string{"pyproject.toml": "[tool.pytest.ini_options]", "a/__init__.py": "", "tests/test_a.py": "import unittest\n"},
			programs: []string{"python3"},
			test:     "python3 -m unittest discover -s tests", check: "python3 -m compileall -q a",
			missing: "python3 has no pytest, so the tests are those that unittest finds",
		},
		"pytest, which the tests import": {
			files:    map[string]string{"pyproject.toml": "", "src/a/a.py": "", "tests/test_a.py": "import pytest\n"},
			programs: []string{"python3"},
			test:     "PYTHONPATH=src python3 -m pytest -q --junit-xml=junit.xml", check: "python3 -m compileall -q src",
			missing: "python3 has no pytest, which the tests need: pawl validate fails until it is installed",
		},
		"test functions, which unittest would not find": {
			files:    map[string]string{"pyproject.toml": "", "a/__init__.py": "", "tests/test_a.py": "def test_b(): assert True\n"},
			programs: []string{"python3", "python3 -m pytest"},
			test:     "python3 -m pytest -q --junit-xml=junit.xml", check: "python3 -m compileall -q a", nothingMissing: true,
		},
		"nothing of Python's": {
			files:    map[string]string{"pyproject.toml": "pytest", "a.py": "", "test_a.py": "import pytest\n"},
			programs: []string{"python3", "python3 -m pytest"},
			test:     "python3 -m pytest -q --junit-xml=junit.xml", check: "python3 -m compileall -q .", nothingMissing: true,
		},
		"pytest in an environment that is not active": {
			files:    map[string]string{"pyproject.toml": "pytest", "a.py": "", "test_a.py": "import pytest\n"},
			programs: []string{"python3", "venv/bin/python -m pytest"},
			test:     "python3 -m pytest -q --junit-xml=junit.xml", check: "python3 -m compileall -q .",
			missing: "pytest is in venv, which is not active: activate it (. venv/bin/activate) before pawl validate and pawl run",
		},
		"pytest that setup brings": {
			files:    map[string]string{"requirements.txt": "flask\n", "a.py": "", "test_a.py": "import pytest\n"},
			programs: []string{"python3"},
			setup:    "python3 -m venv .venv && .venv/bin/python -m pip install --quiet -r requirements.txt pytest",
			test:     ".venv/bin/python -m pytest -q --junit-xml=junit.xml", check: ".venv/bin/python -m compileall -q .", nothingMissing: true,
		},
		"make, where the language's own way is there": {
			files:    map[string]string{"Makefile": "test:\n\tgo test\n", "go.mod": "", "a.go": "", ".golangci.yml": ""},
			programs: []string{"go"},
			test:     "go test -json ./...", check: "go vet ./...",
			missing: "golangci-lint is not on the PATH, so this proposes go vet ./... for the check and not golangci-lint run",
		},
		"what a target of make calls": {
			files: map[string]string{"a.c": "", "setup.py": "", "test_a.py": "import unittest\n",
				"Makefile": "PY=~/venv/bin/python\nlint: ready\n\tcc -c a.c\nready:\n\tclang-tidy a.c\ntest:\n\t@$(PY) -m unittest\n"},
			programs: []string{"make", "cc", "python3"},
			test:     "python3 -m unittest discover", check: "python3 -m compileall -q .",
			missing: "~/venv/bin/python does not exist, so this proposes python3 -m unittest discover for the tests and not make test",
		},
		"a check of make's, where there is no other": {
			files:    map[string]string{"a.c": "", "Makefile": "lint: ready\n\tcc -c a.c\nready:\n\tclang-tidy a.c || true\n\tclang-tidy a.c\ntest:\n\t$(CC) a.c\n\t./a.out\n"},
			programs: []string{"make", "cc"},
			test:     "make test", missing: "clang-tidy is not on the PATH, so the check is not make lint",
		},
		"dotnet": {
			files: map[string]string{"global.json": "", "src/a.cs": "", "tests/b.cs": ""},
			test:  "dotnet test", check: "dotnet build",
			missing: "dotnet is not on the PATH, and it is needed for the tests (dotnet test): pawl validate fails until it is installed",
		},
		"pnpm": {
			files:    map[string]string{"package.json": `{"scripts": {"test": "x"}, "dependencies": {"a": "1"}}`, "pnpm-lock.yaml": "", "lib/a.js": ""},
			programs: []string{"npm", "node"},
			setup:    "npm install --no-audit --no-fund --no-package-lock", test: "npm test",
			missing: "pnpm is not on the PATH, so npm installs the packages, without pnpm-lock.yaml",
		},
		"pytest, which tox brings": {
			files:    map[string]string{"tox.ini": "[testenv]\ndeps = pytest\ncommands = pytest\n", "setup.py": "", "a.py": "", "test_a.py": ""},
			programs: []string{"python3", "tox"},
			test:     "tox -q -e py", check: "python3 -m compileall -q .",
			missing: "python3 has no pytest, so tox runs the tests",
		},
		"a pytest of its own": {
			files:    map[string]string{"pytest.ini": "", "setup.py": "", "a.py": "", "test_a.py": ""},
			programs: []string{"python3", "pytest"},
			test:     "PYTHONPATH=. pytest -q --junit-xml=junit.xml", check: "python3 -m compileall -q .",
			missing: "python3 has no pytest, so the tests are run by the pytest that is on the PATH, which may lack the libraries of python3",
		},
		"automake": {
			files:    map[string]string{"configure": "", "configure.ac": "", "Makefile.am": "", "src/a.c": ""},
			programs: []string{"make", "find"},
			setup:    "./configure --quiet", nothingMissing: true,
			test: `find . \( -name '*.ac' -o -name '*.am' -o -name '*.m4' -o -name '*.l' -o -name '*.ll' -o -name '*.y' -o -name '*.yy' \) -exec touch -t 200001010000 {} + && make check`,
		},
		"automake, flex and bison": {
			files:    map[string]string{"configure": "", "configure.ac": "", "Makefile.am": "", "src/a.c": ""},
			programs: []string{"make", "find", "flex", "bison"},
			setup:    "./configure --quiet", nothingMissing: true,
			test: `find . \( -name '*.ac' -o -name '*.am' -o -name '*.m4' \) -exec touch -t 200001010000 {} + && make check`,
		},
		"automake that nobody has run": {
			files:    map[string]string{"configure.ac": "", "Makefile.am": "", "src/a.c": "", "GNUmakefile": "ifneq ($(made),)\ninclude Makefile\nendif\n"},
			programs: []string{"make"},
			setup:    "autoreconf --install && ./configure --quiet", test: "make check",
			missing: "autoreconf is not on the PATH, and it is needed for setup (autoreconf --install && ./configure --quiet): pawl validate fails until it is installed",
		},
		"autoconf alone": {
			files:    map[string]string{"configure": "", "Makefile.in": "all:\n\t$(CC) a.c\ntest: all\n\t./a.out\n", "a.c": ""},
			programs: []string{"make"},
			setup:    "./configure --quiet", test: "make test", nothingMissing: true,
		},
		"autoconf without tests": {files: map[string]string{"configure": "", "Makefile.in": "all:\n", "a.c": ""}, nothingMissing: true},
		"a Makefile beside configure": {
			files:    map[string]string{"configure": "", "Makefile": "test:\n\t./a.sh\n", "Makefile.in": "check:\n", "a.c": ""},
			programs: []string{"make"}, test: "make test", nothingMissing: true,
		},
		"a test script, where node has a runner": {
			files:    map[string]string{"package.json": `{"scripts": {"test": "echo \"Error: no test specified\" && exit 1"}}`, "a.js": "", "a.test.js": ""},
			programs: []string{"npm", "node"},
			test:     "node --test", nothingMissing: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := here(test.files, "", test.programs...)
			assert.Equal(t, []string{test.setup, test.test, test.check}, []string{r.Setup, r.Test, r.Check})
			if test.nothingMissing {
				assert.Empty(t, r.Missing)
				return
			}
			assert.Contains(t, r.Missing, test.missing)
			assert.Contains(t, scaffold.Spec(kind.Improve, decided(r), scaffold.Options{Agent: scaffold.Agents[0]}), "# "+test.missing+".\n", "the file says so too")
		})
	}
}

// TestWhatAutomakeHasMadeIsNotMadeAgain: a clone may have what is made before what it is made of.
func TestWhatAutomakeHasMadeIsNotMadeAgain(t *testing.T) {
	t.Parallel()
	const makefile = "check: configure\nconfigure: configure.ac\n\tfalse\n"
	r := here(map[string]string{"configure": "", "configure.ac": "", "Makefile.am": "", "src/a.c": ""}, "", "make", "find")
	dir := t.TempDir()
	for name, text := range map[string]string{"configure": "#!/bin/sh\nprintf '" + strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(makefile) + "' >Makefile\n", "configure.ac": ""} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700))
	}
	then := time.Date(2010, 1, 1, 0, 0, 0, 0, time.UTC)
	require.NoError(t, os.Chtimes(filepath.Join(dir, "configure"), then, then))
	run := exec.Command("sh", "-c", r.Setup+" && "+r.Test)
	run.Dir = dir
	out, err := run.CombinedOutput()
	require.NoError(t, err, string(out))
}

func TestWhatOnlyPreparesABenchmarkIsNone(t *testing.T) {
	t.Parallel()
	assert.Empty(t, here(map[string]string{"benchmark-prereq.sh": "", "setup-bench.sh": "", "a.sh": ""}, "", "sh").Metric.Command)
	assert.Equal(t, "sh benchmark.sh", here(map[string]string{"benchmark-prereq.sh": "", "benchmark.sh": "", "a.sh": ""}, "", "sh").Metric.Command)
}

func TestAModuleWithinAModuleIsNotTouched(t *testing.T) {
	t.Parallel()
	bench := "package x\nfunc BenchmarkX(b *testing.B) {}\n"
	r := here(map[string]string{"go.mod": "", "a.go": "", "a_test.go": bench, "_examples/go.mod": "", "_examples/x/x.go": "", "_examples/x/x_test.go": bench}, "", "go")
	assert.Equal(t, []string{"**/*_test.go", "_examples/**", "go.mod", "pawl.yaml"}, r.Protect, "the guard does not see it")
	assert.Contains(t, r.Metric.Command, "-count 3 . |", "nor can go test, from here")
}

func TestThePackagesOfAWorkspaceAreInstalled(t *testing.T) {
	t.Parallel()
	for name, files := range map[string]map[string]string{
		"pnpm": {"package.json": `{"scripts": {"test": "pnpm -r test"}}`, "pnpm-workspace.yaml": "packages: [packages/*]", "pnpm-lock.yaml": ""},
		"yarn": {"package.json": `{"workspaces": {"packages": ["packages/*"]}, "scripts": {"test": "yarn workspaces run test"}}`, "yarn.lock": ""},
	} {
		files["packages/a/package.json"], files["packages/a/index.js"] = `{"devDependencies": {"tape": "1"}}`, ""
		r := here(files, "", name, "node")
		assert.Equal(t, name+" install --frozen-lockfile", r.Setup, "though the root itself needs none")
		assert.Equal(t, name+" test", r.Test)
		assert.Equal(t, []string{"**/node_modules/**"}, r.Keep)
	}
}

func TestTheProjectOfTheFolderIsMeant(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"go.mod": "module x", "a.go": "package a", "b.go": "package a",
		"package.json": `{"workspaces": ["packages/*"]}`, "package-lock.json": "{}",
		"packages/web/package.json": `{"scripts": {"test": "x"}, "dependencies": {"a": "1"}}`, "packages/web/src/x.js": "", "packages/web/src/deep/y.js": "",
		"packages/api/package.json": `{}`,
	}
	for _, folder := range []string{"packages/web", "packages/web/src/deep"} {
		r := here(files, folder, "npm", "go", "node")
		assert.Equal(t, "packages/web", r.Project, folder)
		assert.Equal(t, "packages/web", r.Folder, "the spec is the project's")
		assert.Equal(t, "cd packages/web && npm test", r.Test)
		assert.Equal(t, "npm ci --no-audit --no-fund", r.Setup, "where the lockfile is")
		assert.Equal(t, []string{"packages/web/src/**"}, r.Scope)
		assert.Equal(t, []string{"packages/web/package.json", "packages/web/pawl.yaml"}, r.Protect)
	}
	r := here(files, "", "npm", "go", "node")
	assert.Empty(t, r.Project)
	assert.Empty(t, r.Folder)
	assert.Equal(t, "go test -json ./...", r.Test)
	assert.Empty(t, here(files, "packages", "npm", "go").Project, "no project is there")

	r = here(map[string]string{"a/go.mod": "", "a/a.go": "", "a/b.go": "", "b/go.mod": ""}, "", "go")
	assert.Equal(t, "a", r.Project, "the largest, where none is meant")
	assert.Empty(t, r.Folder)
	assert.Contains(t, r.Protect, "pawl.yaml")
}

func TestWhatOthersWroteAndProgramsMadeIsNoneOfTheLoops(t *testing.T) {
	t.Parallel()
	r := here(map[string]string{
		"go.mod": "", "go.sum": "", "a.go": "package a", "x/vendor/y/y.go": "", "api.pb.go": "", "kinds.go": "// Code generated by \"stringer\"; DO NOT EDIT.\n",
		"vendor/modules.txt": "", "vendor/b/b_test.go": "func BenchmarkB(b *testing.B)", "third_party/c/1.c": "", "third_party/c/2.c": "", "third_party/c/3.c": "",
	}, "", "go")
	assert.Equal(t, []string{"go"}, r.Languages, "whatever others wrote theirs in")
	assert.Empty(t, r.Setup, "what it needs is in vendor")
	for _, glob := range []string{"vendor/**", "third_party/**", "x/vendor/**", "**/*.pb.go", "kinds.go"} {
		assert.Contains(t, r.Protect, glob)
	}
	assert.NotContains(t, r.Metric.Command, "-bench")
	assert.Equal(t, []string{"java"}, here(map[string]string{"pom.xml": "", "build.gradle": "", "src/main/java/A.java": ""}, "", "mvn").Languages, "once")
}

func TestADirectionIsReadAndNeverGuessed(t *testing.T) {
	t.Parallel()
	for output, want := range map[string]string{
		"METRIC bytes=610\n":                        "lower",
		"done in 3s\nMETRIC ops_per_sec=12000":      "higher",
		"METRIC throughput=3\nelapsed 3 s\n":        "higher",
		"parse x 1,234,567 ops/sec ±0.5% (90 runs)": "higher",
		"12.5 req/s":                   "higher",
		"BenchmarkX-8  100  123 ns/op": "lower",
		"total: 345ms":                 "lower",
		"real 0m1.234s":                "lower",
		"p99 latency 3":                "lower",
		"test coverage: 81.2%":         "higher",
		"81 MB/s":                      "higher",
		"score 17":                     "higher",
		"17":                           "",
		"METRIC n=4":                   "",
		"":                             "",
		"12 ops/s in 300 ms":           "",
	} {
		assert.Equal(t, want, scaffold.Direction(output), output)
	}
	for script, want := range map[string]string{"echo METRIC bytes=$(wc -c <x)": "lower", "echo METRIC score=3": "higher", "echo 3": ""} {
		assert.Equal(t, want, here(map[string]string{"bench.sh": script}, "", "sh").Metric.Direction, script)
	}
	size := here(map[string]string{"package.json": `{"scripts": {"size": "node s.js"}}`, "s.js": ""}, "", "npm", "node")
	assert.Equal(t, "npm run --silent size", size.Metric.Command)
	assert.Equal(t, "lower", size.Metric.Direction, "a size")
	r := here(map[string]string{"package.json": `{"scripts": {"bench": "node b.js", "size": "node s.js"}}`, "b.js": ""}, "", "npm", "node")
	assert.Empty(t, r.Metric.Direction)
	assert.Contains(t, scaffold.Spec(kind.Improve, r, scaffold.Options{Agent: scaffold.Agents[0]}), "direction: lower or higher", "which the reader of specs refuses")
}

// The command of the metric must count the same as Look. The test runs it in a shell, in a folder with the same
// pages.
func TestPagesHaveAQuestionOfTheirOwn(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		files map[string]string
		goal  string
		want  string
	}{
		"links that lead nowhere": {
			map[string]string{"README.md": "See [a](docs/a.md), [b](docs/b.md#x), [c](https://x.y/z), [d](#d) and [docs](docs).\n```\n[e](e.md)\n```\n`[f](f.md)`\n", "docs/a.md": "[up](../README.md) [gone](gone.md)"},
			"Fix the links to files that do not exist", "METRIC dead_links=2\n",
		},
		"a script that only builds the repository": {
			map[string]string{"README.md": "One two three.\n", ".github/workflows/lint.sh": "echo", ".config/x.py": ""},
			"Make the pages easier to read: shorter sentences that say the same", "METRIC words_in_a_sentence=3.00\n",
		},
		"none": {
			map[string]string{"README.md": "One two three. Four five six!\n", "a.md": "Seven eight nine?\n```\ncode is no sentence.\n```\n"},
			"Make the pages easier to read: shorter sentences that say the same", "METRIC words_in_a_sentence=3.00\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := here(test.files, "", "find", "sed", "awk", "grep", "wc")
			assert.Equal(t, test.goal, r.Metric.Goal)
			assert.Equal(t, "lower", r.Metric.Direction)
			dir := t.TempDir()
			for name, text := range test.files {
				require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
				require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
			}
			run := exec.Command("sh", "-c", r.Metric.Command)
			run.Dir = dir
			out, err := run.Output()
			require.NoError(t, err)
			assert.Equal(t, test.want, string(out))
		})
	}
}

// A change that deletes text would make the sentences shorter and the dead links fewer.
func TestPagesKeepWhatTheySay(t *testing.T) {
	t.Parallel()
	const words = "One two three four five. Six seven eight nine ten.\n"
	for name, test := range map[string]struct {
		readme, becomes string
		says            string // "" where the guard passes
	}{
		"shorter sentences": {words, "One two three. Four five. Six seven. Eight nine.\n", ""},
		"no more sentences": {words, "One two.\n", "the pages have 3 words left; they have to keep 8\n"},
		"a new dead link":   {words, "One two three four five six seven eight [nine](nine.md).\n", "./README.md: nine.md leads nowhere\n"},
		"links out of it":   {words + "[a](../b.md)\n", words + "[a](../b.md)\n", ""},
		"a dead link fixed": {words + "[a](gone.md) [b](more.md)\n", words + "[a](a.md) [b](more.md)\n", ""},
		"its text is gone":  {words + "[a](gone.md)\n", "One\n", "the pages have 2 words left; they have to keep 9\n"},
	} {
		t.Run(name, func(t *testing.T) {
			r := here(map[string]string{"README.md": test.readme, "a.md": "x\n"}, "", "find", "sed", "awk", "grep", "wc")
			assert.Contains(t, scaffold.Spec(kind.Improve, r, scaffold.Options{Agent: scaffold.Agents[0]}), "guard:\n  command: ")
			assert.NotContains(t, scaffold.Spec(kind.Deliver, r, scaffold.Options{Agent: scaffold.Agents[0]}), r.Metric.Guard, "a delivery may take pages away")
			dir := t.TempDir()
			for text, pass := range map[string]bool{test.readme: true, test.becomes: test.says == ""} {
				require.NoError(t, os.WriteFile(filepath.Join(dir, "a.md"), []byte("x\n"), 0o600))
				require.NoError(t, os.WriteFile(filepath.Join(dir, "README.md"), []byte(text), 0o600))
				run := exec.Command("sh", "-c", r.Metric.Guard)
				run.Dir = dir
				out, err := run.CombinedOutput()
				assert.Equal(t, pass, err == nil, "%s: %s", text, out)
				if !pass {
					assert.Equal(t, test.says, string(out))
				}
			}
		})
	}
}

// The main file of a package is in its scope, also if there are folders of sources beside it.
func TestTheMainFileOfAPackageIsInItsScope(t *testing.T) {
	t.Parallel()
	r := here(map[string]string{"package.json": `{"main": "./index.js"}`, "index.js": "", "lib/a.js": ""}, "", "node")
	assert.Equal(t, []string{"*.js", "lib/**"}, r.Scope)
	tested := here(map[string]string{"package.json": `{"main": "./index.js", "scripts": {"test": "node t"}}`, "index.js": "", "lib/a.js": ""}, "", "node", "npm", "find", "cat", "wc")
	assert.Equal(t, "find *.js lib -type f -exec cat {} + | wc -c", tested.Metric.Command)
	assert.Equal(t, []string{"lib/**"}, here(map[string]string{"package.json": `{"main": "lib/a"}`, "eslint.config.js": "", "lib/a.js": ""}, "", "node").Scope)
}

func TestHintsAreForWhatTheTreesLack(t *testing.T) {
	t.Parallel()
	r := here(map[string]string{".gitmodules": "[submodule]", "Makefile": "V = $(shell git describe)\n", "a.c": ""}, "", "make")
	require.Len(t, r.Hints, 1, "the trees have tags")
	assert.Contains(t, r.Hints[0], "submodules")
	assert.Empty(t, here(map[string]string{"Makefile": "", "a.c": ""}, "", "make").Hints)
}

// TestAProjectThatIsThereForTestsIsNotWhatTheRepositoryIs has a case like cJSON, which has a package.json below its
// tests.
func TestAProjectThatIsThereForTestsIsNotWhatTheRepositoryIs(t *testing.T) {
	t.Parallel()
	files := map[string]string{"a.c": "", "tests/json/package.json": "{}", "tests/json/a.js": "", "tests/json/b.js": ""}
	r := here(files, "", "cc")
	assert.Empty(t, r.Project)
	assert.Equal(t, []string{"c"}, r.Languages)
	assert.Equal(t, "tests/json", here(files, "tests/json", "node").Project, "unless it is the one that is meant")

	files = map[string]string{"CMakeLists.txt": "", "a.c": "", "web/package.json": "{}", "web/a.js": "", "web/b.js": ""}
	r = here(files, "", "node")
	assert.Empty(t, r.Project)
	assert.Contains(t, r.Test, "ctest")
	assert.Contains(t, r.Missing[0], "cmake is not on the PATH")
	assert.Equal(t, "web", here(files, "web", "node").Project)
}

// TestCodeWithoutAManifestIsCode checks that scripts beside a README do not make a repository of pages.
func TestCodeWithoutAManifestIsCode(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		files                map[string]string
		language, test, miss string
		scope                []string
	}{
		"python": {files: map[string]string{"a.py": "", "test_a.py": "import unittest\n", "run.sh": ""}, language: "python", test: "python3 -m unittest discover", scope: []string{"**/*.py"}},
		"node":   {files: map[string]string{"a.js": "", "a.test.js": ""}, language: "node", test: "node --test", scope: []string{"**/*.{js,mjs,cjs,jsx,ts,tsx}"}},
		"go":     {files: map[string]string{"a.go": "", "a_test.go": "func BenchmarkA(b *testing.B) {}"}, language: "go", miss: "there is no go.mod, so pawl does not know how to build or test go", scope: []string{"**/*.go"}},
		"java":   {files: map[string]string{"A.java": "", "B.kt": ""}, language: "java", miss: "there is no pom.xml, so pawl does not know how to build or test java", scope: []string{"**/*.{java,kt}"}},
		"dotnet": {files: map[string]string{"a/a.csproj": "", "a/A.cs": ""}, language: "dotnet", test: "dotnet test", scope: []string{"**"}},
	} {
		t.Run(name, func(t *testing.T) {
			c.files["README.md"] = "Read this. And that."
			r := here(c.files, "", "python3", "node", "go", "dotnet", "sh")
			assert.Equal(t, c.language, r.Languages[0])
			assert.Equal(t, c.test, r.Test)
			assert.Equal(t, c.scope, r.Scope)
			assert.NotContains(t, r.Metric.Command, "sentence")
			assert.Equal(t, c.miss, strings.Join(r.Missing, "; "))
		})
	}
	r := here(map[string]string{"a.py": "", "go.mod": "", "a.go": ""}, "", "go")
	assert.Equal(t, []string{"go"}, r.Languages, "where a manifest says what the repository is, scripts beside it are not")
}

// TestLanguagesWithTheirOwnRunner has what init proposes for the languages whose tests are found by where they are.
func TestLanguagesWithTheirOwnRunner(t *testing.T) {
	const sh, bash = "#!/bin/sh\n", "#! /usr/bin/env bash\n"
	for name, c := range map[string]struct {
		files                         map[string]string
		programs                      []string
		language, test, scope, sealed string
		missing                       string
	}{
		"perl": {
			files: map[string]string{"Makefile.PL": "", "lib/A.pm": "", "t/a.t": "", "xt/b.t": ""}, programs: []string{"perl", "prove"},
			language: "perl", test: "prove -l -r t", scope: "lib/**", sealed: "Makefile.PL pawl.yaml t/** xt/**",
		},
		"perl with C": {
			files: map[string]string{"Makefile.PL": "", "A.xs": "", "lib/A.pm": "", "t/a.t": ""}, programs: []string{"perl", "prove", "make"},
			language: "perl", test: "perl Makefile.PL >/dev/null && make >/dev/null && prove -b -r t", scope: "lib/**", sealed: "Makefile.PL pawl.yaml t/**",
		},
		"perl without a manifest": {
			files: map[string]string{"a.pl": "", "README.md": "Words."}, programs: []string{"perl"}, language: "perl", scope: "**/*.{pl,pm}", sealed: "pawl.yaml",
		},
		"lua": {
			files: map[string]string{"rockspecs/x-1.rockspec": "", "rockspecs/a.lua": "", "lua/x/a.lua": "", "spec/a_spec.lua": "", "docs/a.md": "Words."}, programs: []string{"busted"},
			language: "lua", test: "busted", scope: "lua/**", sealed: "pawl.yaml spec/**",
		},
		"lua with a script": {
			files: map[string]string{"json.lua": "", "test/test.lua": "", "bench/bench_all.lua": "", "README.md": "Words."}, programs: []string{"lua5.4"},
			language: "lua", test: "lua5.4 test/test.lua", scope: "**/*.lua", sealed: "pawl.yaml test/**",
		},
		"haskell": {
			files: map[string]string{"random.cabal": "", "src/A.hs": "", "test/B.hs": "", "run.sh": ""}, programs: []string{"cabal"},
			language: "haskell", test: "cabal test", scope: "src/**", sealed: "pawl.yaml random.cabal test/**",
		},
		"haskell with stack": {
			files: map[string]string{"stack.yaml": "", "a.cabal": "", "A.hs": ""}, programs: []string{"stack"}, language: "haskell", test: "stack test", scope: "**/*.{hs,lhs}", sealed: "a.cabal pawl.yaml stack.yaml",
		},
		"ocaml": {
			files: map[string]string{"dune-project": "", "lib/a.ml": "", "test/b.ml": ""}, programs: []string{"dune"},
			language: "ocaml", test: "dune test", scope: "lib/**", sealed: "dune-project pawl.yaml test/**",
		},
		"bats": {
			files: map[string]string{"bin/run": bash, "lib/a.bash": "", "docs/a.bats": "", "test/a.bats": "", "test/b/c.bats": ""}, programs: []string{"bats"},
			language: "shell", test: "bats --recursive test", scope: "bin/** lib/**", sealed: "**/*.bats pawl.yaml test/**",
		},
		"bats and nothing else with an extension": {
			files: map[string]string{"bin/run": bash, "test/a.bats": ""}, programs: []string{"bats"},
			language: "shell", test: "bats --recursive test", scope: "bin/**", sealed: "**/*.bats pawl.yaml test/**",
		},
		"shell scripts without extensions": {
			files: map[string]string{"shunit2": sh, "a_test.sh": "", "test_runner": sh, "lib/a.sh": "", "LICENSE": "free\n", "init.sh": ""}, programs: []string{"sh"},
			language: "shell", test: "sh test_runner", scope: "lib/** shunit2", sealed: "**/*_test.sh pawl.yaml",
		},
		"a test script for bash": {files: map[string]string{"run-tests": bash, "a.sh": ""}, programs: []string{"bash"}, language: "shell", test: "bash run-tests", scope: "*.sh", sealed: "pawl.yaml"},
		"a language that pawl knows by name": {
			files: map[string]string{"build.zig": "", "src/a.zig": "", "README.md": "Words. More words."}, language: "zig", scope: "**/*.zig", sealed: "pawl.yaml",
			missing: "pawl does not know how to build or test zig",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := here(c.files, "", c.programs...)
			assert.Equal(t, c.language, r.Languages[0])
			assert.Equal(t, c.test, r.Test)
			assert.Equal(t, c.scope, strings.Join(r.Scope, " "))
			assert.Equal(t, c.sealed, strings.Join(r.Protect, " "))
			assert.Equal(t, c.missing, strings.Join(r.Missing, "; "))
			assert.NotContains(t, r.Metric.Command, "sentence", "the repository is no docs")
		})
	}
	r := here(map[string]string{"a.sh": sh, "run": sh, "test.sh": sh}, "", "sh", "find", "cat", "wc")
	assert.Equal(t, "find run -type f -exec cat {} + | wc -c", r.Metric.Command)
}

// TestWhatOtherGlobsIncludeIsNotListed checks that folders of others below tests do not fill the list.
func TestWhatOtherGlobsIncludeIsNotListed(t *testing.T) {
	r := look(map[string]string{"package.json": "{}", "lib/a.js": "", "test/a.js": "", "test/vendor/x.js": "", "test/a/node_modules/b/b.js": "", "vendor/y.js": ""})
	assert.Equal(t, []string{"package.json", "pawl.yaml", "test/**", "vendor/**"}, r.Protect)
}

// TestManyGoBenchmarksAreMeasuredShortly: with a second for each, three times, they would take minutes.
func TestManyGoBenchmarksAreMeasuredShortly(t *testing.T) {
	t.Parallel()
	some := ""
	for i := range 9 {
		some += fmt.Sprintf("func Benchmark%d(b *testing.B) {}\n", i)
	}
	many := look(map[string]string{"go.mod": "module a\n", "a_test.go": "package a\n" + some})
	require.Contains(t, many.Metric.Command, " -count 3 -benchtime 100ms . |")
	require.Contains(t, many.Metric.Why, "the geometric mean of the 9 Go benchmarks in the root, each three times for 100 ms")
	few := look(map[string]string{"go.mod": "module a\n", "a_test.go": "package a\nfunc BenchmarkA(b *testing.B) {}\n"})
	require.NotContains(t, few.Metric.Command, "benchtime")
	parts := look(map[string]string{"go.mod": "module a\n", "a_test.go": "package a\nfunc BenchmarkA(b *testing.B) { for _, f := range files() { b.Run(f, read) } }\n"})
	require.Contains(t, parts.Metric.Command, " -benchtime 100ms ", "a benchmark with parts may be hundreds")
	require.Contains(t, parts.Metric.Why, "the Go benchmark in the root, each three times for 100 ms")
}

// TestPackagesOfBenchmarksAreNamed includes the case that the root is one of them.
func TestPackagesOfBenchmarksAreNamed(t *testing.T) {
	t.Parallel()
	const bench = "package a\nfunc BenchmarkA(b *testing.B) {}\n"
	both := look(map[string]string{"go.mod": "module a\n", "lexer/a_test.go": bench, "z_test.go": bench})
	require.Contains(t, both.Metric.Why, "the geometric mean of the 2 Go benchmarks in ./lexer and the root")
}

// A guard that waits for changes never ends.
func TestATestScriptThatWatchesIsProposedInItsFormThatRunsOnce(t *testing.T) {
	t.Parallel()
	for scripts, want := range map[string]string{
		`{"test": "vitest"}`:                               "npx --no-install vitest run --reporter=default --reporter=junit --outputFile.junit=junit.xml",
		`{"test": "jest --watch"}`:                         "npx --no-install jest --json --outputFile=jest.json",
		`{"test": "NODE_ENV=test jest --watchAll"}`:        `PATH="$PWD/node_modules/.bin:$PATH"; NODE_ENV=test jest`,
		`{"test": "tsc -w"}`:                               "npx --no-install tsc",
		`{"test": "vitest", "test:run": "vitest run"}`:     "npm run --silent test:run",
		`{"test": "nodemon x.js", "test:ci": "node x.js"}`: "npm run --silent test:ci",
		`{"test": "vitest run"}`:                           "npm test -- --reporter=default --reporter=junit --outputFile.junit=junit.xml",
		`{"test": "vitest run --coverage"}`:                "npm test -- --reporter=default --reporter=junit --outputFile.junit=junit.xml",
		`{"test": "vitest run && echo x"}`:                 "npm test",
		`{"test": "vitest run --reporter=dot"}`:            "npm test",
		`{"test": "jest", "test:ci": "jest --ci"}`:         "npm test -- --json --outputFile=jest.json",
		`{"test": "node --test --watch"}`:                  "node --test",
	} {
		r := here(map[string]string{"package.json": `{"scripts": ` + scripts + `}`, "index.js": ""}, "", "npm", "node")
		assert.Equal(t, want, r.Test, scripts)
	}
}
