package preflight_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/activities/preflight"
	"pawl/internal/exec/sandbox"
	"pawl/internal/home"
	"pawl/internal/spec"
	"pawl/test/harness/gittest"
	"pawl/test/harness/tier"
)

// TestP0_AGuardHasToSeeTheCode tries guards of a Python package: one that imports it from the clone, one that imports
// it from the user's folder, as after `pip install -e .`, and one that only compiles it.
func TestP0_AGuardHasToSeeTheCode(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("there is no Python")
	}
	dir := t.TempDir()
	user := filepath.Join(dir, "user")
	gittest.Write(t, user+"/src/hill/__init__.py", "def climb(n):\n    return n + 1\n")
	gittest.Write(t, user+"/tests/test_hill.py", "import unittest\nimport hill\n\n\nclass T(unittest.TestCase):\n    def test_climb(self):\n        self.assertEqual(hill.climb(1), 2)\n")
	gittest.Write(t, user+"/notes/n", "1\n")
	gittest.Git(t, user, "init", "-q", "-b", "main")
	gittest.Git(t, user, "add", "-A")
	gittest.Git(t, user, "commit", "-qm", "base")
	h := home.Home{Dir: filepath.Join(dir, "home")}
	const tests = "python3 -m unittest discover -q -s tests"
	for _, c := range []struct {
		name, guard, scope string
		keys               string
		path               string // PYTHONPATH
		problem            string
		hollow             bool
		tested             string
	}{
		{name: "it sees the clone", guard: "PYTHONPATH=src " + tests, scope: "src/**", tested: "1 passed (unittest)"},
		{name: "it sees the user's folder", guard: tests, scope: "src/**", path: user + "/src", problem: "the guard does not see your code: pawl put a syntax error into 1 file in scope (src/hill/__init__.py), but this still passed: `" + tests + "`. What it uses instead: `import hill` takes " + user + "/src/hill/__init__.py"},
		{name: "it is left out", guard: tests, scope: "src/**", path: user + "/src", keys: `, "validate": {"canary": false}`, tested: "1 passed (unittest)"},
		{name: "it only compiles", guard: "python3 -m compileall -q src", scope: "src/**", hollow: true, tested: "its tests are not counted: no output that pawl reads"},
		{name: "no code is in scope", guard: "true", scope: "notes/**", tested: "its tests are not counted: no output that pawl reads; canary not tried: no code that pawl can break"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.path != "" && !sandbox.Probe().Overlay && sandbox.Probe() != (sandbox.Machine{}) {
				t.Skip("the user's folder is out of reach")
			}
			t.Setenv("PYTHONPATH", c.path)
			s, err := spec.Parse(fmt.Appendf(nil, `{"goal": "g", "repo": {"path": %q}, "scope": [%q], "verify": {"command": "echo 1"}, "guard": {"command": %q},
				"agent": {"command": ["true"]}, "approvals": {"tools": ["*"]}%s}`, user, c.scope, c.guard, c.keys))
			require.NoError(t, err)
			f, err := preflight.DryRun(t.Context(), h, "x", s, func(string) {})
			require.NoError(t, err)
			var what []string
			for _, p := range f.Problems {
				what = append(what, p.Check+": "+p.What)
			}
			if c.problem == "" {
				require.Empty(t, what)
			} else {
				require.Equal(t, []string{"guard: " + c.problem}, what)
				require.Contains(t, f.Problems[0].Do, "validate.canary")
			}
			hollow := slices.ContainsFunc(f.Notes, func(note string) bool {
				return strings.HasPrefix(note, "pawl made every function in scope fail, but this still passed: `"+c.guard+"`")
			})
			require.Equal(t, c.hollow, hollow, f.Notes)
			if c.tested != "" {
				require.Equal(t, c.tested, f.Guard.Tested.String())
			}
			require.Equal(t, "def climb(n):\n    return n + 1\n", gittest.Read(t, user+"/src/hill/__init__.py"), "the user's files are as they were")
		})
	}
}

