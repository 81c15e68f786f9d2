package risk

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"pawl/internal/lib/list"
	"pawl/internal/lib/shell"
	"pawl/internal/metric"
	"pawl/internal/spec"
	"pawl/internal/steward/charter"
	"pawl/internal/steward/task"
)

// The rules that other code refers to by name. Governance and Production require an approval whatever the tier (S4).
// The question about a plan names an estimate by itself, so it leaves out Cost.
const (
	Governance = "governance"
	Production = "production"
	Cost       = "cost"
)

// manyFiles is how many files may be in scope before the number alone is a risk.
const manyFiles = 1000

// Rule is a built-in rule of the tiers. The charter can add more.
type Rule struct {
	Name string
	Tier task.Tier
	Why  string
	// Globs match files that may only change with that tier. They are in lower case.
	Globs []string

	also func(reach) []string        // what else it matches, besides Globs
	says func(names []string) string // the reason as a sentence; nil: the names, and Why
}

// sentence returns why the rule gives its tier.
func (rule Rule) sentence(names []string) string {
	if rule.says != nil {
		return rule.says(names)
	}
	return some(names) + ": " + rule.Why
}

func callsGovernance(names []string) string {
	if len(names) == 1 {
		return some(names) + " may change, and your spec calls it a governance file"
	}
	return some(names) + " may change, and your spec calls them governance files"
}

// Rules lists the built-in rules, the strictest first. A task that matches none is T3, or T0 if only documentation
// and tests may change.
//
// A rule matches by a glob if the project has a file that both the glob and a scope match. If the loops may make new
// files, it also matches if a new file could match both. For new files a built-in glob that begins with **/ counts
// only at the root of the project, because otherwise every folder could get its own package.json. A glob for a name's
// ending counts only for scopes with that ending.
var Rules = []Rule{
	{
		Name: Governance, Tier: task.T1, Why: "governance files of the charter",
		also: func(r reach) []string { return r.globs(r.charter.Governance) },
		says: callsGovernance,
	},
	{
		Name: Production, Tier: task.T1, Why: "what runs in production",
		Globs: []string{"**/prod/**", "**/production/**", "**/*.prod.*", "**/*.production.*", "**/*.tf", "**/*.tfvars", "**/*.tfstate"},
		also: func(r reach) []string {
			words := append([]string{"prod", "production"}, r.charter.Production...)
			return slices.Concat(r.globs(r.charter.Production), r.words(r.text, words), r.words(strings.Join(r.commands, "\n"), r.charter.Production))
		},
	},
	{
		Name: "dependencies", Tier: task.T2, Why: "which third-party code is used",
		Globs: []string{
			"**/go.mod", "**/go.sum", "**/go.work", "**/go.work.sum", "**/vendor/**",
			"**/package.json", "**/package-lock.json", "**/npm-shrinkwrap.json", "**/yarn.lock", "**/pnpm-lock.yaml", "**/bun.lock", "**/bun.lockb", "**/deno.lock", "**/.npmrc",
			"**/requirements*.txt", "**/constraints*.txt", "**/pyproject.toml", "**/setup.py", "**/setup.cfg", "**/pipfile", "**/pipfile.lock", "**/poetry.lock", "**/uv.lock",
			"**/cargo.toml", "**/cargo.lock", "**/gemfile", "**/gemfile.lock", "**/*.gemspec", "**/composer.json", "**/composer.lock",
			"**/pom.xml", "**/build.gradle", "**/build.gradle.kts", "**/gradle.lockfile", "**/libs.versions.toml", "**/*.csproj", "**/packages.lock.json", "**/packages.config",
			"**/mix.exs", "**/mix.lock", "**/pubspec.yaml", "**/pubspec.lock", "**/package.swift", "**/package.resolved", "**/flake.nix", "**/flake.lock", ".gitmodules",
		},
	},
	{
		Name: "ci", Tier: task.T2, Why: "what the CI runs",
		Globs: []string{
			".github/workflows/**", ".github/actions/**", ".github/dependabot.yml", "**/action.yml", "**/action.yaml", ".gitlab-ci.yml", ".gitlab/**", ".circleci/**", ".travis.yml",
			"**/jenkinsfile", ".buildkite/**", "azure-pipelines*.yml", ".azure-pipelines/**", "bitbucket-pipelines.yml", ".drone.yml", ".woodpecker/**", ".woodpecker.yml", ".tekton/**", ".appveyor.yml", "appveyor.yml", ".pre-commit-config.yaml",
		},
	},
	{
		Name: "migrations", Tier: task.T2, Why: "existing data",
		Globs: []string{"**/migrations/**", "**/migration/**", "**/migrate/**", "**/alembic/**", "**/liquibase/**", "**/flyway/**", "**/schema.rb", "**/structure.sql", "**/schema.sql", "**/schema.prisma"},
	},
	{
		Name: "permissions", Tier: task.T2, Why: "who may do what, and secrets",
		Globs: []string{
			"**/codeowners", "**/sudoers", "**/sudoers.d/**", "**/iam/**", "**/iam*.json", "**/iam*.y*ml", "**/rbac/**", "**/*rbac*.y*ml", "**/secrets/**", "**/secrets.*", "**/.env", "**/.env.*", "**/*.pem", "**/*.key", "**/*.p12", "**/.htaccess",
			"**/authorized_keys", "**/.ssh/**", "**/security.txt", "**/.netrc", "**/credentials*", "**/.gitattributes", ".claude/**", ".codex/**", ".mcp.json",
		},
		also: func(r reach) (reasons []string) {
			for _, s := range r.specs {
				reasons = append(reasons, loosened(s, r.charter.Sandbox())...)
			}
			return distinct(reasons)
		},
	},
	{
		Name: "size", Tier: task.T2, Why: fmt.Sprintf("more than %d files may change", manyFiles),
		also: func(r reach) []string {
			if n := len(r.changeable); n > manyFiles {
				return []string{metric.Counted(n, "file")}
			}
			return nil
		},
	},
	{
		Name: Cost, Tier: task.T2, Why: "more than limits.costUSD",
		also: func(r reach) []string {
			if above(High(r.estimate), r.charter.Limits.CostUSD) {
				return []string{"an estimate of " + highInWords(r.estimate)}
			}
			return nil
		},
	},
}

