package shell_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/lib/shell"
)

func TestACommandThatWaitsForChangesHasAFormThatRunsOnce(t *testing.T) {
	for command, want := range map[string]string{
		"vitest":                              "vitest run",
		"vitest --coverage":                   "vitest run --coverage",
		"npx --no-install vitest watch src":   "npx --no-install vitest run src",
		"vitest bench":                        "vitest bench --run",
		"vitest dev -w":                       "vitest run",
		"jest --watch":                        "jest",
		"npx jest --watchAll --ci":            "npx jest --ci",
		"NODE_ENV=test jest --watch src":      "NODE_ENV=test jest src",
		"tsc -w":                              "tsc",
		"tsc --noEmit --watch":                "tsc --noEmit",
		"npm run build && mocha -w":           "npm run build && mocha",
		"node --test --watch":                 "node --test",
		"ng test":                             "ng test --watch=false",
		"karma start karma.conf.js":           "karma start karma.conf.js --single-run",
		"react-scripts test --watchAll":       "react-scripts test",
		"bun test --watch":                    "bun test",
		"cargo watch -x test":                 "cargo test",
		"cargo watch -x check -x test":        "cargo check && cargo test",
		"dotnet watch test":                   "dotnet test",
		"mix test.watch":                      "mix test",
		"ptw -- -q":                           "pytest -- -q",
		"./gradlew -t test":                   "./gradlew test",
		"gradle test --continuous":            "gradle test",
		"sbt ~test":                           "sbt test",
		"gotestsum --watch":                   "gotestsum",
		"dune runtest -w":                     "dune runtest",
		"nodemon test.js":                     "",
		"watchexec -- make test":              "",
		"find . | entr make":                  "",
		"npm test -- --watch":                 "npm test --",
		"node_modules/.bin/vitest --reporter": "node_modules/.bin/vitest run --reporter",
	} {
		once, watches := shell.Unwatched(command)
		require.True(t, watches, command)
		require.Equal(t, want, once, command)
	}
	for _, command := range []string{
		"", "vitest run", "vitest --run", "vitest --watch=false", "jest", "jest --watchAll=false", "npm test", "go test ./... && wc -w x", "ng test --watch=false",
		"cargo test", "tsc --noEmit", "grep -w x y", "make test", "gradle test", "karma start --single-run", "docker run -t x", "pytest -q",
	} {
		once, watches := shell.Unwatched(command)
		require.False(t, watches, command)
		require.Equal(t, command, once)
	}
}
