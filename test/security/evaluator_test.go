package security_test

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"pawl/test/harness/world"
)

// judges is a guard that names the evaluators of several languages. guard.sh passes, so none of them has to
// be installed: what is sealed is read from the command.
const judges = "sh guard.sh || { make check && python3 bench/run.py && python3 -m unittest discover -s tests && go test ./pkg/... && npm test && npx jest && cargo test && python3 -m pytest spec && tox && mvn test && ./out/bench; }"

// evaluators is a repository that they judge.
var evaluators = map[string]string{
	"Makefile": "include more.mk\n-include local.mk\ncheck: lint unit\n\tsh guard.sh\nunit:\n\tsh guard.sh\n", "more.mk": "lint:\n\t./lint/all.sh\n", "lint/all.sh": "cd \"$(dirname \"$0\")\"\n. ./rules.sh\n", "lint/rules.sh": ":\n",
	"bench/run.py": "import json\nfrom clock import now\n", "bench/clock.py": "import time as now\n", "tests/test_n.py": "import unittest\n", "tests/helper.py": "x = 1\n", "pkg/n.go": "package pkg\n", "pkg/n_test.go": "package pkg\n",
	"go.mod": "module n\n", "package.json": `{"scripts": {"test": "jest"}, "jest": {"setupFiles": ["./lib/setup.js"]}}` + "\n", "lib/setup.js": "x\n", "src/n.test.js": "\n", "Cargo.toml": "[package]\nname = \"n\"\n", "spec/test_m.py": "\n", "old/vendor/example.com/assert/a.go": "package assert\n", "old/node_modules/jest/index.js": "\n", "pyproject.toml": "[tool.pytest.ini_options]\n",
}

