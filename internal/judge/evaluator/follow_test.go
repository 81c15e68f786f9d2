package evaluator_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"pawl/internal/judge/evaluator"
	"pawl/internal/spec"
)

// scripted is a repository whose evaluators run other files of it.
var scripted = map[string]string{
	"Makefile": `PY := python3
BENCH = $(PY) bench/run.py
include mk/more.mk
.PHONY: check bench
all: check
check: lint unit
	@sh tools/check.sh
lint:
	-$(PY) -m tools.lint src
unit: ; $(MAKE) -C sub test
bench: build
	$(BENCH) --data data/in.txt
	$(RUNNER) tools/other.sh
build: src/main.c
	$(CC) -o app $<
loop: loop
	./tools/loop.sh
far: ; node $(shell sh tools/which.sh)/x.js
ALL := tools/other.sh
ALL += tools/extra.sh
plus:
	for f in $(ALL); do sh $$f; done
each: ; for f in other extra; do sh tools/$$f.sh; done
out: a.out
%.out: ; sh tools/other.sh
`,
	"mk/more.mk":          "extra:\n\tbash tools/extra.sh $$HOME\n",
	"sub/Makefile":        "test:\n\t./run-tests.sh\n",
	"sub/run-tests.sh":    "#!/usr/bin/env bash\nset -eu\ncd \"$(dirname \"$0\")/..\"\npython3 bench/compare.py\n",
	"tools/check.sh":      "here=$(cd \"$(dirname \"$0\")\" && pwd)\n. \"$here/lib.sh\"\nsource \"${0%/*}/env.sh\"\n\"$here/inner.sh\" x\nnode src/index.js <data/in.txt\n\"$TOOL\" run\n",
	"tools/lib.sh":        "bash \"$(dirname \"${BASH_SOURCE[0]}\")/deeper.sh\"\n",
	"tools/env.sh":        "X=1\n",
	"tools/which.sh":      "sh tools/extra.sh\n",
	"tools/inner.sh":      "exec awk -f tools/sum.awk\n",
	"tools/deeper.sh":     "exit 0\n",
	"tools/sum.awk":       "{}\n",
	"tools/loop.sh":       "sh tools/loop.sh\nmake loop\n",
	"tools/extra.sh":      "exit 0\n",
	"tools/other.sh":      "exit 0\n",
	"tools/broken.sh":     "if then fi ((\n",
	"tools/lint.py":       "import sys\n",
	"bench/run.py":        "import os, bench_util as u, lib.stats\nfrom src import app\nfrom .helper import (\n    a,\n    b,\n)\n",
	"bench/bench_util.py": "import bench_more\n", "bench/bench_more.py": "", "bench/lib/__init__.py": "", "bench/lib/stats.py": "from . import deep\nfrom ..helper import x\n", "bench/lib/deep.py": "",
	"bench/helper.py": "", "bench/unused.py": "", "bench/compare.py": "print(1)\n",
	"measure.py": "import app\n", "app.py": "",
	"src/app.py": "", "src/index.js": "import './util.js'\n", "src/util.js": "", "src/main.c": "", "data/in.txt": "",
	"js/bench.mjs": "import x from './lib/x.js';\nconst y = require(\"./y\");\nawait import('../src/index.js');\nimport 'react';\n", "js/lib/x.js": "", "js/y.js": "require('./z.json')\n", "js/z.json": "{}",
	"package.json":   `{"scripts": {"pretest": "sh tools/env.sh", "test": "npm run unit && jest", "unit": "node js/bench.mjs", "lint": "eslint src"}}`,
	"jest.config.js": "",
	"justfile":       "dir := \"tools\"\nimport 'more.just'\ndefault: test\ntest arg='x': (prepare 'y') lint\n  @sh {{dir}}/check.sh {{arg}}\nprepare x:\n    bash {{ dir }}/extra.sh\nlint:\n  #!/usr/bin/env bash\n  set -e\n  python3 -m tools.lint\nruby:\n  #!/usr/bin/env ruby\n  puts 1\n",
	"more.just":      "more:\n\tsh tools/other.sh\n",
	"composer.json":  `{"scripts": {"test": ["@lint", "sh tools/env.sh"], "lint": "sh tools/extra.sh"}}`,
	"tools/asks.sh":  "[ -e x ] || sh tools/other.sh\n",
	"Rakefile":       "task :default\n", "tool.rb": "require './x'\n",
}

