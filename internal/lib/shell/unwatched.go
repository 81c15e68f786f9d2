package shell

import (
	"slices"
	"strings"
)

// Unwatched returns a command without what makes its programs wait for changes, and whether there is such a thing.
// once is "" if the program does nothing else.
func Unwatched(command string) (once string, watches bool) {
	words := strings.Fields(command)
	var all []string
	for len(words) > 0 {
		end := slices.IndexFunc(words, func(word string) bool { return slices.Contains(separators, word) })
		if end < 0 {
			end = len(words)
		}
		program, waits := runOnce(words[:end])
		if waits && len(program) == 0 {
			return "", true
		}
		watches = watches || waits
		all = append(all, program...)
		if end == len(words) {
			break
		}
		all, words = append(all, words[end]), words[end+1:]
	}
	if !watches {
		return command, false
	}
	return strings.Join(all, " "), true
}

var separators = []string{"&&", "||", ";", "|", "&"}

// starters start another program, which their other arguments name.
var starters = strings.Fields("npx pnpx bunx pnpm yarn bun npm exec dlx x env cross-env time command bundle poetry pipenv uv run rye hatch python python3 -m --")

// shortWatch are the programs for which -w means to watch.
var shortWatch = strings.Fields("tsc mocha ava rollup webpack babel jasmine lerna sass postcss dune vitest")

// runOnce returns the words of one program without what makes it wait for changes: none if it does nothing else.
func runOnce(words []string) (once []string, watches bool) {
	first := slices.IndexFunc(words, func(word string) bool {
		option, assigned := strings.HasPrefix(word, "-"), strings.Contains(word, "=")
		return !option && !assigned && !slices.Contains(starters, word)
	})
	if first < 0 {
		return withoutWatch(words, "")
	}
	before, name, args := words[:first], words[first][strings.LastIndex(words[first], "/")+1:], words[first+1:]
	replaced := func(with ...string) []string { return slices.Concat(before, with) }
	then := ""
	if len(args) > 0 {
		then = args[0]
	}
	switch {
	case name == "watch" || name == "watchexec" || name == "entr" || name == "ghcid" || name == "nodemon" || name == "air":
		return nil, true
	case name == "vitest":
		return vitest(words, first)
	case name == "ptw" || name == "pytest-watch":
		return replaced(append([]string{"pytest"}, args...)...), true
	case name == "cargo" && then == "watch":
		return cargo(args[1:]), true
	case name == "dotnet" && then == "watch":
		return replaced(append([]string{"dotnet"}, args[1:]...)...), true
	case name == "mix" && then == "test.watch":
		return replaced(append([]string{"mix", "test"}, args[1:]...)...), true
	case name == "lein" && then == "test-refresh":
		return replaced(append([]string{"lein", "test"}, args[1:]...)...), true
	case name == "sbt" && strings.HasPrefix(strings.Trim(then, `"'`), "~"):
		return replaced(append([]string{"sbt", strings.Replace(then, "~", "", 1)}, args[1:]...)...), true
	case name == "ng" && then == "test" && !hasPrefix(args, "--watch", "--no-watch"):
		return append(slices.Clone(words), "--watch=false"), true
	case name == "karma" && then == "start" && !hasPrefix(args, "--single-run", "--no-auto-watch"):
		return append(slices.Clone(words), "--single-run"), true
	}
	return withoutWatch(words, name)
}

// withoutWatch removes the options with which the program of this name watches.
func withoutWatch(words []string, name string) (once []string, watches bool) {
	once = slices.DeleteFunc(slices.Clone(words), func(word string) bool {
		switch word {
		case "--watch", "--watchAll", "--watch-all", "--watch=true", "--watchAll=true", "--file-watch", "--continuous", "--looponfail":
			return true
		case "-w":
			return slices.Contains(shortWatch, name)
		case "-t":
			return name == "gradle" || name == "gradlew"
		}
		return false
	})
	return once, len(once) < len(words)
}

// vitest watches unless it is told to run once, also without an option.
func vitest(words []string, at int) (once []string, watches bool) {
	args := words[at+1:]
	if len(args) > 0 && slices.Contains([]string{"run", "related", "list", "init"}, args[0]) {
		return withoutWatch(words, "vitest")
	}
	if hasPrefix(args, "--run", "--watch=false", "--no-watch", "--help", "--version") {
		return words, false
	}
	if len(args) > 0 && slices.Contains([]string{"watch", "dev"}, args[0]) {
		args = args[1:]
	}
	how := "run"
	if len(args) > 0 && args[0] == "bench" {
		how, args = "bench", append([]string{"--run"}, args[1:]...)
	}
	args, _ = withoutWatch(args, "vitest")
	return slices.Concat(words[:at+1], []string{how}, args), true
}

// cargo returns what cargo watch runs: -x test -x run.
func cargo(args []string) (once []string) {
	for i, word := range args {
		if (word == "-x" || word == "--exec") && i+1 < len(args) {
			if len(once) > 0 {
				once = append(once, "&&")
			}
			once = append(once, "cargo", strings.Trim(args[i+1], `"'`))
		}
	}
	if len(once) == 0 {
		return []string{"cargo", "check"}
	}
	return once
}

func hasPrefix(words []string, prefixes ...string) bool {
	return slices.ContainsFunc(words, func(word string) bool {
		return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(word, prefix) })
	})
}
