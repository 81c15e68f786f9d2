package evaluator

import (
	"path"
	"slices"
	"strings"

	"pawl/internal/lib/lazyregexp"
	"pawl/internal/lib/shell"
)

// Needed is a program or a script that a shell command names by a path, and that has to exist before the command runs.
type Needed struct {
	Path   string // relative to the tree's root; absolute, or ~/…, if it is outside of the tree
	Name   string // as the command names it
	Script bool   // an interpreter reads it, so that it need not be executable
}

// Outside reports whether it is outside of the tree.
func (n Needed) Outside() bool { return path.IsAbs(n.Path) || strings.HasPrefix(n.Path, "~/") }

// Module is a module that an interpreter of Python is asked to run (python -m pytest).
type Module struct{ Interpreter, Name string }

// Needs is what a text for the shell can't do without. It leaves out what an earlier part of the text may have made,
// changed or installed.
type Needs struct {
	Programs []string // on the PATH, in the order in which they are called
	Files    []Needed // programs and scripts that are named by a path; cd with a fixed argument is followed
	Modules  []Module
}

// NeedsOf returns what a command needs that has to succeed. A program beside || or in a condition may be missing, and so
// may one whose exit status does not count. A wrapper (env, timeout) is one program, and the command that it runs is
// another, also in a text for a shell (sh -c '…'). It returns nothing for a command that can't be parsed.
func NeedsOf(command string) Needs { return find(command, finder{}) }

// NeedsOfAgent returns what an agent's command needs: what it starts in any case counts, whatever its exit status.
func NeedsOfAgent(command string) Needs { return find(command, finder{agent: true}) }

func find(command string, f finder) Needs {
	f.dir = "."
	f.read(command, 0)
	return f.found
}

// finder reads a command for what it can't do without, and keeps what is known where the next part of it runs.
type finder struct {
	found   Needs
	agent   bool // what runs in any case counts, whatever its exit status
	outside bool // paths that are not relative count as programs too

	own         []string // functions of the command
	dir         string   // the folder that the command is in, relative to the tree's root
	made        bool     // something has run that may have made files, or the folder is unknown
	lostPath    bool     // the PATH, or what names mean, may have changed
	lostModules bool     // Python may search other folders
}

// harmless are commands that make no files but those to which they are redirected.
const harmless = "export set unset readonly true : umask ulimit shopt trap echo printf cat head tail test [ [[ sleep date pwd read " +
	"grep wc tr cut jq exec command exit"

func (f *finder) read(command string, depth int) {
	if depth > maxNesting {
		return
	}
	steps, local := shell.Steps(command)
	f.own = append(f.own, local...)
	writes := redirected().MatchString(discarding().ReplaceAllString(command, ""))
	for _, step := range steps {
		step.Must = step.Must || f.agent && step.Runs
		f.step(step, depth)
		f.made = f.made || writes
	}
}

var (
	discarding = lazyregexp.New(`[0-9]*>>?\s*(/dev/(null|stderr|stdout)\b|&[0-9-])`)
	redirected = lazyregexp.New(`>`)
	installing = lazyregexp.New(`install|setup|bootstrap`)
)

// step finds what a simple command needs, and notes what it may change for those after it.
func (f *finder) step(step shell.Step, depth int) {
	words := unwrapped(step.Words)
	wrapper := step.Words[:len(step.Words)-len(words)]
	local := *f // what holds for this command alone
	for _, set := range slices.Concat(step.Sets, wrapper) {
		local.set(set.Text)
	}
	if slices.ContainsFunc(wrapper, func(w shell.Word) bool { return contains("-i - --ignore-environment", w.Text) }) {
		local.lostPath, local.lostModules = true, true
	}

	if step.Must && !local.lostPath {
		f.call(step.Words)
	}
	if step.Must && !local.lostModules {
		f.module(words)
	}
	f.path(step, words, local, depth)

	for _, declared := range step.Sets {
		if len(step.Words) == 0 || contains(declares, step.Words[0].Text) { // else it holds for this command alone
			f.set(declared.Text)
		}
	}
	if slices.ContainsFunc(words, func(w shell.Word) bool { return installing().MatchString(w.Text) }) {
		f.lostPath, f.lostModules = true, true
	}
	if len(words) > 0 && contains(". source eval alias hash enable", words[0].Text) {
		f.lostPath, f.lostModules = true, true
	}
}