func TestP3_WhatScriptsAndTargetsRunInTurnIsSealed(t *testing.T) {
	const checked = "tools/check.sh tools/lib.sh tools/env.sh tools/inner.sh tools/deeper.sh tools/sum.awk"
	for command, want := range map[string]struct{ sealed, unread string }{
		`make check`:                       {"Makefile mk/more.mk sub/Makefile sub/run-tests.sh tools/lint.py bench/compare.py " + checked, "tools/check.sh: $TOOL"},
		`make`:                             {"Makefile mk/more.mk sub/Makefile sub/run-tests.sh tools/lint.py bench/compare.py " + checked, "tools/check.sh: $TOOL"},
		`make bench`:                       {"Makefile mk/more.mk bench/run.py bench/bench_util.py bench/bench_more.py bench/lib/__init__.py bench/lib/stats.py bench/lib/deep.py bench/helper.py tools/other.sh", "Makefile: … tools/other.sh"},
		`make extra`:                       {"Makefile mk/more.mk tools/extra.sh", ""},
		`make loop`:                        {"Makefile mk/more.mk tools/loop.sh", ""},
		`make nothing`:                     {"Makefile mk/more.mk", "Makefile: nothing"},
		`make each`:                        {"Makefile mk/more.mk tools/other.sh tools/extra.sh", ""},
		`make plus`:                        {"Makefile mk/more.mk tools/other.sh tools/extra.sh", ""},
		`make far`:                         {"Makefile mk/more.mk tools/which.sh tools/extra.sh", ""},
		`yarn tsx js/bench.mjs`:            {"package.json js/bench.mjs js/lib/x.js js/y.js js/z.json jest.config.js", ""},
		`pnpm run tsx js/bench.mjs`:        {"package.json js/bench.mjs js/lib/x.js js/y.js js/z.json jest.config.js", ""},
		`make out`:                         {"Makefile mk/more.mk", "Makefile: a.out"},
		`make $TARGET`:                     {"Makefile mk/more.mk sub/Makefile sub/run-tests.sh tools/lint.py bench/compare.py " + checked, "Makefile: $TARGET, tools/check.sh: $TOOL"},
		`sh tools/check.sh`:                {checked, "tools/check.sh: $TOOL"},
		`./tools/check.sh`:                 {checked, "tools/check.sh: $TOOL"},
		`PATH=tools:$PATH check.sh`:        {checked, "tools/check.sh: $TOOL"},
		`cd tools && ./inner.sh`:           {"tools/inner.sh", ""}, // inner.sh looks for tools/tools/sum.awk there
		`sh tools/in*.sh`:                  {"tools/inner.sh tools/sum.awk", ""},
		`sh tools/broken.sh`:               {"tools/broken.sh", "tools/broken.sh"},
		`python3 bench/run.py`:             {"bench/run.py bench/bench_util.py bench/bench_more.py bench/lib/__init__.py bench/lib/stats.py bench/lib/deep.py bench/helper.py", ""},
		`cd bench && python3 -m lib.stats`: {"bench/lib/stats.py bench/lib/deep.py", ""},
		`python3 measure.py`:               {"measure.py", ""}, // the files beside it are what it measures
		`node js/bench.mjs`:                {"js/bench.mjs js/lib/x.js js/y.js js/z.json", ""},
		`npm test`:                         {"package.json tools/env.sh js/bench.mjs js/lib/x.js js/y.js js/z.json jest.config.js", ""},
		`npm run unit`:                     {"package.json js/bench.mjs js/lib/x.js js/y.js js/z.json jest.config.js", ""},
		`yarn test`:                        {"package.json tools/env.sh js/bench.mjs js/lib/x.js js/y.js js/z.json jest.config.js", ""},
		`yarn run unit`:                    {"package.json js/bench.mjs js/lib/x.js js/y.js js/z.json jest.config.js", ""},
		`yarn -s unit`:                     {"package.json js/bench.mjs js/lib/x.js js/y.js js/z.json jest.config.js", ""},
		`yarn node-tool; pnpm jest`:        {"package.json jest.config.js", ""},
		`pnpm unit`:                        {"package.json js/bench.mjs js/lib/x.js js/y.js js/z.json jest.config.js", ""},
		`yarn && yarn install --immutable`: {"jest.config.js", ""}, // settings of a program that a manifest may run
		`npm run nothing`:                  {"package.json jest.config.js", "package.json: nothing"},
		`just`:                             {"justfile more.just tools/lint.py tools/extra.sh " + checked, "tools/check.sh: $TOOL"},
		`just more`:                        {"justfile more.just tools/other.sh", ""},
		`just ruby`:                        {"justfile more.just", "justfile: $_ruby"},
		`composer test`:                    {"composer.json tools/env.sh tools/extra.sh", ""},
		`sh tools/asks.sh`:                 {"tools/asks.sh tools/other.sh", ""},
		`rake`:                             {"Rakefile", "Rakefile"},
		`ruby tool.rb`:                     {"tool.rb", "tool.rb"},
	} {
		files := slices.Sorted(maps.Keys(scripted))
		for where, s := range map[string]spec.Spec{"verify": {Verify: spec.Verify{Command: command}}, "check": {Check: spec.Check{Command: command}}} {
			s.Scope = []string{"src/**"} // check.sh runs src/index.js
			seals := evaluator.Find(s, files, func(name string) string { return scripted[name] })
			var sealed []string
			for _, name := range files {
				if seals.Has(name) {
					sealed = append(sealed, name)
				}
			}
			assert.ElementsMatch(t, strings.Fields(want.sealed), sealed, "%s %q", where, command)
			assert.Equal(t, want.unread, strings.Join(seals.Unread, ", "), "%s %q", where, command)
		}
	}
}

