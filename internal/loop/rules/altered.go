package rules

import (
	"path"
	"slices"
	"strings"
)

// lockfiles are the files in which package managers note what they have resolved, with what keeps them from doing so.
var lockfiles = map[string]string{
	"package-lock.json": "npm ci", "npm-shrinkwrap.json": "npm ci", "pnpm-lock.yaml": "pnpm install --frozen-lockfile",
	"yarn.lock": "yarn install --immutable", "bun.lock": "bun install --frozen-lockfile", "bun.lockb": "bun install --frozen-lockfile",
	"Cargo.lock": "cargo --locked", "go.mod": "go -mod=readonly", "go.sum": "go -mod=readonly", "go.work.sum": "go -mod=readonly",
	"uv.lock": "uv run --frozen", "poetry.lock": "poetry install", "Pipfile.lock": "pipenv install --deploy", "pdm.lock": "pdm install --frozen-lockfile",
	"Gemfile.lock": "BUNDLE_FROZEN=1", "composer.lock": "composer install", "mix.lock": "mix deps.get --check-locked",
	"packages.lock.json": "dotnet restore --locked-mode", "gradle.lockfile": "gradle without --write-locks", "Package.resolved": "swift build --force-resolved-versions",
	"flake.lock": "nix --no-update-lock-file", "pubspec.lock": "dart pub get --enforce-lockfile",
}

// MissingAdvice says what to do about a command that could not find or start a program.
const MissingAdvice = "A program is missing or can't be executed, which no change in scope mends: install it, make it executable, or let setup.command do so."

// AlteredAdvice says what to do about a command that passes, but changes these tracked files of the commit that it judges.
func AlteredAdvice(key string, altered []string) string {
	var instead []string
	for _, name := range altered {
		way, locks := lockfiles[path.Base(strings.Trim(name, `"`))]
		if !locks {
			return "A passing " + key + " must have judged the commit as it is. Let " + key + ".command only check (eslint without --fix, gofmt -l, cargo --locked), " +
				"or commit what it writes."
		}
		if !slices.Contains(instead, way) {
			instead = append(instead, way)
		}
	}
	return "Commit the lock file as " + key + ".command writes it, or have the command leave it alone: " + strings.Join(instead, ", ") + "."
}

// AdviceFor returns the advice for a command that fails on the unchanged code: usual, unless it has changed files.
func AdviceFor(key string, altered []string, usual string) string {
	if len(altered) > 0 {
		return AlteredAdvice(key, altered)
	}
	return usual
}
