package evaluator

import (
	"slices"
	"strings"

	"pawl/internal/lib/lazyregexp"
)

// builtins are commands that the shell itself carries out.
const builtins = ". : [ alias bg break cd command continue echo eval exec exit export false fg getopts hash jobs kill local printf " +
	"pwd read readonly return set shift test times trap true type ulimit umask unalias unset wait source declare builtin let shopt"

// Called returns the programs that a call of make needs for its target and for the prerequisites of that target, also
// those that these name by a path outside the repository (/… and ~/…). It returns none for any other command, or if
// there is no such target.
func Called(command string, read func(file string) string) []string {
	target, calls := strings.CutPrefix(command, "make ")
	if !calls {
		return nil
	}
	var names []string
	for _, file := range strings.Fields(tasks["make"].names) {
		if text := read(file); text != "" {
			names = follow(makeRecipes(text), strings.TrimPrefix(target, "--silent "))
			break
		}
	}
	return names
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
	item := r.targets[target]
	if item == nil {
		return true
	}
	delete(r.targets, target) // it is looked at once
	if !r.phony[target] && exists(target) {
		return false
	}
	return !slices.ContainsFunc(item.before, func(name string) bool { return !r.runsSurely(name, exists) })
}

// Scripted returns the programs that a call of npm, pnpm or yarn needs for a script of package.json, and for the
// scripts that run before and after it. It returns none for any other command, and none if yarn keeps programs
// outside of node_modules (.pnp.cjs).
func Scripted(command string, read func(file string) string) []string {
	var names []string
	words := slices.DeleteFunc(strings.Fields(command), func(word string) bool { return strings.HasPrefix(word, "-") })
	if len(words) > 1 && contains("run run-script", words[1]) {
		words = slices.Delete(words, 1, 2)
	}
	if len(words) > 1 && contains("npm pnpm yarn", words[0]) && !(words[0] == "yarn" && read(".pnp.cjs") != "") {
		names = follow(packageScripts(read("package.json")), stages(words[0], words[1])...)
	}
	return slices.DeleteFunc(names, func(name string) bool { return name == "node-gyp" }) // npm contains it
}

// follow returns the programs that targets need, and those that run before them. It takes each target out of all, so that
// none is read twice.
func follow(found recipes, targets ...string) (names []string) {
	for _, target := range targets {
		item := found.targets[target]
		if item == nil {
			continue
		}
		delete(found.targets, target)
		names = appendNew(names, follow(found, item.before...))
		for _, command := range item.commands { // each has a shell of its own
			names = appendNew(names, find(command, finder{outside: true}).Programs)
		}
	}
	return names
}

// appendNew appends the names that are not there yet.
func appendNew(names, added []string) []string {
	for _, name := range added {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}