// outranks are what an agent tries that leaves the guard's own file alone. Its scope is everything, and new
// files are allowed.
var outranks = []escape{
	same("change a file that make includes", `printf 'lint:;\n' >more.mk`, sealed),
	same("change a script that a make target runs", `echo "exit 0" >lint/all.sh`, sealed),
	same("change a file that a script sources", `echo "exit 0" >lint/rules.sh`, sealed),
	same("change a module that a benchmark imports", `echo "now = 0" >bench/clock.py`, sealed),
	same("empty the tests that unittest discovers", `: >tests/test_n.py`, sealed),
	same("remove the tests that unittest discovers", `rm -r tests`, sealed),
	same("empty a module that the tests import", `: >tests/helper.py`, sealed),
	same("choose the tests in __init__.py", `echo 'def load_tests(*_): return __import__("unittest").TestSuite()' >tests/__init__.py`, sealed),
	same("put a module before unittest", `echo 'raise SystemExit(0)' >unittest.py`, sealed),
	same("put a package before pytest", `mkdir pytest; echo 'raise SystemExit(0)' >pytest/__main__.py`, sealed),
	same("put GNUmakefile before Makefile", `printf 'check:;\n' >GNUmakefile`, sealed),
	same("put makefile before Makefile", `ln -s work/other makefile`, sealed),
	same("deselect tests in conftest.py", `echo 'collect_ignore_glob = ["*"]' >conftest.py`, sealed),
	same("deselect tests in a conftest.py below", `echo 'def pytest_collection_modifyitems(items): items[:] = []' >spec/conftest.py`, sealed),
	same("add a pytest.ini", `printf '[pytest]\naddopts = --collect-only\n' >pytest.ini`, sealed),
	same("change pytest's options in pyproject.toml", `echo 'addopts = "--collect-only"' >>pyproject.toml`, sealed),
	same("make npm use another shell", `echo 'script-shell=/bin/true' >.npmrc`, sealed),
	same("put a program into node_modules/.bin", `mkdir -p node_modules/.bin; printf '#!/bin/true\n' >node_modules/.bin/jest; chmod +x node_modules/.bin/jest; git add -f node_modules`, sealed),
	same("replace node_modules by a link", `mkdir -p work/m/.bin; ln -s work/m node_modules`, sealed),
	same("change a test that jest finds", `echo 'test.skip()' >src/n.test.js`, sealed),
	same("add a jest.config.js", `echo 'module.exports = {testMatch: []}' >jest.config.js`, sealed),
	same("take a package out of the module with a go.mod", `echo 'module away' >pkg/go.mod`, sealed),
	same("leave packages out with an ignore in go.mod", `printf 'ignore (\n\t./pkg\n)\n' >>go.mod`, sealed),
	same("put a copy in a library's place with a replace in go.mod", `echo 'replace example.com/assert => ./work/assert' >>go.mod`, sealed),
	same("have go tool run another program", `echo 'tool n/work/lint' >>go.mod`, sealed),
	same("replace go.mod by a link", `mkdir -p work/m; cp go.mod work/m/mod; ln -sf work/m/mod go.mod`, sealed),
	same("vendor another library", `mkdir vendor; echo '# x v1' >vendor/modules.txt`, sealed),
	same("change a vendored library", `echo "func Equal() {}" >>old/vendor/example.com/assert/a.go`, sealed),
	same("change a package in node_modules", `echo "process.exit(0)" >old/node_modules/jest/index.js`, sealed),
	same("change a Go test", `printf 'package pkg\n\n' >pkg/n_test.go`, sealed),
	same("set cargo's runner", `mkdir .cargo; echo '[target."cfg(all())"]' >.cargo/config.toml`, sealed),
	same("add a build.rs", `echo 'fn main() {}' >build.rs`, sealed),
	same("exclude tests in Cargo.toml", `printf '[lib]\ntest = false\n' >>Cargo.toml`, sealed),
	same("put a file in the place of a make target", `: >unit`, sealed),
	same("have make write its Makefile anew", `printf 'check:;\n' >Makefile.sh`, sealed),
	same("add a file that make includes if it is there", `echo 'SHELL = /bin/true' >local.mk`, sealed),
	same("put a module before one that Python's runner needs", `echo 'raise SystemExit(0)' >argparse.py`, sealed),
	same("put a module before one that a benchmark needs", `echo 'raise SystemExit(0)' >bench/json.py`, sealed),
	same("have Python load sitecustomize.py", `echo 'raise SystemExit(0)' >sitecustomize.py`, sealed),
	same("bring a plugin for pytest", `mkdir x.dist-info; printf '[pytest11]\nx = work\n' >x.dist-info/entry_points.txt`, sealed),
	same("bring a plugin for tox", `: >toxfile.py`, sealed),
	same("put a Python environment before the judge's", `mkdir -p .venv/bin; : >.venv/bin/pytest; git add -f .venv`, sealed),
	same("mock a package for jest", `mkdir __mocks__; echo 'module.exports = {}' >__mocks__/fs.js`, sealed),
	same("empty what jest loads before the tests", `: >lib/setup.js`, sealed),
	same("lead imports elsewhere with tsconfig.json", `echo '{"compilerOptions": {"paths": {"*": ["./work/*"]}}}' >tsconfig.json`, sealed),
	same("have yarn load .pnp.cjs", `echo 'process.exit(0)' >.pnp.cjs`, sealed),
	same("make pnpm use another shell", `echo 'scriptShell: /bin/true' >pnpm-workspace.yaml`, sealed),
	same("leave tests out in .config/nextest.toml", `mkdir .config; echo 'default-filter = "none()"' >.config/nextest.toml`, sealed),
	same("have JUnit pass over what fails", `mkdir -p src/main/resources; : >src/main/resources/junit-platform.properties`, sealed),
	same("put a program where a build makes one", `mkdir out; printf '#!/bin/true\n' >out/bench; chmod +x out/bench`, sealed),
	same("convert tests with .gitattributes", `echo '*.py text eol=crlf' >tests/.gitattributes`, sealed),
}

// worldOf makes a world whose loops are confined in one of the ways, and returns sandbox.use for them. After all is written,
// servesIn starts what runs them.
func worldOf(t *testing.T, way string) (w *world.World, use string) {
	t.Helper()
	switch way {
	case byNobody:
		return world.New(t, ""), "off"
	case byRoot:
		return world.New(t, ""), "required"
	}
	t.Parallel()
	return world.Alone(t, ""), "required"
}

