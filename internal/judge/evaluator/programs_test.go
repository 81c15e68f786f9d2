package evaluator_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"pawl/internal/judge/evaluator"
)

func TestProgramsAreThoseThatACommandCannotDoWithout(t *testing.T) {
	for command, want := range map[string][]string{
		"go test ./...":                               {"go"},
		"cd web && npm ci && npm test":                {"npm"},
		"X=1 ./gradlew test":                          nil,
		"python3 -m venv .venv && .venv/bin/pip -q":   {"python3"},
		"timeout 30 make -s bench | awk '{print $1}'": {"make", "timeout", "awk"},
		"command -v jq; mvn -v || true; npx tsc":      {"npx"},
		"if which cargo; then cargo test; fi; ctest":  {"ctest"},
		"f() { mvn test; }; f && (true; dotnet test)": {"dotnet"},
		"$RUNNER test; [ -e x ]; echo hello":          nil,
		"sh -c 'perl x' && time \"ruby\" x && ruby y": {"sh", "perl", "ruby"},
		"'unclosed": nil,

		// What is not sure, since it may be found elsewhere, or may be missing.
		"PATH=$PWD/bin:$PATH tool":               nil,
		"export PATH=bin:$PATH; tool":            nil,
		"PATH=bin:$PATH; sh -c tool":             nil,
		"env PATH=bin tool":                      nil,
		"env -i tool":                            nil,
		"cd bin && PATH=.:$PATH tool":            nil,
		". ./env.sh && tool":                     nil,
		"eval \"$(cat env.sh)\"; tool":           nil,
		"sh -c '. ./env.sh; helper'":             {"sh"},
		"[ -f x ] && . ./x; tool":                nil,
		"if true; then . ./x; fi; tool":          nil,
		"pip install -q x && x":                  {"pip"},
		"make install && x":                      {"make"},
		"tool; echo 5":                           nil,
		"X=./run.sh; $X":                         nil,
		"tool & ruby x":                          {"ruby"},
		"test -f x && tool; echo 5":              nil,
		"set -e; false && perl x; tool; echo 5":  {"tool"},
		"set -o errexit; tool; true":             {"tool"},
		"go vet ./... && golangci-lint run":      {"go", "golangci-lint"},
		"env A=1 go vet":                         {"go", "env"},
		"python ${ARGS:-x} $X && ruby ${Y#z} $X": {"python", "ruby"},
	} {
		assert.Equal(t, want, evaluator.NeedsOf(command).Programs, command)
	}
}

// TestAnAgentsProgramsAreThoseThatRunInAnyCase, whatever follows them.
func TestAnAgentsProgramsAreThoseThatRunInAnyCase(t *testing.T) {
	for command, want := range map[string][]string{
		"agent -p; git status":      {"agent", "git"},
		"[ -f .env ] && x; agent":   {"agent"},
		"agent || other":            nil,
		". ./env; agent":            nil,
		"cat x | agent -p; rm -f x": {"cat", "agent", "rm"},
	} {
		assert.Equal(t, want, evaluator.NeedsOfAgent(command).Programs, command)
	}
}

func TestATargetNeedsWhatItsRecipesCall(t *testing.T) {
	const makefile = "PY = ~/venv/bin/python\ntest: build lint\n\t@$(PY) -m unittest $@ $(ARGS)\n\t./run $<\nbuild: test\n\t$(CC) $(CFLAGS) a.c\nlint:\n\t/opt/lint x || true\n\t/opt/lint y && $(OTHER) z\nother:\n\tperl x\n"
	for target, want := range map[string][]string{
		"test": {"cc", "/opt/lint", "~/venv/bin/python"}, "other": {"perl"}, "nothing": nil,
	} {
		assert.Equal(t, want, evaluator.Called("make "+target, func(string) string { return makefile }), target)
	}
}

func TestAScriptNeedsWhatItsCommandsCall(t *testing.T) {
	const manifest = `{"scripts": {"pretest": "tsc -p .", "test": "c8 mocha && node-gyp x", "lint": "eslint . || true; X=1 prettier -c .", "again": "npm run lint"}}`
	for command, want := range map[string][]string{
		"npm test": {"tsc", "mocha", "c8"}, "npm t -- --bail": {"tsc", "mocha", "c8"}, "pnpm --silent run lint && x": {"prettier"}, "npm run --silent again": {"npm"},
		"yarn test": {"tsc", "mocha", "c8"}, "yarn run --silent lint": {"prettier"}, "yarn lint": {"prettier"},
		"npm run": nil, "npm ci": nil, "yarn": nil, "yarn t": nil, "yarn install": nil, "make test": nil,
	} {
		assert.Equal(t, want, evaluator.Scripted(command, func(file string) string { return map[string]string{"package.json": manifest}[file] }), command)
	}
	pnp := map[string]string{"package.json": manifest, ".pnp.cjs": "#!/usr/bin/env node"}
	assert.Empty(t, evaluator.Scripted("yarn test", func(file string) string { return pnp[file] }), "yarn has them elsewhere")
	assert.NotEmpty(t, evaluator.Scripted("npm test", func(file string) string { return pnp[file] }))
}

// TestWhatMakeCallsIsCertainInAPlainMakefile: no PATH of its own, no conditions, no file that is up to date.
func TestWhatMakeCallsIsCertainInAPlainMakefile(t *testing.T) {
	for text, want := range map[string]bool{
		"test:\n\tcheck-it\n": true,
		"PYTHON ?= python3\ntest: gen\n\t@check-it\ngen:\n\tx\n": true,
		"export PATH := bin:$(PATH)\ntest:\n\tcheck-it\n":        false,
		"test:\n\tPATH=bin check-it\n":                           false,
		"include other.mk\ntest:\n\tcheck-it\n":                  false,
		"ifeq ($(CI),1)\ntest:\n\tcheck-it\nendif\n":             false,
		"test:\n\t-check-it\n":                                   false,
		"test: tool\n\tcheck-it\ntool:\n\tbuild-it\n":            false, // tool exists
		".PHONY: tool\ntest: tool\ntool:\n\tbuild-it\n":          true,
		"%.o: %.c\n\tcheck-it\ntest:\n\tcheck-it\n":              false,
	} {
		read := func(file string) string {
			if file == "Makefile" {
				return text
			}
			return ""
		}
		got := evaluator.Certain("make test", read, func(file string) bool { return file == "tool" })
		require.Equal(t, want, got, text)
	}
	require.False(t, evaluator.Certain("npm test", func(string) string { return "" }, nil))
}