// TestP3_TheSourceOfATestProgramIsSealed: a target builds the program that it runs, and the name of the source does
// not begin with test_.
func TestP3_TheSourceOfATestProgramIsSealed(t *testing.T) {
	texts := map[string]string{"Makefile": "test: xmltest tool\n\t./xmltest\n\t./tool --version\n", "run.sh": "build/bin/check_tests -q\n"}
	for _, name := range []string{"xmltest.cpp", "xmltest.h", "tool.c", "src/check_tests.c", "latest.c"} {
		texts[name] = ""
	}
	for command, want := range map[string][]string{
		"make test":                         {"Makefile", "xmltest.cpp"},
		"sh run.sh":                         {"run.sh", "src/check_tests.c"},
		"cc latest.c -o latest && ./latest": {"latest.c"}, // the guard names it too
	} {
		s := spec.Spec{Scope: []string{"**/*.{c,cpp,h}"}, Guard: spec.Guard{Command: command}}
		files := slices.Sorted(maps.Keys(texts))
		assert.ElementsMatch(t, want, evaluator.Find(s, files, func(name string) string { return texts[name] }).Files, command)
		s.Scope = append(s.Scope, "xmltest.cpp", "src/**")
		assert.NotContains(t, evaluator.Find(s, files, func(name string) string { return texts[name] }).Files, "xmltest.cpp")
	}
}