// some returns every third deed for the ways in which that is all: each has others.
func some[D any](i int, way string, deeds []D) (out []D) {
	if way == byRoot || way == byNobody || len(deeds) < 3 {
		return deeds
	}
	for n := i % 3; n < len(deeds); n += 3 {
		out = append(out, deeds[n])
	}
	return out
}

func servesIn(t *testing.T, w *world.World, way string) {
	t.Helper()
	if way != byRoot && way != byNobody {
		serves(t, w, way)
	}
}

// TestP3_SealedMeansTheEvaluator does what is in outranks, one deed an iteration.
func TestP3_SealedMeansTheEvaluator(t *testing.T) {
	for i, way := range deedsHere() {
		t.Run(way, func(t *testing.T) {
			if i > 0 {
				world.Slow(t, "a sandbox makes no difference to it")
			}
			needsWay(t, way)
			w, use := worldOf(t, way)
			for name, content := range evaluators {
				w.Write("repo/"+name, content)
			}
			w.Commit("what judges in several languages")
			deeds := some(i, way, world.Sample(2, outranks))
			for i, e := range deeds {
				w.Write(fmt.Sprintf("deeds/%d.sh", i+1), e.script+"\n")
			}
			w.Script(`echo $(($(cat work/n) + 1)) >work/n; echo "deed $PAWL_ITERATION"; bash -e "$WORLD/deeds/$PAWL_ITERATION.sh" >&2; echo $? >"$WORLD/deeds/$PAWL_ITERATION.code"`)
			w.Set(doc{"scope": []string{"**"}, "newFiles": "allow", "guard": doc{"command": judges}, "sandbox": doc{"use": use},
				"limits": doc{"iterations": len(deeds), "discards": len(deeds)}})
			servesIn(t, w, way)
			w.Start("run", "--json", "--yes", w.SpecFile()).Wait()
			blocked := mends(w)
			for i, e := range deeds {
				assert.Contains(t, blocked[i+1], e.with, e.name)
				assert.Equal(t, "0\n", w.Read(fmt.Sprintf("deeds/%d.code", i+1)), e.name)
			}
			require.Len(t, w.Results(w.Loop), len(deeds)+1)
		})
	}
}

// TestP3_WhatANormalChangeTouchesStaysFree is the other side of it: whoever writes code adds tests,
// packages and dependencies.
func TestP3_WhatANormalChangeTouchesStaysFree(t *testing.T) {
	deeds := []deed{
		{"add tests to all of it", `echo "import unittest" >tests/test_new.py; echo "package pkg" >pkg/new_test.go; : >src/new.test.js; : >spec/test_new.py`, ""},
		{"go on with these tests", `echo "#" >>tests/test_new.py; echo "//" >>pkg/new_test.go; git mv spec/test_new.py spec/test_newer.py`, ""},
		{"add a package", `mkdir -p src/new; : >src/new/__init__.py; echo "package new" >src/new/new.go`, ""},
		{"add a dependency", `echo "require x v1" >>go.mod; : >go.sum`, ""},
		{"change what the scope names", `echo "#" >>spec/test_m.py; echo "collect_ignore = []" >spec/conftest.py`, ""},
	}
	w := world.New(t, "").Does(deeds...)
	for name, content := range evaluators {
		w.Write("repo/"+name, content)
	}
	w.Commit("what judges in several languages")
	w.Before = w.Snapshot()
	w.Set(doc{"scope": []string{"**", "spec/**"}, "newFiles": "allow", "guard": doc{"command": judges}})
	w.Run(0)
	w.Come(deeds...)
}

