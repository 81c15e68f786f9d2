package seal

import (
	"slices"
	"strings"

	"pawl/internal/lazyregexp"
	"pawl/internal/shell"
)

// builtins are commands that the shell itself carries out.
const builtins = ". : [ alias bg break cd command continue echo eval exec exit export false fg getopts hash jobs kill local printf " +
	"pwd read readonly return set shift test times trap true type ulimit umask unalias unset wait source declare builtin let shopt"

// Programs returns the programs that a shell command needs on the PATH, in the order in which it calls them. It
// returns only those that always run: a program beside || or in a condition may be missing. It leaves out programs
// that are named by a path or by a variable. A wrapper (env, timeout) is one program, and the command that it runs is
// another. It returns none for a command that can't be parsed.
func Programs(command string) []string {
	p := programs{}
	p.read(command)
	return p.names
}

// Called returns the programs that a call of make needs for its target and for the prerequisites of that target, also
// those that these name by a path outside the repository (/… and ~/…). It returns none for any other command, or if
// there is no such target.
func Called(command string, read func(file string) string) []string {
	target, calls := strings.CutPrefix(command, "make ")
	if !calls {
		return nil
	}
	p := programs{outside: true}
	for _, file := range strings.Fields(tasks["make"].names) {
		if text := read(file); text != "" {
			p.follow(makeRecipes(text), strings.TrimPrefix(target, "--silent "))
			break
		}
	}
	return p.names
}

// Certain reports whether what Called returns is called in any case: the Makefile sets no PATH and has no conditions,
// and no target is a file that exists, which make might leave as it is.
func Certain(command string, read func(file string) string, exists func(file string) bool) bool {
	target, calls := strings.CutPrefix(command, "make ")
	if !calls {
		return false
	}
	for _, file := range strings.Fields(tasks["make"].names) {
		if text := read(file); text != "" {
			makefile := makeRecipes(text)
			plain := !makefile.unknown && !unplain().MatchString(text)
			return plain && makefile.runsSurely(strings.TrimPrefix(target, "--silent "), exists)
		}
	}
	return false
}

// unplain matches what may change which programs a Makefile calls, or that a missing one matters.
var unplain = lazyregexp.New(`(?m)PATH|SHELL|MAKEFLAGS|IGNORE|RECIPEPREFIX|^\s*-?(include|ifn?eq|ifn?def|define|export)\b|\$\(eval|^\t[@+ ]*-`)

// runsSurely reports whether the recipes of a target, and of those before it, run in any case.
func (r recipes) runsSurely(target string, exists func(file string) bool) bool {
	one := r.targets[target]
	if one == nil {
		return true
	}
	delete(r.targets, target) // it is looked at once
	if !r.phony[target] && exists(target) {
		return false
	}
	return !slices.ContainsFunc(one.before, func(name string) bool { return !r.runsSurely(name, exists) })
}

// Scripted returns the programs that a call of npm, pnpm or yarn needs for a script of package.json, and for the
// scripts that run before and after it. It returns none for any other command, and none if yarn keeps programs
// outside of node_modules (.pnp.cjs).
func Scripted(command string, read func(file string) string) []string {
	p := programs{outside: true}
	words := slices.DeleteFunc(strings.Fields(command), func(word string) bool { return strings.HasPrefix(word, "-") })
	if len(words) > 1 && contains("run run-script", words[1]) {
		words = slices.Delete(words, 1, 2)
	}
	if len(words) > 1 && contains("npm pnpm yarn", words[0]) && !(words[0] == "yarn" && read(".pnp.cjs") != "") {
		p.follow(packageScripts(read("package.json")), stages(words[0], words[1])...)
	}
	return slices.DeleteFunc(p.names, func(name string) bool { return name == "node-gyp" }) // npm contains it
}

// follow reads the commands of targets and of what runs before them. It takes each target out of all, so that none is
// read twice.
func (p *programs) follow(all recipes, targets ...string) {
	for _, name := range targets {
		if one := all.targets[name]; one != nil {
			delete(all.targets, name)
			p.follow(all, one.before...)
			for _, command := range one.commands {
				p.read(command)
			}
		}
	}
}

type programs struct {
	names   []string
	outside bool // paths that are not relative count as names too
}

func (p *programs) read(command string) {
	commands, own := shell.Sure(command)
	for _, words := range commands {
		p.call(words, own)
	}
}

// call records the program of a simple command and, if that is a wrapper, the program that it runs.
func (p *programs) call(words []shell.Word, own []string) {
	if len(words) > 0 && p.outside && words[0].Unknown && strings.HasPrefix(words[0].Text, "~/") && !strings.ContainsAny(words[0].Text, "$`") { // the reader of commands does not know the home
		p.names = append(p.names, words[0].Text)
	}
	if len(words) == 0 || words[0].Unknown || words[0].Glob || words[0].Text == "" {
		return
	}
	name := words[0].Text
	if options, wraps := wrappers[name]; wraps && !contains("npx pnpx bunx busybox", name) && !(name == "command" && len(words) > 1 && contains("-v -V", words[1].Text)) {
		p.call(unwrap(words[1:], options), own)
	}
	outside := p.outside && strings.HasPrefix(name, "/")
	if (outside || !strings.Contains(name, "/")) && !contains(builtins, name) && !slices.Contains(own, name) && !slices.Contains(p.names, name) {
		p.names = append(p.names, name)
	}
}