// TestP3_TheManifestsOfAWorkspaceAreSealed: the script of a package decides which tests run.
func TestP3_TheManifestsOfAWorkspaceAreSealed(t *testing.T) {
	files := map[string]string{
		"package.json":                           `{"workspaces": ["packages/*"], "scripts": {"test": "npm test --workspaces", "all": "lerna run --stream unit", "t": "turbo run unit"}}`,
		"packages/a/package.json":                `{"scripts": {"test": "node run.js", "unit": "sh unit.sh"}}`,
		"packages/a/run.js":                      "import './help.js'\n",
		"packages/a/help.js":                     "",
		"packages/a/unit.sh":                     "exit 0\n",
		"packages/a/src/index.js":                "",
		"packages/a/node_modules/x/package.json": "{}",
		"other/package.json":                     "{}",
	}
	const manifests = "other/package.json package.json packages/a/package.json"
	for command, want := range map[string]string{
		"npm test": manifests + " packages/a/help.js packages/a/run.js", "npm -w a test": "other/package.json packages/a/help.js packages/a/package.json packages/a/run.js",
		"npm run unit --workspace=a": manifests + " packages/a/unit.sh",
		"yarn workspace a unit":      "other/package.json packages/a/package.json packages/a/unit.sh", "yarn workspaces foreach -A run unit": "other/package.json packages/a/package.json packages/a/unit.sh",
		"pnpm -r test": manifests + " packages/a/help.js packages/a/run.js", "pnpm --filter a run unit": manifests + " packages/a/unit.sh",
		"npm run all": manifests + " packages/a/unit.sh", "yarn t": manifests + " packages/a/unit.sh", "npx nx run-many -t unit": "other/package.json packages/a/package.json packages/a/unit.sh",
		"cd packages/a && npm test -ws": "packages/a/help.js packages/a/package.json packages/a/run.js",
	} {
		seals := evaluator.Find(spec.Spec{Scope: []string{"**"}, Guard: spec.Guard{Command: command}}, slices.Sorted(maps.Keys(files)), func(name string) string { return files[name] })
		var sealed []string
		for _, name := range slices.Sorted(maps.Keys(files)) {
			if seals.Has(name) && !strings.Contains(name, "node_modules") {
				sealed = append(sealed, name)
			}
		}
		assert.ElementsMatch(t, strings.Fields(want), sealed, command)
	}
}

// TestP3_AScopeThatNamesWhatScriptsRunOpensIt: a script often runs the code that it measures, too.
func TestP3_AScopeThatNamesWhatScriptsRunOpensIt(t *testing.T) {
	files := slices.Sorted(maps.Keys(scripted))
	for scope, open := range map[string]bool{"src/**": true, "src/index.js": true, "**": false, "**/*.js": false, "*/index.js": false} {
		s := spec.Spec{Scope: []string{scope}, Verify: spec.Verify{Command: "sh tools/check.sh"}}
		assert.Equal(t, !open, evaluator.Find(s, files, func(name string) string { return scripted[name] }).Has("src/index.js"), scope)
	}
	s := spec.Spec{Scope: []string{"tools/**"}, Verify: spec.Verify{Command: "sh tools/check.sh"}}
	assert.True(t, evaluator.Find(s, files, func(name string) string { return scripted[name] }).Has("tools/check.sh"), "no scope opens what the command itself names")
}

// FuzzFollow reads arbitrary files.
func FuzzFollow(f *testing.F) {
	for _, text := range scripted {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		files := []string{"Makefile", "justfile", "package.json", "x/a.sh", "x/a.py", "x/a.js", "x/b.py"}
		s := spec.Spec{Verify: spec.Verify{Command: "make; just; npm test; sh x/a.sh; python3 x/a.py; node x/a.js"}}
		for _, file := range evaluator.Find(s, files, func(string) string { return text }).Files {
			if !slices.Contains(files, file) {
				t.Fatalf("%q is no file", file)
			}
		}
	})
}