// TestP0_AMetricHasToSeeTheCode: a number that stays the same while the code is broken is noted, with and without a guard.
func TestP0_AMetricHasToSeeTheCode(t *testing.T) {
	const same = "diff -rq src was >/dev/null"
	for _, c := range []struct {
		name, verify, guard string
		unmoved             bool
	}{
		{"a constant", "echo METRIC ms=120", "", true},
		{"a constant beside a guard", "echo METRIC ms=120", same, true},
		{"what an earlier build has left is gone", same + " && wc -l <words >built; cat built", "", false},
		{"another file", "wc -c <words", same, true},
		{"words in the code", "grep -rch return src | tail -1", "", false},
		{"the number of files", "find src -name '*.py' | wc -l", "", false},
		{"another file in scope", "wc -c <src/notes", "", false},
		{"the code of the user's repository, by its path", "cat REPO/src/* | wc -c", "", false},
		{"the size of the code", "cat src/* | wc -c", "", false},
		{"it fails on broken code", same + " && echo 120", same, false},
		{"no number of broken code", same + " && echo 120 || true", "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			user := filepath.Join(dir, "user")
			for _, file := range []string{"src/a.py", "was/a.py"} {
				gittest.Write(t, filepath.Join(user, file), "def climb(n):\n    return n + 1\n")
			}
			gittest.Write(t, user+"/words", "many\n")
			gittest.Write(t, user+"/src/notes", "some\n")
			gittest.Write(t, user+"/was/notes", "some\n")
			gittest.Write(t, user+"/.gitignore", "built\n")
			gittest.Git(t, user, "init", "-q", "-b", "main")
			gittest.Git(t, user, "add", "-A")
			gittest.Git(t, user, "commit", "-qm", "base")
			s, err := spec.Parse(fmt.Appendf(nil, `{"goal": "g", "repo": {"path": %q}, "scope": ["src/**"], "verify": {"command": %q, "direction": "lower"}, "guard": {"command": %q},
				"agent": {"command": ["true"]}, "approvals": {"tools": ["*"]}}`, user, strings.ReplaceAll(c.verify, "REPO", user), c.guard))
			require.NoError(t, err)
			f, err := preflight.DryRun(t.Context(), home.Home{Dir: filepath.Join(dir, "home")}, "x", s, func(string) {})
			require.NoError(t, err)
			require.Empty(t, f.Problems)
			noted := slices.ContainsFunc(f.Notes, func(note string) bool {
				return strings.HasPrefix(note, "verify may not see your code: it printed ")
			})
			require.Equal(t, c.unmoved, noted, f.Notes)
		})
	}
}