const declares = "export declare typeset readonly local"

// set notes what an assignment changes.
func (f *finder) set(assigned string) {
	name, value, _ := strings.Cut(assigned, "=")
	switch name {
	case "PATH":
		f.lostPath, f.lostModules = true, true
	case "PYTHONHOME", "PYTHONUSERBASE":
		f.lostModules = true
	case "PYTHONPATH":
		f.lostModules = f.lostModules || slices.ContainsFunc(strings.Split(value, ":"), foreign)
	}
}

// foreign reports whether a folder of PYTHONPATH may be outside of the tree, and is none that Python searches anyway.
func foreign(dir string) bool {
	dir = strings.TrimPrefix(strings.TrimPrefix(dir, "$PWD/"), "${PWD}/")
	if contains("$PWD ${PWD} $PYTHONPATH ${PYTHONPATH} ${PYTHONPATH:-}", dir) {
		return false
	}
	return path.IsAbs(dir) || strings.HasPrefix(path.Clean(dir), "..") || strings.ContainsAny(dir, "$~`")
}

// call adds the program of a simple command and, if that is a wrapper, the program that it runs.
func (f *finder) call(words []shell.Word) {
	if len(words) == 0 {
		return
	}
	first := words[0]
	name := first.Text
	if f.outside && first.Unknown && strings.HasPrefix(name, "~/") && !strings.ContainsAny(name, "$`") { // the reader of commands does not know the home
		f.found.Programs = append(f.found.Programs, name)
	}
	if first.Unknown || first.Glob || strings.ContainsAny(name, "$`") || name == "" {
		return
	}
	onlyAsks := name == "command" && len(words) > 1 && contains("-v -V", words[1].Text)
	if options, wraps := wrappers[name]; wraps && !onlyAsks && !contains("npx pnpx bunx busybox", name) {
		f.call(unwrap(words[1:], options))
	}
	outside := f.outside && strings.HasPrefix(name, "/")
	ok := contains(builtins, name) || slices.Contains(f.own, name) || slices.Contains(f.found.Programs, name)
	if (outside || !strings.Contains(name, "/")) && !ok {
		f.found.Programs = append(f.found.Programs, name)
	}
}

// pythonTools are modules that no command makes in a tree.
const pythonTools = "pytest coverage nose2 mypy ruff black flake8 pylint isort tox nox pip"

// module adds the module that an interpreter of Python is asked to run.
func (f *finder) module(words []shell.Word) {
	if len(words) < 3 || words[0].Unknown || !strings.HasPrefix(path.Base(words[0].Text), "python") {
		return
	}
	for i := 1; i+1 < len(words) && strings.HasPrefix(words[i].Text, "-"); i++ {
		if words[i].Text != "-m" || words[i+1].Unknown {
			continue
		}
		name, _, _ := strings.Cut(words[i+1].Text, ".")
		if !f.made || contains(pythonTools, name) {
			f.found.Modules = append(f.found.Modules, Module{words[0].Text, name})
		}
		return
	}
}

// path finds what a simple command names by a path. here is what holds for this command alone.
func (f *finder) path(step shell.Step, words []shell.Word, local finder, depth int) {
	if len(words) == 0 {
		return
	}
	first := words[0]
	name := first.Text
	needs := func(word shell.Word, script bool) {
		if step.Must && !f.made {
			f.need(word, script)
		}
	}
	switch {
	case name == "cd":
		f.enter(words[1:])
		return
	case contains("source .", name):
		if len(words) > 1 && strings.Contains(words[1].Text, "/") { // others are looked up in PATH
			needs(words[1], true)
		}
		f.made = true
		return
	case contains(harmless, name):
		return
	}

	if strings.Contains(name, "/") {
		needs(first, false)
	}
	if first.Unknown || first.Glob {
		f.made = true
		return
	}
	script, inline, ok := scriptOf(words)
	switch {
	case inline && step.Must:
		f.inner(script.Text, local, depth)
	case ok && !inline:
		needs(script, true)
	}
	f.made = true
}