// Names of files that the base may lack: make would take them for up to date or include them, and Python would import
// them first.
func TestP3_WhatOutranksScriptsAndTargetsIsSealedWhileAbsent(t *testing.T) {
	files := map[string]string{
		"Makefile":     "-include local.mk mk/*.mk $(OBJECTS:.o=.d)\n.PHONY: check\ncheck: unit app.o\n\t./app\nunit:\n\tgo test ./...\ndocs: docs/a.md\n",
		"bench/run.py": "import json.decoder, sys, copy as c\nfrom csv import reader\nfrom solution import answer\nfrom .own import x\n",
		"bench/own.py": "", "mk/a.mk": "", "docs/a.md": "",
		"tests/test_a.py": "", "justfile": "import? 'local.just'\ncheck:\n  ./x.sh\n",
	}
	for command, want := range map[string]string{
		"make check":             "+local.mk +mk/b.mk +unit +unit/x +app.o +app +Makefile.sh +local.mk.sh mk/a.mk -check -docs/b.md -solution.py",
		"make docs":              "-docs/b.md -docs -check",
		"python3 bench/run.py":   "+bench/json.py +bench/csv/__init__.py +bench/copy.py -bench/solution.py -bench/argparse.py -bench/x.py -json.py",
		"python3 -m unittest":    "+tests/__init__.py +tests/deep/__init__.py +signal.py -src/__init__.py -tests/helper.py -token_store.py",
		"just check":             "+local.just +x.sh",
		"sh -c '. ./hook; true'": "+hook",
	} {
		s := spec.Spec{Scope: []string{"**"}, Guard: spec.Guard{Command: command}}
		seals := evaluator.Find(s, slices.Sorted(maps.Keys(files)), func(name string) string { return files[name] })
		for _, g := range seals.Groups {
			assert.NotContains(t, g.Glob, "$", "no file has a name that only make knows")
		}
		for name := range strings.FieldsSeq(want) {
			file := strings.TrimLeft(name, "+-")
			kept := slices.ContainsFunc(seals.Groups, func(g evaluator.Group) bool { return g.New && spec.MatchAny([]string{g.Glob}, file) })
			switch name[0] {
			case '+':
				assert.True(t, kept, "%s: %s", command, file)
			case '-':
				assert.False(t, kept, "%s: %s", command, file)
			default:
				assert.True(t, seals.Has(file), "%s: %s", command, file)
			}
		}
	}
}

// Settings can name files that a runner loads before the tests, or in place of what they use.
func TestP3_WhatSettingsHaveARunnerLoadIsSealed(t *testing.T) {
	for name, c := range map[string]struct{ command, file, text, want string }{
		"jest's setup":                 {"npx jest", "jest.config.js", "module.exports = { setupFilesAfterEnv: ['<rootDir>/lib/setup.js'], collectCoverageFrom: ['lib/app.js'] }", "lib/setup.js"},
		"its transform":                {"npx jest", "package.json", `{"main": "lib/app.js", "jest": {"transform": {"^.+$": "./lib/setup"}}}`, "lib/setup.js"},
		"vitest's setup":               {"npx vitest run", "vitest.config.ts", "export default { test: { globalSetup: './lib/setup.js',\n include: ['lib/app.js'] } }", "lib/setup.js"},
		"mocha's require":              {"npx mocha", ".mocharc.yml", "spec: lib/app.js\nrequire:\n  - lib/setup.js\n  - x\n", "lib/setup.js"},
		"pytest's plugins":             {"pytest", "conftest.py", "pytest_plugins = ['lib.plugin']\n", "lib/plugin.py"},
		"what a config imports":        {"npx eslint lib", "eslint.config.js", "export default { plugins: { own: require('./lib/setup.js') } }", "lib/setup.js"},
		"what a conftest imports":      {"cd lib && pytest", "lib/conftest.py", "from plugin import x\n", "lib/plugin.py"},
		"what a nearer config imports": {"cd lib && npx eslint .", "lib/eslint.config.js", "import own from './setup.js'\n", "lib/setup.js"},
		"not what is measured":         {"npx jest", "package.json", `{"main": "./lib/app.js", "jest": {}}`, ""},
	} {
		files := map[string]string{"lib/setup.js": "", "lib/app.js": "", "lib/plugin.py": "", c.file: c.text}
		for scope, want := range map[string]string{"**": c.want, "lib/**": ""} {
			s := spec.Spec{Scope: []string{scope}, Guard: spec.Guard{Command: c.command}}
			seals := evaluator.Find(s, slices.Sorted(maps.Keys(files)), func(name string) string { return files[name] })
			var sealed []string
			for _, file := range []string{"lib/app.js", "lib/plugin.py", "lib/setup.js"} {
				if seals.Has(file) {
					sealed = append(sealed, file)
				}
			}
			assert.Equal(t, want, strings.Join(sealed, " "), "%s, scope %s", name, scope)
		}
	}
}
