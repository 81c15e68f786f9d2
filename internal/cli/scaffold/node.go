package scaffold

import (
	"cmp"
	"encoding/json"
	"path"
	"slices"
	"strings"

	"pawl/internal/lib/lazyregexp"
	"pawl/internal/lib/list"
	commands "pawl/internal/lib/shell"
)

// npmDefault is a part of the test script that npm puts into every new package.json. That script always fails.
const npmDefault = "no test specified"

// nodeReporters are the test runners that write a report beside their own output. sign matches a script that is one run of
// the runner, without the options named in own.
var nodeReporters = []struct {
	sign          lazyregexp.Regexp
	own           []string
	options, file string
}{
	{
		lazyregexp.New(`^(?:npx (?:--no-install )?)?vitest run(?: [\w./@=,-]+)*$`), []string{"--reporter", "--outputFile"},
		"--reporter=default --reporter=junit --outputFile.junit=" + reportFile, reportFile,
	},
	{
		lazyregexp.New(`^(?:npx (?:--no-install )?)?jest(?: [\w./@=,-]+)*$`), []string{"--json", "--outputFile", "--reporters", "--watch", "--listTests"},
		"--json --outputFile=jest.json", "jest.json",
	},
}

// nodeReports returns the options that make a test command of a project in Node write a report as well, and the report's
// name; "" if none are known.
func (t tree) nodeReports(test string) (options, file string) {
	var manifest struct{ Scripts map[string]string }
	_ = json.Unmarshal([]byte(t.read("package.json")), &manifest)
	script, prefix := test, " "
	switch test {
	case "npm test":
		script, prefix = manifest.Scripts["test"], " -- "
	case "yarn test":
		script = manifest.Scripts["test"]
	}
	for _, r := range nodeReporters {
		isOwn := slices.ContainsFunc(r.own, func(option string) bool { return strings.Contains(script, option) })
		if r.sign().MatchString(script) && !isOwn && !t.has[r.file] {
			return prefix + r.options, r.file
		}
	}
	return "", ""
}

func node(t tree) Repository {
	var manifest struct {
		Main                          string            `json:"main"`
		Scripts                       map[string]string `json:"scripts"`
		Dependencies, DevDependencies map[string]string
		Workspaces                    json.RawMessage
	}
	_ = json.Unmarshal([]byte(t.read("package.json")), &manifest) // a broken manifest tells nothing
	manager, setup, above := t.packages()
	run := func(script string) string {
		if strings.HasPrefix(manager, "npm") {
			return "npm run --silent " + script
		}
		return manager + " run " + script
	}
	hasScript := func(script string) bool { _, ok := manifest.Scripts[script]; return ok }
	r := Repository{Scope: t.under("src", "lib", "app"), Protect: append(t.present("package.json", "package-lock.json", "pnpm-lock.yaml", "yarn.lock", "bun.lock", "bun.lockb"),
		t.under("test", "tests", "__tests__", "spec")...)}
	if len(manifest.Dependencies)+len(manifest.DevDependencies) > 0 || len(manifest.Workspaces) > 0 || t.has["pnpm-workspace.yaml"] { // the packages of a workspace have dependencies of their own
		r.Setup, r.outer, r.Keep = setup, above, []string{"**/node_modules/**"}
	}
	if main := path.Clean(cmp.Or(manifest.Main, "index.js")); len(r.Scope) > 0 { // the main file may be beside the folders
		for _, name := range []string{main, main + ".js"} {
			if t.has[name] && !strings.Contains(name, "/") {
				r.Scope = append([]string{"*" + path.Ext(name)}, r.Scope...)
			}
		}
	} else {
		r.Scope = or(t.inner("packages", "src", "lib"), "**/*.{js,mjs,cjs,jsx,ts,tsx}")
	}
	r.Protect = append(r.Protect, t.inner("packages", "test", "tests", "__tests__", "package.json")...)
	if slices.ContainsFunc(t.files, func(name string) bool { return strings.HasPrefix(name, "dist/") }) {
		r.Protect = append(r.Protect, "dist/**") // built files
	}
	tests := len(t.under("test", "tests", "__tests__")) > 0
	for _, infix := range []string{".test.", ".spec."} {
		if slices.ContainsFunc(t.files, func(name string) bool { return strings.Contains(path.Base(name), infix) }) {
			r.Protect, tests = append(r.Protect, "**/*"+infix+"*"), true
		}
	}
	if test, ok := manifest.Scripts["test"]; ok && !strings.Contains(test, npmDefault) {
		r.Test = manager + " test"
		if single, watches := commands.Unwatched(test); watches {
			alternatives := list.Filter([]string{"test:run", "test:ci", "test:once"}, hasScript)
			r.Test = cmp.Or(append(list.Map(alternatives, run), throughNpx(single), r.Test)...)
			t.miss("the script test of package.json waits for changes, so a form that runs once is proposed")
		}
	} else if tests {
		r.Test = "node --test"
	}
	checks := list.Map(list.Filter([]string{"lint", "typecheck", "check"}, hasScript), run)
	if t.has["tsconfig.json"] {
		checks = append(checks, "npx --no-install tsc --noEmit")
	}
	r.Check = cmp.Or(checks...)
	reasonFor := func(script string) string { return "the script " + script + " of package.json" + numberLast }
	if script, benches := list.First([]string{"bench", "benchmark", "benchmarks", "perf"}, hasScript); benches {
		r.Metric = benchmark("Improve what the benchmark measures", run(script), reasonFor(script))
	} else if script, sizes := list.First([]string{"size", "size-limit", "bundlesize"}, hasScript); sizes {
		r.Metric = benchmark("Make what the script "+script+" measures smaller", run(script), reasonFor(script))
		r.Metric.Direction = lower
	}
	return r
}