// TestEachPartOfTheCodeHasToBeSeen: a guard that notices only one package of a workspace also fails when all are
// broken at once.
func TestEachPartOfTheCodeHasToBeSeen(t *testing.T) {
	for name, c := range map[string]struct {
		guard  string
		more   int // further packages
		unseen string
		left   string
	}{
		"all of it":     {guard: "! grep -rq 'broken by pawl' packages", unseen: ""},
		"one package":   {guard: "! grep -rq 'broken by pawl' --exclude-dir=b packages", unseen: "packages/b (JavaScript) (2 files: packages/b/i.js, …); packages/b (Python) (1 file: packages/b/gen.py)"},
		"many packages": {guard: "! grep -rq 'broken by pawl' --include=*.js packages", more: 12, unseen: "packages/b (Python) (1 file: packages/b/gen.py)", left: "Not tried: packages/c7, packages/c8, packages/c9"},
	} {
		t.Run(name, func(t *testing.T) {
			if !tier.Nightly && c.more > 0 {
				t.Skip("runs with -tags nightly: two packages are tried one by one, too")
			}
			t.Parallel()
			dir := t.TempDir()
			user := filepath.Join(dir, "user")
			gittest.Write(t, user+"/package.json", "{}")
			packages := []string{"a", "b"}
			for i := range c.more {
				packages = append(packages, fmt.Sprint("c", i))
			}
			for _, p := range packages {
				gittest.Write(t, filepath.Join(user, "packages", p, "package.json"), "{}")
				gittest.Write(t, filepath.Join(user, "packages", p, "i.js"), "module.exports = 1;\n")
			}
			gittest.Write(t, user+"/packages/b/j.js", "module.exports = 2;\n")
			gittest.Write(t, user+"/packages/b/gen.py", "x = 1\n")
			gittest.Git(t, user, "init", "-q", "-b", "main")
			gittest.Git(t, user, "add", "-A")
			gittest.Git(t, user, "commit", "-qm", "base")
			s, err := spec.Parse(fmt.Appendf(nil, `{"goal": "g", "repo": {"path": %q}, "scope": ["packages/**"], "verify": {"command": "echo 1"}, "guard": {"command": %q},
				"agent": {"command": ["true"]}, "approvals": {"tools": ["*"]}}`, user, c.guard))
			require.NoError(t, err)
			var steps []string
			f, err := preflight.DryRun(t.Context(), home.Home{Dir: filepath.Join(dir, "home")}, "x", s, func(step string) { steps = append(steps, step) })
			require.NoError(t, err)
			require.Empty(t, f.Problems)
			notes := strings.Join(f.Notes, "\n")
			if c.unseen == "" {
				require.NotContains(t, notes, "does not see")
			} else {
				require.Contains(t, notes, "the guard does not see all of your code. These parts had a syntax error, each by itself, and still this passed: `"+c.guard+"`. "+c.unseen+". ")
			}
			require.Equal(t, c.left != "", strings.Contains(notes, "it was not tried whether"), notes)
			require.Contains(t, notes, c.left)
			require.Contains(t, steps, "canary: packages/a")
		})
	}
}

// TestACommandOfTheCanaryHasALimitOfItsOwn: broken code may hang, which counts as noticed. The time of one command is
// not taken from the next.
func TestACommandOfTheCanaryHasALimitOfItsOwn(t *testing.T) {
	for name, c := range map[string]struct {
		guard, test       string // how many seconds each takes on broken code
		guardMax, testMax string
		blind             bool
	}{
		"the first hangs":                 {"25", "0", "3s", "1m", false},
		"both take most of what they may": {"3", "3", "5s", "5s", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			user := filepath.Join(dir, "user")
			for _, file := range []string{"src/a.py", "was/a.py"} {
				gittest.Write(t, filepath.Join(user, file), "def climb(n):\n    return n + 1\n")
			}
			gittest.Git(t, user, "init", "-q", "-b", "main")
			gittest.Git(t, user, "add", "-A")
			gittest.Git(t, user, "commit", "-qm", "base")
			takes := func(seconds string) string { return "diff -rq src was >/dev/null || sleep " + seconds }
			s, err := spec.Parse(fmt.Appendf(nil, `{"kind": "deliver", "goal": "g", "repo": {"path": %q}, "scope": ["src/**"], "guard": {"command": %q, "timeout": %q},
				"test": {"command": %q, "timeout": %q}, "agent": {"command": ["true"]}, "approvals": {"tools": ["*"]}}`, user, takes(c.guard), c.guardMax, takes(c.test), c.testMax))
			require.NoError(t, err)
			f, err := preflight.DryRun(t.Context(), home.Home{Dir: filepath.Join(dir, "home")}, "x", s, func(string) {})
			require.NoError(t, err)
			require.Empty(t, f.Problems)
			require.Equal(t, c.blind, slices.ContainsFunc(f.Notes, func(note string) bool { return strings.HasPrefix(note, "the guard does not see your code") }), f.Notes)
		})
	}
}