// inner reads a text that a command gives to a shell (sh -c '…'). What that shell changes ends with it.
func (f *finder) inner(text string, local finder, depth int) {
	inside := *f
	inside.lostPath, inside.lostModules = local.lostPath, local.lostModules
	inside.read(text, depth+1)
	f.found = inside.found
}

// enter follows cd.
func (f *finder) enter(args []shell.Word) {
	if len(args) != 1 || args[0].Unknown || args[0].Glob || path.IsAbs(args[0].Text) || strings.Contains(args[0].Text, "$") {
		f.made = true
		return
	}
	f.dir = path.Join(f.dir, args[0].Text)
}

// atHome matches a path in the home folder, which the reader of commands does not know.
var atHome = lazyregexp.New("^(?:~|\\$HOME|\\$\\{HOME\\})/([^$`*?{\\[]+)$")

// need adds a word that names a file.
func (f *finder) need(word shell.Word, script bool) {
	home := atHome().FindStringSubmatch(word.Text)
	switch {
	case home != nil && word.Unknown:
		f.add(Needed{Path: "~/" + home[1], Name: word.Text, Script: script})
	case word.Unknown, word.Glob, strings.ContainsAny(word.Text, "{~$`"):
	case path.IsAbs(word.Text):
		f.add(Needed{Path: word.Text, Name: word.Text, Script: script})
	default:
		inDir := path.Join(f.dir, word.Text)
		if !strings.HasPrefix(inDir, "../") {
			f.add(Needed{Path: inDir, Name: word.Text, Script: script})
		}
	}
}

func (f *finder) add(n Needed) {
	if !slices.Contains(f.found.Files, n) {
		f.found.Files = append(f.found.Files, n)
	}
}

// plainOptions lists, for interpreters by name, the options before a script that take no value. After any other option
// it is not clear which word is the script.
var plainOptions = map[string]string{
	"sh": shellOptions, "bash": shellOptions, "dash": shellOptions, "zsh": shellOptions, "ksh": shellOptions, "ash": shellOptions,
	"python": "-u -B -b -bb -E -I -s -S -O -OO -q -v -P -d -x -uB -Bu", "pypy": "-u -B -E -I -s -S -O -OO -q -v",
	"node": nodeOptions, "nodejs": nodeOptions, "tsx": "", "ts-node": "-T --transpile-only",
	"perl": "-w -W -T -t", "ruby": "-w -W", "php": "-n -q", "lua": "-E", "Rscript": "--vanilla",
}

const (
	shellOptions = "-e -u -x -v -f -l -eu -ex -eux -ux -xe -xeu -xue -ue --login --norc --noprofile --posix"
	nodeOptions  = "--no-warnings --experimental-strip-types --enable-source-maps --trace-warnings --use-strict"
)

// scriptOf returns the script that an interpreter reads, or the text that a shell runs (-c). ok is false if there is
// none, or if it is not clear.
func scriptOf(words []shell.Word) (script shell.Word, inline, ok bool) {
	name := called(words[0])
	options, found := plainOptions[name]
	if !found {
		return shell.Word{}, false, false
	}
	args := words[1:]
	for len(args) > 0 && contains(options, args[0].Text) {
		args = args[1:]
	}
	if len(args) == 0 || args[0].Unknown && atHome().FindStringSubmatch(args[0].Text) == nil {
		return shell.Word{}, false, false
	}
	if shells[name] && commandOption().MatchString(args[0].Text) {
		sure := len(args) > 1 && !args[1].Unknown
		return args[min(1, len(args)-1)], sure, sure
	}
	extended := strings.HasPrefix(name, "node") || strings.HasPrefix(name, "ts")
	if extended && !strings.Contains(path.Ext(args[0].Text), "s") { // node completes other names
		return shell.Word{}, false, false
	}
	return args[0], false, !strings.HasPrefix(args[0].Text, "-")
}

// unwrapped returns the command that a wrapper such as env or timeout runs.
func unwrapped(words []shell.Word) []shell.Word {
	for len(words) > 0 {
		options, wraps := wrappers[words[0].Text]
		if !wraps || contains("npx pnpx bunx busybox command", words[0].Text) {
			return words
		}
		words = unwrap(words[1:], options)
	}
	return words
}
