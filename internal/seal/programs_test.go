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

func TestACommandThatRewritesFilesIsKnown(t *testing.T) {
	files := map[string]string{
		"Makefile":     "lint: fmt\n\tgo vet ./...\nfmt:\n\t@gofmt -s -w .\ncheck:\n\tgofmt -l .\n",
		"package.json": `{"scripts": {"lint": "eslint src --fix && tsc", "check": "prettier --check .", "prefmt": "prettier --write ."}}`,
	}
	for command, want := range map[string]string{
		"gofmt -w .": "gofmt -w .", "gofmt -l .": "", "go fmt ./...": "go fmt ./...", "go vet ./... && goimports -w a.go": "goimports -w a.go",
		"make lint": "gofmt -s -w .", "make check": "", "make nothing": "",
		"npm run --silent lint": "eslint src --fix", "yarn lint": "eslint src --fix", "npm run check": "", "pnpm run fmt": "prettier --write .",
		"npx prettier -w src": "prettier -w src", "npx --no-install eslint .": "", "pnpm exec eslint --fix .": "eslint --fix .",
		"cargo fmt": "cargo fmt", "cargo fmt --all -- --check": "", "cargo clippy -- -D warnings": "", "cargo clippy --fix": "cargo clippy --fix",
		"python3 -m black .": "black .", "black --check .": "", ".venv/bin/python -m ruff format": "ruff format", "uv run ruff check --fix .": "ruff check --fix .", "ruff check .": "",
		"node_modules/.bin/eslint . --fix": "node_modules/.bin/eslint . --fix", "clang-format -i a.c": "clang-format -i a.c", "mix format --check-formatted": "", "./gradlew spotlessApply": "./gradlew spotlessApply",
		"timeout 30 rustfmt a.rs": "rustfmt a.rs", "eslint . --fix-dry-run": "", "echo gofmt -w": "", "": "", "'open": "",
	} {
		assert.Equal(t, want, seal.Rewrites(command, func(file string) string { return files[file] }), command)
	}
}