// TestTestsThatARunnerListsAndNothingSealsAreNoted: a runner finds tests that neither its settings nor their names
// reveal.
func TestTestsThatARunnerListsAndNothingSealsAreNoted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	user := filepath.Join(dir, "user")
	for name, does := range map[string]string{
		"mocha":  `*--dry-run*) printf '{"file": "%s"}\n' "$PWD/src/a.check.js" "$PWD/src/a.js.test.js" "$PWD/own/b.js" "$PWD/src/open.test.js"; echo src/d.js: 1 ;; *) ! grep -q broken src/a.js ;;`,
		"jest":   `*--listTests*) echo src/failed.js; exit 1 ;;`,
		"vitest": `*--filesOnly*) echo in.js ;;`,
		// As version 1.65 prints it: names from the folder of the tests on.
		"playwright": `*"--list --reporter json"*) printf '{"rootDir": "%s", "file": "page.js"}\n' "$PWD/ui" ;;`,
	} {
		gittest.Write(t, user+"/node_modules/.bin/"+name, "#!/bin/sh\ncase \"$*\" in "+does+" esac\n")
		require.NoError(t, os.Chmod(user+"/node_modules/.bin/"+name, 0o755))
	}
	for _, name := range []string{"src/a.js", "src/a.check.js", "src/a.js.test.js", "src/open.test.js", "src/d.js", "src/failed.js", "own/b.js", "sub/in.js", "ui/page.js", "page.js"} {
		gittest.Write(t, user+"/"+name, "\n")
	}
	gittest.Write(t, user+"/package.json", `{"scripts": {"test": "mocha -b"}}`)
	gittest.Git(t, user, "init", "-q", "-b", "main")
	gittest.Git(t, user, "add", "-A", "-f")
	gittest.Git(t, user, "commit", "-qm", "base")
	s, err := spec.Parse(fmt.Appendf(nil, `{"goal": "g", "repo": {"path": %q}, "scope": ["src/**", "src/open.test.js", "sub/**", "ui/**"], "verify": {"command": "echo 1"},
		"guard": {"command": "node_modules/.bin/mocha && node_modules/.bin/jest && node_modules/.bin/playwright test && cd sub && ../node_modules/.bin/vitest run"},
		"agent": {"command": ["true"]}, "approvals": {"tools": ["*"]}}`, user))
	require.NoError(t, err)
	f, err := preflight.DryRun(t.Context(), home.Home{Dir: filepath.Join(dir, "home")}, "x", s, func(string) {})
	require.NoError(t, err)
	require.Empty(t, f.Problems)
	require.Contains(t, f.Notes, "these files have tests that the runner finds, but they are not sealed and the agent may change them: src/a.check.js, src/d.js, ui/page.js, sub/in.js. Add those that hold only tests to protect")
}

// TestSoManyRunnersAreAskedForTheirTests has one runner more than the limit.
func TestSoManyRunnersAreAskedForTheirTests(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	user := filepath.Join(dir, "user")
	gittest.Write(t, user+"/bin/mocha", "#!/bin/sh\ncase \"$*\" in *--dry-run*) echo own.check.js ;; *) ! grep -q broken ../d1/own.check.js ;; esac\n")
	require.NoError(t, os.Chmod(user+"/bin/mocha", 0o755))
	guard, folders := "cd bin", []string{"d1", "d2", "d3", "d4", "d5"}
	for _, name := range folders {
		gittest.Write(t, user+"/"+name+"/own.check.js", "\n")
		guard += " && cd ../" + name + " && ../bin/mocha"
	}
	gittest.Git(t, user, "init", "-q", "-b", "main")
	gittest.Git(t, user, "add", "-A", "-f")
	gittest.Git(t, user, "commit", "-qm", "base")
	s, err := spec.Parse(fmt.Appendf(nil, `{"goal": "g", "repo": {"path": %q}, "scope": ["d*/**"], "verify": {"command": "echo 1"}, "guard": {"command": %q},
		"agent": {"command": ["true"]}, "approvals": {"tools": ["*"]}}`, user, guard))
	require.NoError(t, err)
	f, err := preflight.DryRun(t.Context(), home.Home{Dir: filepath.Join(dir, "home")}, "x", s, func(string) {})
	require.NoError(t, err)
	require.Empty(t, f.Problems)
	asked := strings.Join(folders[:preflight.MaxListings], "/own.check.js, ") + "/own.check.js"
	require.Contains(t, f.Notes, "these files have tests that the runner finds, but they are not sealed and the agent may change them: "+asked+". Add those that hold only tests to protect")
}