// throughNpx returns a command line of a script, whose programs are those of the project, as one that runs outside of it.
func throughNpx(line string) string {
	switch {
	case line == "":
		return ""
	case strings.ContainsAny(line, "=&|;"):
		return "PATH=\"$PWD/node_modules/.bin:$PATH\"; " + line
	case strings.HasPrefix(line, "npx "), strings.HasPrefix(line, "npm "), strings.HasPrefix(line, "node "):
		return line
	}
	return "npx --no-install " + line
}

// managers lists the package managers of Node, by their lockfiles.
var managers = []struct{ file, manager, setup string }{
	{"package-lock.json", "npm", "npm ci --no-audit --no-fund"}, {"npm-shrinkwrap.json", "npm", "npm ci --no-audit --no-fund"},
	{"pnpm-lock.yaml", "pnpm", "pnpm install --frozen-lockfile"}, {"yarn.lock", "yarn", "yarn install --frozen-lockfile"},
	{"bun.lock", "bun", "bun install --frozen-lockfile"}, {"bun.lockb", "bun", "bun install --frozen-lockfile"},
}

// packages returns the manager of a project's Node packages, and the command that installs them. above is true if the
// lockfile is that of the repository around the project.
func (t tree) packages() (manager, setup string, above bool) {
	for outer := &t; outer != nil; outer = outer.outer {
		for _, m := range managers {
			if !outer.has[m.file] {
				continue
			}
			above = outer != &t
			switch {
			case t.program(m.manager):
				return m.manager, m.setup, above
			case t.program("corepack"):
				t.miss(m.manager + " is not on the PATH, so corepack runs it")
				return "corepack " + m.manager, "corepack " + m.setup, above
			case t.program("npm"):
				t.miss(m.manager + " is not on the PATH, so npm installs the packages, without " + m.file)
				return "npm", "npm install --no-audit --no-fund --no-package-lock", above
			}
			return m.manager, m.setup, above
		}
	}
	return "npm", "npm install --no-audit --no-fund --no-package-lock", false
}

// inner returns globs of the named folders and files in the packages of a workspace, for example packages/*/src/**.
func (t tree) inner(workspace string, names ...string) (globs []string) {
	for _, name := range names {
		for _, file := range t.files {
			parts := strings.SplitN(file, "/", 4)
			if len(parts) < 3 || parts[0] != workspace || parts[2] != name {
				continue
			}
			glob := workspace + "/*/" + name
			if len(parts) > 3 {
				glob += "/**"
			}
			globs = append(globs, glob)
			break
		}
	}
	return globs
}
