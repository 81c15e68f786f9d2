package seal

import (
	"slices"
	"strings"
)

// rewriter is a program that changes the files it gets. with lists the options that make it do so; if there are none,
// it always does. without lists the options that make it only check. sub is the subcommand.
type rewriter struct{ program, sub, with, without string }

var rewriters = []rewriter{
	{"gofmt goimports gofumpt shfmt", "", "-w", "-d"}, {"go", "fmt", "", "-n"}, {"go", "fix", "", ""}, {"go", "generate", "", "-n"}, {"golangci-lint", "", "--fix", ""}, {"golangci-lint", "fmt", "", "--diff -d"},
	{"prettier", "", "--write -w", ""}, {"eslint xo standard semistandard stylelint tslint oxlint ts-standard", "", "--fix", "--fix-dry-run"}, {"biome", "", "--write --apply --fix --apply-unsafe", ""},
	{"dprint", "fmt", "", ""}, {"deno", "fmt", "", "--check"},
	{"cargo", "fmt", "", "--check"}, {"cargo", "fix", "", ""}, {"cargo", "clippy", "--fix", ""}, {"rustfmt", "", "", "--check"},
	{"black isort", "", "", "--check --check-only --diff -c"}, {"ruff", "format", "", "--check --diff"}, {"ruff", "check", "--fix", "--diff"}, {"yapf autopep8 docformatter", "", "-i --in-place", "--diff"},
	{"clang-format", "", "-i", "--dry-run -n"}, {"rubocop standardrb", "", "-a -A --autocorrect --auto-correct --autocorrect-all --fix", ""}, {"php-cs-fixer", "fix", "", "--dry-run"}, {"phpcbf", "", "", ""},
	{"mix", "format", "", "--check-formatted --dry-run"}, {"dotnet", "format", "", "--verify-no-changes"}, {"dart", "format", "", "--output=none"}, {"terraform", "fmt", "", "-check -check=true"},
	{"gradle gradlew", "spotlessApply", "", ""}, {"mvn mvnw", "spotless:apply", "", ""}, {"ktlint", "", "-F --format", ""}, {"swiftformat", "", "", "--lint"},
}

// does reports whether a simple command is a call of the rewriter that changes files.
func (r rewriter) does(words []string) bool {
	has := func(list string) bool {
		return slices.ContainsFunc(words[1:], func(w string) bool { return contains(list, w) })
	}
	name := words[0][strings.LastIndexByte(words[0], '/')+1:]
	return contains(r.program, name) && (r.sub == "" || has(r.sub)) && (r.with == "" || has(r.with)) && !has(r.without)
}

// Rewrites returns the first simple command run by a shell command that changes the files it gets, as formatters do.
// It also follows a target of make and a script of npm, pnpm or yarn. It returns "" if no known program does.
func Rewrites(command string, read func(file string) string) (found string) {
	p := programs{called: func(words []string) {
		if found == "" && slices.ContainsFunc(rewriters, func(r rewriter) bool { return r.does(words) }) {
			found = strings.Join(words, " ")
		}
	}}
	p.read(command)
	p.behind(command, read)
	return found
}