// harmless has globs of documentation and tests. A scope within them is T0.
var harmless = []string{
	"docs/**", "doc/**", "documentation/**", "**/*.md", "**/*.rst", "**/*.adoc",
	"test/**", "tests/**", "**/testdata/**", "**/__tests__/**", "**/*_test.go", "**/*.test.js", "**/*.test.ts", "**/*.test.tsx", "**/*.spec.js", "**/*.spec.ts", "**/*_test.py", "**/*_spec.rb",
}

// loosened returns where a loop may do more than by default: outside the sandbox, in folders or on the network beyond
// those in the charter, which a person wrote, or by its permissions.
func loosened(s spec.Spec, charter spec.Sandbox) (reasons []string) {
	hosts := charter.Hosts
	if s.Sandbox.Use == spec.Off {
		reasons = append(reasons, "sandbox.use is off")
	}
	if opened := slices.DeleteFunc(slices.Clone(s.Sandbox.Allow), func(path string) bool { return slices.Contains(charter.Allow, path) }); len(opened) > 0 {
		reasons = append(reasons, "sandbox.allow opens "+some(opened))
	}
	if s.Sandbox.Network == spec.Open {
		reasons = append(reasons, "sandbox.network is open")
	}
	added := slices.DeleteFunc(slices.Clone(s.Sandbox.Hosts), func(host string) bool { return slices.Contains(hosts, host) })
	switch {
	case len(added) > 0:
		reasons = append(reasons, "sandbox.hosts names "+some(added))
	case len(hosts) > 0 && len(s.Sandbox.Hosts) == 0 && s.Sandbox.Network != spec.None:
		reasons = append(reasons, "sandbox.hosts names no host, so every host is allowed")
	}
	for _, role := range spec.Roles() {
		for _, may := range s.Permitted(role) {
			if !slices.Contains(spec.Spec{}.Permitted(role), may) {
				reasons = append(reasons, "permissions."+role+" has "+may)
			}
		}
	}
	return reasons
}

// reach is what a task can do, as far as it is known beforehand.
type reach struct {
	charter    charter.Charter
	specs      []spec.Spec
	text       string   // title, body and the goals of the loops
	commands   []string // the commands that its loops run
	scope      []string // the scopes of all its loops
	fresh      []string // those globs of scope in which new files may come into being
	changeable []string // files of the project that may change
	estimate   task.Cost
}

func reachOf(c charter.Charter, w Work) reach {
	r := reach{charter: c, specs: w.Specs, text: w.Task.Title + "\n" + w.Task.Body, estimate: w.Estimate}
	for _, s := range w.Specs {
		r.text += "\n" + s.Goal
		r.commands = append(r.commands, Commands(s)...)
		r.scope = append(r.scope, s.Scope...)
		if s.NewFiles != spec.Deny {
			r.fresh = append(r.fresh, s.Scope...)
		}
	}
	r.changeable = slices.DeleteFunc(slices.Clone(w.Files), func(file string) bool {
		return !slices.ContainsFunc(w.Specs, func(s spec.Spec) bool { return s.Match(file) && !spec.MatchAny(s.Protect, file) })
	})
	return r
}

