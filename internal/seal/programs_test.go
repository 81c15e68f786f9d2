package seal_test

import (
	"testing"

	"pawl/internal/seal"

	"github.com/stretchr/testify/assert"
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
		"f() { mvn test; }; f && (dotnet test; true)": {"dotnet"},
		"$RUNNER test; [ -e x ]; echo hello":          nil,
		"sh -c 'perl x' && time \"ruby\" x && ruby y": {"sh", "ruby"},
		"'unclosed":                              nil,
		"env A=1 go vet":                         {"go", "env"},
		"python ${ARGS:-x} $X && ruby ${Y#z} $X": {"python", "ruby"},
	} {
		assert.Equal(t, want, seal.Programs(command), command)
	}
}

func TestATargetNeedsWhatItsRecipesCall(t *testing.T) {
	const makefile = "PY = ~/venv/bin/python\ntest: build lint\n\t@$(PY) -m unittest $@ $(ARGS)\n\t./run $<\nbuild: test\n\t$(CC) $(CFLAGS) a.c\nlint:\n\t/opt/lint x || true\n\t/opt/lint y; $(OTHER) z\nother:\n\tperl x\n"
	for target, want := range map[string][]string{
		"test": {"cc", "/opt/lint", "~/venv/bin/python"}, "other": {"perl"}, "nothing": nil,
	} {
		assert.Equal(t, want, seal.Called("make "+target, func(string) string { return makefile }), target)
	}
}

func TestAScriptNeedsWhatItsCommandsCall(t *testing.T) {
	const manifest = `{"scripts": {"pretest": "tsc -p .", "test": "c8 mocha && node-gyp x", "lint": "eslint . || true; X=1 prettier -c .", "again": "npm run lint"}}`
	for command, want := range map[string][]string{
		"npm test": {"tsc", "mocha", "c8"}, "npm t -- --bail": {"tsc", "mocha", "c8"}, "pnpm --silent run lint && x": {"prettier"}, "npm run --silent again": {"npm"},
		"yarn test": {"tsc", "mocha", "c8"}, "yarn run --silent lint": {"prettier"}, "yarn lint": {"prettier"},
		"npm run": nil, "npm ci": nil, "yarn": nil, "yarn t": nil, "yarn install": nil, "make test": nil,
	} {
		assert.Equal(t, want, seal.Scripted(command, func(file string) string { return map[string]string{"package.json": manifest}[file] }), command)
	}
	pnp := map[string]string{"package.json": manifest, ".pnp.cjs": "#!/usr/bin/env node"}
	assert.Empty(t, seal.Scripted("yarn test", func(file string) string { return pnp[file] }), "yarn has them elsewhere")
	assert.NotEmpty(t, seal.Scripted("npm test", func(file string) string { return pnp[file] }))
}