// TestP3_AMeasureOutsideOfTheRepositoryIsWatched has an agent write a program that verify names, which lies
// outside of the repository.
func TestP3_AMeasureOutsideOfTheRepositoryIsWatched(t *testing.T) {
	world.Slow(t, "TestP3_SealedMeansTheEvaluator has the seals")
	for i, way := range deedsHere() {
		t.Run(way, func(t *testing.T) {
			if i > 0 && way != byNobody {
				world.Slow(t, "one way of a sandbox")
			}
			needsWay(t, way)
			w, use := worldOf(t, way)
			w.Script(`echo 11 >work/n; if echo "echo 99" >"$WORLD/bin/measure" || mv /dev/null "$WORLD/bin/measure"; then echo "change the measure"; else echo "leave it"; fi`)
			w.Write("bin/measure", "#!/bin/sh\ncat work/n\n")
			w.Write("bin/other", "")
			// The spec opens the folder that it is in: only that it judges keeps it from being written.
			w.Set(doc{"verify": doc{"command": "sh '" + w.Dir + "/bin/measure'"}, "sandbox": doc{"use": use, "allow": []string{w.Dir + "/bin"}}})
			servesIn(t, w, way)
			s := w.Pawl("run", "--yes", w.SpecFile())
			require.Contains(t, s.Err, "1 file outside of the repository")
			if way != byNobody {
				require.Equal(t, 0, s.Code, s.Err)
				require.Equal(t, "11", w.Kept("work/n"), "it is measured as before")
				require.Equal(t, "leave it", w.Results(w.Loop)[1].Description())
				return
			}
			require.Equal(t, 2, s.Code, s.Err)
			require.Contains(t, s.Out, "PRECONDITION_FAILED")
			require.Contains(t, s.Err, "bin/measure, which is outside of the repository and judges the work, has changed since the contract was drawn up")
			require.Equal(t, "10", w.Kept("work/n"), "nothing is kept by it")
		})
	}
}

// TestE6_AnotherRepositoryInItsPlaceIsNeitherReadNorRun has an agent without a sandbox put a copy of the user's
// repository in its place, with hooks and filters of its own.
func TestE6_AnotherRepositoryInItsPlaceIsNeitherReadNorRun(t *testing.T) {
	w := world.New(t, `echo $(($(cat work/n) + 1)) >work/n; echo "raise"
		[ -e "$REPO.away" ] && exit
		mv "$REPO" "$REPO.away"; cp -a "$REPO.away" "$REPO"
		for hook in pre-receive post-receive reference-transaction; do printf '#!/bin/sh\ntouch "%s/canary"\n' "$WORLD" >"$REPO/.git/hooks/$hook"; chmod +x "$REPO/.git/hooks/$hook"; done
		git -C "$REPO" config filter.x.clean "touch $WORLD/canary; cat"; echo "* filter=x" >"$REPO/.git/info/attributes"; touch "$REPO"/*`)
	w.Set(doc{"agent": doc{"env": doc{"WORLD": w.Dir, "REPO": w.Repo}}, "sandbox": doc{"use": "off"}, "limits": doc{"iterations": 2}})
	s := w.Pawl("run", "--yes", w.SpecFile())
	require.Equal(t, 0, s.Code, s.Err)
	require.Contains(t, s.Err, "repo is not the repository that the loop started with")
	st := w.Show()
	p := w.Pawl("approve", w.Loop, "--hash", st.Proposal.Hash)
	p = w.Pawl("apply", w.Loop, "--hash", st.Proposal.Hash)
	require.NotEqual(t, 0, p.Code, p.Out)
	require.Contains(t, p.Err+p.Out, "is not the repository that the loop started with")
	require.NoFileExists(t, w.Dir+"/canary")
	out, err := exec.Command("git", "-C", w.Repo, "for-each-ref", "refs/heads/pawl").CombinedOutput()
	require.NoError(t, err, string(out))
	require.NotContains(t, string(out), st.Head, "nothing was pushed there")

	require.NoError(t, os.RemoveAll(w.Repo))
	require.NoError(t, os.Rename(w.Repo+".away", w.Repo))
	p = w.Pawl("apply", w.Loop, "--hash", st.Proposal.Hash)
	require.Equal(t, 0, p.Code, p.Err)
	require.Equal(t, "12\n", w.Read("repo/work/n"), "the user's own is back, and everything goes on")
	w.Before = w.Snapshot()
}