// matches returns what the rule matches.
func (rule Rule) matches(r reach) (names []string) {
	names = slices.DeleteFunc(slices.Clone(r.changeable), func(file string) bool { return !spec.MatchAny(rule.Globs, strings.ToLower(file)) })
	for _, glob := range rule.Globs {
		if name := path.Base(glob); name == "**" || !strings.Contains(name, "*") {
			names = append(names, r.new(strings.TrimPrefix(glob, "**/"))...)
		} else if slices.ContainsFunc(r.fresh, func(scope string) bool { return within(strings.ToLower(scope), []string{glob}) }) {
			names = append(names, "a new file like "+glob)
		}
	}
	if rule.also != nil {
		names = append(names, rule.also(r)...)
	}
	return distinct(names)
}

// globs returns what the charter's globs match among the files that may change and the possible new files.
func (r reach) globs(globs []string) (names []string) {
	names = slices.DeleteFunc(slices.Clone(r.changeable), func(file string) bool { return !spec.MatchAny(globs, file) })
	for _, glob := range globs {
		if !slices.Contains(names, glob) { // the file is there already
			names = append(names, r.new(glob)...)
		}
	}
	return names
}

// new returns glob in words if a new file could match it.
func (r reach) new(glob string) []string {
	if slices.ContainsFunc(r.fresh, func(scope string) bool { return Overlap(scope, glob) }) {
		return []string{"a new file like " + glob}
	}
	return nil
}

// words returns the words that a text contains as whole words, in any case.
func (r reach) words(text string, words []string) (found []string) {
	for _, word := range words {
		if strings.TrimSpace(word) == "" {
			continue
		}
		pattern := strings.Join(strings.Fields(regexp.QuoteMeta(word)), `\s+`)
		if regexp.MustCompile(`(?i)(?:^|[^\pL\pN_])` + pattern + `(?:$|[^\pL\pN_])`).MatchString(text) {
			found = append(found, fmt.Sprintf("the word %q", word))
		}
	}
	return found
}

// ruled returns what a rule of the charter matches.
func (r reach) ruled(rule charter.Rule) []string {
	names := slices.Concat(r.globs(rule.Paths), r.words(r.text, rule.Words))
	if rule.Files != nil && len(r.changeable) >= *rule.Files {
		names = append(names, metric.Counted(len(r.changeable), "file"))
	}
	if high := High(r.estimate); rule.CostUSD != nil && high != nil && high.Cmp(*rule.CostUSD) >= 0 {
		names = append(names, "an estimate of "+highInWords(r.estimate))
	}
	return distinct(names)
}

// harmless reports whether everything that may change is documentation or a test, or has T0 by a rule of the charter.
func (r reach) harmless() bool {
	globs := harmless
	for _, rule := range r.charter.Tiers {
		if rule.Tier == task.T0 {
			globs = slices.Concat(globs, rule.Paths)
		}
	}
	return !slices.ContainsFunc(r.scope, func(scope string) bool { return !within(scope, globs) })
}

// Commands returns the commands that a loop runs, as shell code: its own, those of its agents and of notify.
func Commands(s spec.Spec) []string {
	commands := []string{s.Setup.Command, s.Verify.Command, s.Guard.Command, s.Test.Command, s.Check.Command}
	commands = append(commands, list.Map(s.Agent.All(), func(a spec.Keyed) string { return cmp.Or(a.Command.Shell, shell.Join(a.Command.List...)) })...)
	commands = append(commands, list.Filter(s.Notify, func(target string) bool { return target != spec.Desktop && !spec.Webhook(target) })...)
	return distinct(slices.DeleteFunc(commands, func(command string) bool { return strings.TrimSpace(command) == "" }))
}

// above reports whether an amount is above a limit. It returns false if one of them is nil.
func above(amount, limit *metric.Decimal) bool {
	return amount != nil && limit != nil && amount.Cmp(*limit) > 0
}

// distinct returns the texts in their order, each once.
func distinct(texts []string) (unique []string) {
	seen := map[string]bool{}
	for _, text := range texts {
		if !seen[text] {
			unique = append(unique, text)
		}
		seen[text] = true
	}
	return unique
}
